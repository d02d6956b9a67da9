//! A direct testbed: two hosts and one link.

use crate::error::TestbedError;
use crate::guest::protocol::GuestRole;
use crate::host::guest::Guest;
use crate::host::launch::Host;
use crate::host::prepare::prepare;
use crate::host::workdir::Workdir;
use crate::kernel::cpus;
use crate::kernel::rps::Rps;
use crate::kernel::tc::queue::Queue;
use crate::kernel::tc::tbf::Bucket;
use crate::link::addressing::INTERFACE;
use crate::link::configure::configure_end;
use crate::link::interface::{raise, set_mtu};
use crate::link::veth::MTU_LIMITS;
use crate::services::daemon::Ends;
use crate::services::serving::Serving;
use crate::testbed::network::{Network, Topology};
use stacklab_model::{LinkConfig, Role, Services, System, Systems};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Two hosts joined by a link: namespaces, or guests in them. Dropping it kills both processes, and everything is gone.
#[derive(Debug)]
pub struct Testbed {
    link_config: LinkConfig,
    /// What the receiver serves; it goes before the hosts.
    serving: Option<Serving>,
    network: Network<2>,
    /// What gives each host's processors the receive work of its end of the link, where that is allowed.
    rps: Option<[Rps; 2]>,
    /// What the link is at present.
    link: Link,
    /// Whether each host is on its own processors at present.
    divided: bool,
    /// The guests' files; they go after the guests.
    workdir: Option<Workdir>,
}

/// What can be changed of a link between trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    mtu: u32,
    queue: Queue,
}

impl Link {
    fn new(link_config: &LinkConfig, mtu: u32, packets: Option<u32>) -> Result<Self, TestbedError> {
        if !(MTU_LIMITS.0..=MTU_LIMITS.1).contains(&mtu) {
            return Err(TestbedError::Mtu { mtu, limits: MTU_LIMITS });
        }
        let bucket = link_config.rate.map(|rate| Bucket::new(rate, mtu)).transpose()?;
        Ok(Link { mtu, queue: Queue { bucket, packets } })
    }
}

impl Testbed {
    /// Starts `program args` twice, each in a fresh network namespace, and builds the link between them. When it
    /// returns, both families can be used and the link is silent.
    ///
    /// Call it from the main thread, or one that lives as long as the testbed: the processes are killed when the
    /// *thread* that started them ends. [`crate::enter`] must have succeeded before.
    ///
    /// # Errors
    /// What could not be done, and on which host; then both processes are gone again.
    pub fn build(
        link_config: &LinkConfig,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        Self::build_with(link_config, program, args, [None, None])
    }

    /// The same with what these systems run at the ends of the link; `program` is then also the agent in them. A process
    /// runs in each namespace all the same. Guests are booting when it returns: [`Host::meet`] waits for them.
    ///
    /// # Errors
    /// What could not be done, and on which host; a system that has no image here. Nothing is left then.
    pub fn of(
        systems: &Systems,
        link_config: &LinkConfig,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        if systems.0.iter().all(|system| *system == System::Namespace) {
            return Self::build(link_config, program, args);
        }
        let workdir = Workdir::create()?;
        let [sender, receiver] = systems.0.each_ref().map(|system| prepare(system, program, &[], &workdir));
        let guests = [sender?, receiver?];
        let mut testbed =
            Self::build_with(link_config, program, args, guests.each_ref().map(Option::as_deref))?;
        for (place, guest) in guests.iter().enumerate() {
            let Some(guest) = guest else { continue };
            let role = guest_role(place, link_config);
            testbed.network.start_guest(place, guest.as_ref(), role, program, &workdir)?;
        }
        testbed.workdir = Some(workdir);
        Ok(testbed)
    }

    /// Builds the link, and hands its ends over to the guests, which are not started.
    fn build_with(
        link_config: &LinkConfig,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        guests: [Option<&dyn Guest>; 2],
    ) -> Result<Self, TestbedError> {
        let link = Link::new(link_config, link_config.mtu, None)?;
        let topology = Topology::direct(link.mtu, link.queue, link_config.offloads);
        let mut network = Network::build(&topology, program, args)?;
        // Not everybody may: the result is said, and the testbed works without. A guest's receive work is its own.
        let plain = guests.iter().all(Option::is_none);
        let rps = network.processors.as_ref().filter(|_| plain).and_then(|[near, far]| {
            let open = |host: &Host, own: &[usize]| host.inside(|| Rps::open(own)).ok();
            Some([open(&network.hosts[0], near)?, open(&network.hosts[1], far)?])
        });
        for (place, role) in ROLES.into_iter().enumerate() {
            match guests[place].filter(|guest| guest.wants_a_tap()) {
                Some(guest) => network.hand_over(place, guest, &guest_role(place, link_config))?,
                None => network.hosts[place].inside(|| {
                    raise(INTERFACE, link_config.mtu)?;
                    configure_end(role)
                })?,
            }
        }
        network.wait_until_quiet()?;
        let divided = network.processors.is_some();
        let link_config = link_config.clone();
        Ok(Self { link_config, serving: None, network, rps, link, divided, workdir: None })
    }

