//! A direct testbed: two hosts and one link.

use crate::host::namespaces_only;
use crate::kernel::cpus::{self, Rps};
use crate::kernel::namespace::mount_own_sysfs;
use crate::kernel::netlink::{change, raise};
use crate::kernel::tc::queue::Queue;
use crate::kernel::tc::tbf::Bucket;
use crate::link::{MTU_LIMITS, configure_end};
use crate::services::{ServiceEnds, Serving};
use crate::testbed::network::{ChainNode, HostChain, Link};
use crate::{
    AtHost, Attachment, Attempt, Fault, Host, INTERFACE, PathRole, Prepare, TestbedError, Workdir, addresses,
};
use stacklab_model::{LinkConfig, Role, Services, System, Systems};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Two hosts (namespaces, or guests in them) and a link. Dropping it kills both and removes everything.
#[derive(Debug)]
pub struct Testbed {
    link_config: LinkConfig,
    /// The services on the receiver. They are dropped before the hosts.
    serving: Option<Serving>,
    network: HostChain<2>,
    /// The switches for receive packet steering (RPS) to each host's own processors, if RPS is allowed.
    rps: Option<[Rps; 2]>,
    divided: bool,
    /// The guests' files. They are dropped after the guests.
    _workdir: Option<Workdir>,
}

/// The link with this MTU and queue length in packets, which can change between trials.
fn link(link_config: &LinkConfig, mtu: u32, packets: Option<u32>) -> Result<Link, TestbedError> {
    let (least, most) = MTU_LIMITS;
    if !(least..=most).contains(&mtu) {
        return Err(TestbedError(format!(
            "MTU {mtu} is not possible: IPv6 needs at least {least}, a veth pair takes at most {most}"
        )));
    }
    let bucket = link_config.rate.map(|rate| Bucket::new(rate, mtu)).transpose()?;
    Ok(Link::direct(mtu, Queue { bucket, packets }))
}

impl Testbed {
    /// Starts `program args` twice, each in a new network namespace, and builds the link between them. On return, both
    /// families can be used and the link is silent.
    ///
    /// Call it from a thread that lives as long as the testbed, such as the main thread: the kernel kills the processes
    /// when the *thread* that started them ends. [`crate::enter`] must have succeeded before.
    pub fn build(
        link_config: &LinkConfig,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        let namespaces = Systems([System::Namespace, System::Namespace]);
        Self::of(&namespaces, link_config, program, args, namespaces_only)
    }

    /// Like [`Testbed::build`], with these systems at the ends of the link, which `prepare` makes guests of. `program`
    /// also runs as the agent in guests. A process runs in each namespace in either case. Guests are still booting on
    /// return: [`Host::meet`] waits for them.
    pub fn of(
        systems: &Systems,
        link_config: &LinkConfig,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        prepare: Prepare,
    ) -> Result<Self, TestbedError> {
        let link = link(link_config, link_config.mtu, None)?;
        let plain = systems.0.iter().all(|system| *system == System::Namespace);
        let workdir = (!plain).then(Workdir::create).transpose()?;
        let [sender, receiver] = systems.0.each_ref().map(|system| match &workdir {
            Some(workdir) => prepare(system, program, &[], workdir),
            None => Ok(None),
        });
        let guests = [sender?, receiver?];
        let nodes = ROLES.map(|role| ChainNode::new(role.into(), addresses(role)));
        let mut network = HostChain::build(nodes, vec![link], link_config.offloads, program, args)?;
        // RPS needs privileges, and does not apply to guests. The testbed works without it.
        let rps = if plain { open_rps(&network) } else { None };
        for (place, role) in ROLES.into_iter().enumerate() {
            match guests[place].as_deref() {
                Some(guest) if guest.attachment() != Attachment::Interface => {
                    network.hand_over(place, guest, &guest_role(place, link_config))?;
                }
                _ => network.hosts[place].inside(|| {
                    raise(INTERFACE, link_config.mtu)?;
                    configure_end(role)
                })?,
            }
        }
        network.wait_until_quiet()?;
        for (place, guest) in guests.iter().enumerate() {
            let Some((guest, workdir)) = guest.as_deref().zip(workdir.as_ref()) else { continue };
            network.start_guest(place, guest, guest_role(place, link_config), program, workdir)?;
        }
        let divided = network.processors.is_some();
        Ok(Self { link_config: link_config.clone(), serving: None, network, rps, divided, _workdir: workdir })
    }

