//! The testbed: two hosts, and the order in which the link between them is laid.

use crate::address::{INTERFACE, addresses, bridged_address, hardware_address};
use crate::bridge::hand_over;
use crate::error::TestbedError;
use crate::folder::Folder;
use crate::host::{Guest, Host, Place};
use crate::link::{MTU_LIMITS, connect, raise, set_mtu};
use crate::offload::switch_off_all;
use crate::part::Part;
use crate::pin;
use crate::prepare::prepare;
use crate::queue::Queue;
use crate::quiet::quiet;
use crate::services::{Ends, Serving};
use crate::settle::settle;
use crate::shape::Bucket;
use crate::steer::Steering;
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
    hosts: [Host; 2],
    /// The processors of each, where they are divided.
    processors: Option<[Vec<usize>; 2]>,
    /// What gives each host's processors the receive work of its end of the link, where that is allowed.
    steering: Option<[Steering; 2]>,
    /// What the link is at present.
    link: Link,
    /// Whether each host is on its own processors at present.
    divided: bool,
    /// What each host is, where it is no namespace.
    guests: [Option<String>; 2],
    /// The guests' files; they go after the guests.
    folder: Option<Folder>,
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
    /// Starts `program args` twice, each in a fresh network namespace, and lays the link between them. When it
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
        Self::lay(link_config, program, args, &[None, None])
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
        let folder = Folder::create()?;
        let [sender, receiver] = systems.0.each_ref().map(|system| prepare(system, program, &[], &folder));
        let guests = [sender?, receiver?];
        let mut testbed = Self::lay(link_config, program, args, &guests)?;
        for (place, guest) in guests.iter().enumerate() {
            let Some(guest) = guest else { continue };
            let host = &mut testbed.hosts[place];
            let role = host.role();
            let own = Place {
                name: role.name(),
                namespace: host.pid(),
                processors: testbed.processors.as_ref().map_or(&[], |halves| &halves[place]),
                offloads: link_config.offloads,
                program,
                folder: &folder.for_host(role.name())?,
                part: Part::Host { role, mtu: link_config.mtu, offloads: link_config.offloads },
            };
            host.invite(guest.as_ref(), &own)?;
            testbed.guests[place] = Some(guest.version());
        }
        testbed.folder = Some(folder);
        Ok(testbed)
    }

    /// Starts the processes and lays the link; an end where a guest wants a tap device has one, and no address.
    fn lay(
        link_config: &LinkConfig,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        guests: &[Option<Box<dyn Guest>>; 2],
    ) -> Result<Self, TestbedError> {
        let link = Link::new(link_config, link_config.mtu, None)?;

        // A host kills its process when dropped, so every early return from here on leaves nothing.
        let processors = pin::halves();
        let [near, far] = processors.clone().unwrap_or_default();
        let sender = Host::start(Role::Sender, program, args, &near)?;
        let receiver = Host::start(Role::Receiver, program, args, &far)?;
        let (far, hosts) = (receiver.pid(), [sender, receiver]);
        let tapped = guests.each_ref().map(|guest| guest.as_ref().is_some_and(|guest| guest.wants_a_tap()));
        let ends = || hosts.iter().zip(tapped);

        // One step on both hosts before the next on either: each needs the far end as the step before left it.
        for host in &hosts {
            host.inside(quiet)?;
        }
        let hardware = |role, tapped| {
            let own = hardware_address(role);
            if tapped { bridged_address(own) } else { own }
        };
        let hardware = [hardware(Role::Sender, tapped[0]), hardware(Role::Receiver, tapped[1])];
        hosts[0].inside(|| connect(link_config.mtu, far, hardware))?;
        for host in &hosts {
            host.inside(|| {
                if !link_config.offloads {
                    switch_off_all(INTERFACE)?;
                }
                link.queue.lay(None)
            })?;
        }
        // Not everybody may: what comes of it is said, and the testbed works without. A guest's receive work is its own.
        let plain = guests.iter().all(Option::is_none);
        let steering = processors.as_ref().filter(|_| plain).and_then(|[near, far]| {
            let open = |host: &Host, own: &[usize]| host.inside(|| Steering::open(own)).ok();
            Some([open(&hosts[0], near)?, open(&hosts[1], far)?])
        });
        for (host, tapped) in ends() {
            host.inside(|| {
                if tapped {
                    hand_over(INTERFACE, link_config.mtu, link_config.offloads)
                } else {
                    raise(host.role())
                }
            })?;
        }
        for (host, _) in ends().filter(|(_, tapped)| !tapped) {
            host.inside(|| settle(&addresses(host.role())))?;
        }
        let divided = processors.is_some();
        let guests = [None, None];
        Ok(Self {
            link_config: link_config.clone(),
            serving: None,
            hosts,
            processors,
            steering,
            link,
            divided,
            guests,
            folder: None,
        })
    }

    /// Has the receiver run services, which the sender asks when told ([`Testbed::serving`]); not where there are none.
    /// Both hosts must be namespaces. To be called from the thread that built the testbed.
    ///
    /// # Errors
    /// What is missing for it, or does not run or answer.
    pub fn serve(&mut self, services: &Services) -> Result<(), TestbedError> {
        if !services.is_empty() {
            let processors = |place: usize| self.processors.as_ref().map_or(&[][..], |halves| &halves[place]);
            let namespaces = self.hosts.each_ref().map(Host::pid);
            let ends = Ends { namespaces, processors: [processors(0), processors(1)] };
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
        &self.hosts
    }

    /// The hosts, sender first, to take their streams or ask how they ended.
    pub fn hosts_mut(&mut self) -> &mut [Host; 2] {
        &mut self.hosts
    }

    /// Whether each host has processors that the other does not run on; not so on a machine with only one.
    pub fn has_own_processors(&self) -> bool {
        self.processors.is_some()
    }

    /// Whether [`Testbed::steer`] can be asked for: not without root, nor with a single processor.
    pub fn can_steer(&self) -> bool {
        self.steering.is_some()
    }

    /// Has each host's processors do all of its work, the kernel's receive work included, or leaves that where packets
    /// come from, as it is at first.
    ///
    /// # Errors
    /// When it cannot be steered, or the kernel refuses.
    pub fn steer(&self, on: bool) -> io::Result<()> {
        match &self.steering {
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
        for host in &self.hosts {
            host.inside(|| {
                if link.mtu != self.link.mtu {
                    set_mtu(link.mtu)?;
                }
                if link.queue != self.link.queue { link.queue.lay(Some(self.link.queue)) } else { Ok(()) }
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
        let all = pin::allowed();
        for (place, host) in self.hosts.iter().enumerate() {
            let processors = match &self.processors {
                Some(halves) if divided => &halves[place],
                None if divided => {
                    let reason = io::Error::new(io::ErrorKind::Unsupported, "there is only one processor");
                    let attempted = "give each host processors of its own".to_owned();
                    return Err(TestbedError::Setup { host: host.role(), attempted, reason });
                }
                _ => &all,
            };
            let daemons = self.serving.as_ref().filter(|_| host.role() == Role::Receiver).map(Serving::pids);
            for process in daemons.into_iter().flatten().chain([host.pid()]) {
                pin::move_to(process, processors).map_err(|fault| fault.on(host.role()))?;
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
        describe(&self.link_config, &self.guests, self.processors.as_ref()) + &served.unwrap_or_default()
    }

    /// What runs at each end where it is no namespace, with its version; sender first.
    pub fn guests(&self) -> &[Option<String>; 2] {
        &self.guests
    }

    /// Kills both processes at once and waits for them; as dropping does, but says what failed.
    ///
    /// # Errors
    /// The kernel's, where a process cannot be killed or waited for; the other one is killed all the same.
    pub fn kill(&mut self) -> io::Result<()> {
        self.serving = None;
        let [sender, receiver] = &mut self.hosts;
        sender.kill().and(receiver.kill())
    }
}

fn describe(
    link_config: &LinkConfig,
    guests: &[Option<String>; 2],
    processors: Option<&[Vec<usize>; 2]>,
) -> String {
    let rate = link_config.rate.map_or("no rate limit".to_owned(), |rate| rate.to_string());
    let offloads = if link_config.offloads { "on" } else { "off" };
    let pinned = processors.map_or_else(String::new, |[sender, receiver]| {
        format!(", sender on CPU {}, receiver on CPU {}", pin::print(sender), pin::print(receiver))
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