    /// Has the receiver run services, which the sender asks when told ([`Testbed::serving`]); not where there are none.
    /// Both hosts must be namespaces. To be called from the thread that built the testbed.
    ///
    /// # Errors
    /// What is missing for it, or does not run or answer.
    pub fn serve(&mut self, services: &Services) -> Result<(), TestbedError> {
        if !services.is_empty() {
            let namespaces = self.network.hosts.each_ref().map(Host::pid);
            let ends = Ends { namespaces, processors: [0, 1].map(|place| self.network.processors_of(place)) };
            self.serving = Some(Serving::start(services, &ends)?);
        }
        Ok(())
    }

    /// The services that the receiver runs, where it runs any.
    pub fn serving(&mut self) -> Option<&mut Serving> {
        self.serving.as_mut()
    }

    /// The hosts, sender first.
    pub fn hosts(&self) -> &[Host; 2] {
        &self.network.hosts
    }

    /// The hosts, sender first, to take their streams or ask how they ended.
    pub fn hosts_mut(&mut self) -> &mut [Host; 2] {
        &mut self.network.hosts
    }

    /// Whether each host has processors that the other does not run on; not so on a machine with only one.
    pub fn has_own_processors(&self) -> bool {
        self.network.processors.is_some()
    }

    /// Whether [`Testbed::steer`] can be asked for: not without root, nor with a single processor.
    pub fn can_steer(&self) -> bool {
        self.rps.is_some()
    }

    /// Has each host's processors do all of its work, the kernel's receive work included, or leaves that where packets
    /// come from, as it is at first.
    ///
    /// # Errors
    /// When it cannot be steered, or the kernel refuses.
    pub fn steer(&self, on: bool) -> io::Result<()> {
        match &self.rps {
            Some(ends) => ends.iter().try_for_each(|end| end.switch(on)),
            None if on => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "receive work cannot be steered here"))
            }
            None => Ok(()),
        }
    }

    /// Gives the link an MTU and a queue of so many packets at each end (`None`: as it was built). Nothing may be on its
    /// way meanwhile; does nothing where it is so already.
    ///
    /// # Errors
    /// An MTU that a link cannot have, or the kernel's; then the ends may differ until the next call that succeeds.
    pub fn set_link(&mut self, mtu: Option<u32>, packets: Option<u32>) -> Result<(), TestbedError> {
        let link = Link::new(&self.link_config, mtu.unwrap_or(self.link_config.mtu), packets)?;
        if link == self.link {
            return Ok(());
        }
        for host in &self.network.hosts {
            host.inside(|| {
                if link.mtu != self.link.mtu {
                    set_mtu(INTERFACE, link.mtu)?;
                }
                if link.queue != self.link.queue {
                    link.queue.apply(INTERFACE, Some(self.link.queue), None)
                } else {
                    Ok(())
                }
            })?;
        }
        self.link = link;
        Ok(())
    }

    /// Has each host run on its own half of the processors, as it is at first, or on any.
    ///
    /// # Errors
    /// When there are not enough processors to divide, or the kernel refuses.
    pub fn divide(&mut self, divided: bool) -> Result<(), TestbedError> {
        if divided == self.divided {
            return Ok(());
        }
        let all = cpus::allowed();
        for (place, host) in self.network.hosts.iter().enumerate() {
            let processors = match &self.network.processors {
                Some(halves) if divided => &halves[place],
                None if divided => {
                    let reason = io::Error::new(io::ErrorKind::Unsupported, "there is only one processor");
                    let attempted = "give each host processors of its own".to_owned();
                    return Err(TestbedError::Setup { host: host.node(), attempted, reason });
                }
                _ => &all,
            };
            let daemons =
                self.serving.as_ref().filter(|_| host.node() == Role::Receiver.into()).map(Serving::pids);
            for process in daemons.into_iter().flatten().chain([host.pid()]) {
                cpus::move_to(process, processors).map_err(|fault| fault.at(host.node()))?;
            }
        }
        self.divided = divided;
        Ok(())
    }

    /// What it is, in a few words: `two namespaces joined by a veth pair, MTU 1500, 100 Mbit/s, offloads off, sender
    /// on CPU 0, receiver on CPU 1`.
    pub fn describe(&self) -> String {
        let served = self
            .serving
            .as_ref()
            .map(|serving| format!(", {} on the receiver ({})", serving.services(), serving.describe()));
        describe(&self.link_config, &self.guests(), self.network.processors.as_ref())
            + &served.unwrap_or_default()
    }

    /// What runs at each end where it is no namespace, with its version; sender first.
    pub fn guests(&self) -> [Option<String>; 2] {
        self.network.hosts.each_ref().map(Host::guest_version)
    }

    /// Kills both processes at once and waits for them; as dropping does, but says what failed.
    ///
    /// # Errors
    /// The kernel's, where a process cannot be killed or waited for; the other one is killed all the same.
    pub fn kill(&mut self) -> io::Result<()> {
        self.serving = None;
        self.network.kill()
    }
}

/// The hosts' roles, in their order on the path.
const ROLES: [Role; 2] = [Role::Sender, Role::Receiver];

fn guest_role(place: usize, link_config: &LinkConfig) -> GuestRole {
    GuestRole::Host { role: ROLES[place], mtu: link_config.mtu, offloads: link_config.offloads }
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
    fn an_mtu_that_a_family_cannot_have_is_refused_before_anything_starts() {
        for mtu in [0, 1279, 65536] {
            let link_config = LinkConfig { rate: None, mtu, offloads: true };
            let error = Testbed::build(&link_config, Path::new("/nonexistent"), &[""; 0]).unwrap_err();
            assert!(matches!(error, TestbedError::Mtu { .. }), "{error}");
        }
    }
}