    /// Starts services on the receiver. The sender queries them on request ([`Testbed::serving`]). Does nothing if
    /// there are none. Both hosts must be namespaces. Call it from the thread that built the testbed.
    pub fn serve(&mut self, services: &Services) -> Result<(), TestbedError> {
        if !services.is_empty() {
            let namespaces = self.network.hosts.each_ref().map(Host::pid);
            let ends =
                ServiceEnds { namespaces, processors: [0, 1].map(|place| self.network.processors_of(place)) };
            self.serving = Some(Serving::start(services, &ends)?);
        }
        Ok(())
    }

    /// The services on the receiver, if there are any.
    pub fn serving(&mut self) -> Option<&mut Serving> {
        self.serving.as_mut()
    }

    /// The hosts, sender first.
    pub fn hosts(&self) -> &[Host; 2] {
        &self.network.hosts
    }

    /// The hosts, sender first, to take their streams or to ask for their exit status.
    pub fn hosts_mut(&mut self) -> &mut [Host; 2] {
        &mut self.network.hosts
    }

    /// Whether each host has processors that the other does not use. False on a machine with one processor.
    pub fn has_own_processors(&self) -> bool {
        self.network.processors.is_some()
    }

    /// Whether [`Testbed::steer`] is available. It needs root and more than one processor.
    pub fn can_steer(&self) -> bool {
        self.rps.is_some()
    }

    /// Steers the receive work of these hosts in the kernel to their own processors, sender first, or turns steering
    /// off. Off is the initial state: the processor that sends a packet then also does its receive work.
    pub fn steer(&self, hosts: [bool; 2]) -> io::Result<()> {
        match &self.rps {
            Some(ends) => ends.iter().zip(hosts).try_for_each(|(end, on)| end.switch(on)),
            None if hosts.contains(&true) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "receive work cannot be steered here"))
            }
            None => Ok(()),
        }
    }

    /// Sets the link's MTU and the queue length in packets at each end (`None`: the value it was built with). No
    /// packets may be in transit. After an error, the ends may differ until the next call that succeeds.
    pub fn set_link(&mut self, mtu: Option<u32>, packets: Option<u32>) -> Result<(), TestbedError> {
        let link = link(&self.link_config, mtu.unwrap_or(self.link_config.mtu), packets)?;
        let before = &self.network.links[0];
        if (link.mtu, link.queue) == (before.mtu, before.queue) {
            return Ok(());
        }
        for host in &self.network.hosts {
            host.inside(|| {
                if link.mtu != before.mtu {
                    change(INTERFACE, &format!("set MTU {} of", link.mtu), |to| to.mtu(link.mtu))?;
                }
                if link.queue != before.queue {
                    link.queue.apply(INTERFACE, Some(before.queue), None)?;
                }
                Ok(())
            })?;
        }
        self.network.links[0] = link;
        Ok(())
    }

    /// Runs each host on its own half of the processors (the initial state), or on any processor.
    pub fn divide(&mut self, divided: bool) -> Result<(), TestbedError> {
        if divided == self.divided {
            return Ok(());
        }
        let all = cpus::allowed();
        for (place, host) in self.network.hosts.iter().enumerate() {
            let processors = match &self.network.processors {
                Some(halves) if divided => &halves[place],
                None if divided => {
                    let refused = Err("there is only one processor");
                    let refused = refused.attempt("assign separate processors to each host");
                    return refused.at(host.node());
                }
                _ => &all,
            };
            let daemons =
                self.serving.as_ref().filter(|_| host.node() == Role::Receiver.into()).map(Serving::pids);
            for process in daemons.into_iter().flatten().chain([host.pid()]) {
                cpus::move_to(process, processors).at(host.node())?;
            }
        }
        self.divided = divided;
        Ok(())
    }

    /// A short description: `two namespaces joined by a veth pair, MTU 1500, 100 Mbit/s, offloads off`.
    pub fn describe(&self) -> String {
        let served = self
            .serving
            .as_ref()
            .map(|serving| format!(", {} on the receiver ({})", serving.services, serving.describe()));
        describe(&self.link_config, &self.guests(), self.network.processors.as_ref())
            + &served.unwrap_or_default()
    }

    /// The guest at each end, with its version; sender first. `None` for a namespace.
    pub fn guests(&self) -> [Option<String>; 2] {
        self.network.hosts.each_ref().map(Host::guest_version)
    }
}

const ROLES: [Role; 2] = [Role::Sender, Role::Receiver];

/// Both ends' settings, if there are processors to divide and this process may change them.
fn open_rps(network: &HostChain<2>) -> Option<[Rps; 2]> {
    let [near, far] = network.processors.as_ref()?;
    let sender = network.hosts[0].inside(|| open_rps_of_end(near)).ok()?;
    let receiver = network.hosts[1].inside(|| open_rps_of_end(far)).ok()?;
    Some([sender, receiver])
}

/// The setting of this end. The calling thread gets a private mount namespace, and should end soon.
fn open_rps_of_end(processors: &[usize]) -> Result<Rps, Fault> {
    mount_own_sysfs()?;
    Rps::open(INTERFACE, processors)
}

fn guest_role(place: usize, link_config: &LinkConfig) -> PathRole {
    PathRole::Host { role: ROLES[place], mtu: link_config.mtu }
}

fn describe(
    link_config: &LinkConfig,
    guests: &[Option<String>; 2],
    processors: Option<&[Vec<usize>; 2]>,
) -> String {
    let rate = link_config.rate.map_or("no rate limit".to_owned(), |rate| rate.to_string());
    let offloads = if link_config.offloads { "on" } else { "off" };
    let pinned = processors.map_or_else(String::new, |[sender, receiver]| {
        format!(", sender on CPU {}, receiver on CPU {}", cpus::print(sender), cpus::print(receiver))
    });
    let ends = match guests {
        [None, None] => "two namespaces".to_owned(),
        [Some(one), Some(other)] if one == other => format!("two of {one}"),
        ends => {
            let [sender, receiver] = ends.each_ref().map(|end| end.as_deref().unwrap_or("a namespace"));
            format!("{sender} and {receiver}")
        }
    };
    format!("{ends} joined by a veth pair, MTU {}, {rate}, offloads {offloads}{pinned}", link_config.mtu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Rate;

    #[test]
    fn a_testbed_is_described_in_a_few_words() {
        let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
        assert_eq!(
            describe(&link_config, &[None, None], Some(&[vec![0, 1], vec![2]])),
            "two namespaces joined by a veth pair, MTU 1500, 100 Mbit/s, offloads off, sender on CPU 0-1, receiver on CPU 2"
        );
        let link_config = LinkConfig { rate: None, mtu: 9000, offloads: true };
        assert_eq!(
            describe(&link_config, &[None, None], None),
            "two namespaces joined by a veth pair, MTU 9000, no rate limit, offloads on"
        );
        let guests = [None, Some("gVisor 1".to_owned())];
        assert!(describe(&link_config, &guests, None).starts_with("a namespace and gVisor 1 joined"));
    }

    #[test]
    fn impossible_mtu_is_refused_before_anything_starts() {
        for mtu in [0, 1279, 65536] {
            let link_config = LinkConfig { rate: None, mtu, offloads: true };
            let error = Testbed::build(&link_config, Path::new("/nonexistent"), &[""; 0]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("MTU {mtu} is not possible")), "{error}");
        }
    }
}
