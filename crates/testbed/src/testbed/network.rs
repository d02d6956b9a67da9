//! A chain of hosts and links, with the steps that every kind of testbed is built from.

use crate::error::{Fault, TestbedError};
use crate::host::guest::{Guest, GuestSpec};
use crate::host::launch::Host;
use crate::host::path_role::{Interface, PathRole};
use crate::host::workdir::Workdir;
use crate::kernel::tc::queue::{Impairment, Queue};
use crate::kernel::tc::tbf::Bucket;
use crate::kernel::{cpus, sysctl};
use crate::link::addressing::{
    INTERFACE, MIDDLE, Site, addresses, hardware_address, routed_hardware_address,
};
use crate::link::bridge::{hand_over, vacate};
use crate::link::interface::raise;
use crate::link::offload::switch_off_all;
use crate::link::quiescence::wait_until_quiet;
use crate::link::veth;
use crate::topology::Node;
use stacklab_model::{LinkConfig, Links, Mechanism, Role};
use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// The testbed to build: hosts in path order, and a link between each host and the next.
#[derive(Debug)]
pub(crate) struct Chain<const N: usize> {
    /// Each host with the addresses of its interface, IPv4 first.
    nodes: [(Node, [IpAddr; 2]); N],
    /// The links: one fewer than hosts.
    links: Vec<Link>,
    offloads: bool,
}

/// The link between a host and the next one. It is the same in both directions.
#[derive(Debug)]
struct Link {
    interface: &'static str,
    mtu: u32,
    queue: Queue,
    impairment: Option<Impairment>,
    hardware: [[u8; 6]; 2],
}

impl Chain<2> {
    pub(crate) fn direct(mtu: u32, queue: Queue, offloads: bool) -> Self {
        let roles = [Role::Sender, Role::Receiver];
        let hardware = roles.map(hardware_address);
        let link = Link { interface: INTERFACE, mtu, queue, impairment: None, hardware };
        Chain { nodes: roles.map(|role| (role.into(), addresses(role))), links: vec![link], offloads }
    }
}

impl Chain<4> {
    pub(crate) fn routed(
        links: &Links,
        link_config: &LinkConfig,
        mechanism: Mechanism,
    ) -> Result<Self, TestbedError> {
        let nodes = [
            (Node::Sender, Site::Near.client_addresses(mechanism)),
            (Node::Router1, Site::Near.gateways(mechanism)),
            (Node::Router2, Site::Far.gateways(mechanism)),
            (Node::Receiver, Site::Far.client_addresses(mechanism)),
        ];
        let interfaces = [INTERFACE, MIDDLE, INTERFACE];
        let links = interfaces.into_iter().zip(links.all()).zip(Node::ALL.windows(2));
        let links = links.map(|((interface, (_, own)), ends)| -> Result<Link, TestbedError> {
            let LinkConfig { rate, mtu, .. } = own.of(link_config);
            let bucket = rate.map(|rate| Bucket::new(rate, mtu)).transpose()?;
            Ok(Link {
                interface,
                mtu,
                queue: Queue { bucket, packets: None },
                impairment: own.impairs().then_some(Impairment { delay_ns: own.delay_ns, loss: own.loss }),
                hardware: [ends[0], ends[1]].map(|node| routed_hardware_address(node, interface)),
            })
        });
        let links = links.collect::<Result<_, TestbedError>>()?;
        Ok(Chain { nodes, links, offloads: link_config.offloads })
    }
}

/// Running hosts, connected by links. Dropping it kills their processes and removes everything.
#[derive(Debug)]
pub(crate) struct Network<const N: usize> {
    pub hosts: [Host; N],
    /// Whether each host's interface is bridged to a guest and has no address.
    bridged: [bool; N],
    /// The processors of the path's near half and of its far half, if they are divided.
    pub processors: Option<[Vec<usize>; 2]>,
    /// Whether discovered path MTUs stay valid as long as the hosts run.
    pub keeps_path_mtus: bool,
    offloads: bool,
}

impl<const N: usize> Network<N> {
    /// Starts `program args` as each host in a new network namespace, and creates the links between them. The links
    /// are silent, shaped, not up, and without addresses.
    pub(crate) fn build(
        chain: &Chain<N>,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        let Chain { nodes, links, offloads } = chain;
        let processors = cpus::halves();
        // A host kills its process when dropped, so an early return from here on leaves nothing behind.
        let mut hosts = Vec::with_capacity(N);
        for (place, (node, addresses)) in nodes.iter().enumerate() {
            // Neighbours on the path share processors: each half of the path has its own.
            let own = processors.as_ref().map_or(&[][..], |halves| &halves[half_of::<N>(place)]);
            hosts.push(Host::start(*node, *addresses, program, args, own)?);
        }
        let Ok(hosts) = <[Host; N]>::try_from(hosts) else { unreachable!("one host for each node") };
        // Run each step on all hosts before the next step: a step needs the neighbours to have finished the previous
        // one.
        let mut keeps_path_mtus = true;
        for host in &hosts {
            host.inside(sysctl::silence)?;
            if N > 2 {
                host.inside(sysctl::prepare_routing)?;
                keeps_path_mtus &= host.inside(|| Ok(sysctl::keep_path_mtus()))?;
            }
        }
        for (place, link) in links.iter().enumerate() {
            let next = hosts[place + 1].pid();
            hosts[place].inside(|| veth::create(link.interface, link.mtu, next, link.hardware))?;
        }
        let network =
            Network { hosts, bridged: [false; N], processors, keeps_path_mtus, offloads: *offloads };
        network.at_link_ends(links, |link| {
            if !offloads {
                switch_off_all(link.interface)?;
            }
            link.queue.apply(link.interface, None, link.impairment)
        })?;
        Ok(network)
    }

    fn at_link_ends(
        &self,
        links: &[Link],
        step: impl Fn(&Link) -> Result<(), Fault> + Sync,
    ) -> Result<(), TestbedError> {
        for (place, host) in self.hosts.iter().enumerate() {
            let ends = [links.get(place), place.checked_sub(1).and_then(|before| links.get(before))];
            host.inside(|| ends.into_iter().flatten().try_for_each(&step))?;
        }
        Ok(())
    }

    pub(crate) fn raise(&self, chain: &Chain<N>) -> Result<(), TestbedError> {
        self.at_link_ends(&chain.links, |link| raise(link.interface, link.mtu))
    }

    /// The processors of a host. Empty: any.
    pub(crate) fn processors_of(&self, place: usize) -> &[usize] {
        self.processors.as_ref().map_or(&[], |halves| &halves[half_of::<N>(place)])
    }

    /// Hands a host's link ends over to a guest that uses tap devices: the ends are bridged to the tap devices and
    /// lose their addresses. Does nothing for a guest without tap devices.
    pub(crate) fn hand_over(
        &mut self,
        place: usize,
        guest: &dyn Guest,
        role: &PathRole,
    ) -> Result<(), TestbedError> {
        if guest.wants_a_tap() {
            let offloads = self.offloads;
            self.hosts[place].inside(|| {
                role.interfaces().into_iter().try_for_each(|Interface { link, hardware, mtu }| {
                    vacate(link, hardware)?;
                    hand_over(link, mtu, offloads)
                })
            })?;
            self.bridged[place] = true;
        }
        Ok(())
    }

    /// Starts a guest in place of a host whose link ends were handed over. Does not wait until it has booted.
    /// `program` is the agent in it.
    pub(crate) fn start_guest(
        &mut self,
        place: usize,
        guest: &dyn Guest,
        role: PathRole,
        program: &Path,
        workdir: &Workdir,
    ) -> Result<(), TestbedError> {
        let processors = self.processors_of(place).to_vec();
        let host = &mut self.hosts[place];
        let name = host.node().name();
        let spec = GuestSpec {
            name,
            namespace: host.pid(),
            processors: &processors,
            offloads: self.offloads,
            program,
            folder: &workdir.for_host(name)?,
        };
        host.start_guest(guest, &spec, role)
    }

    /// Waits until every host's interface is up and sends nothing by itself any more. IPv6 sends multicast listener
    /// reports when links come up.
    pub(crate) fn wait_until_quiet(&self) -> Result<(), TestbedError> {
        for (host, bridged) in self.hosts.iter().zip(self.bridged) {
            let addresses = host.addresses();
            host.inside(|| wait_until_quiet(INTERFACE, if bridged { &[] } else { &addresses }))?;
        }
        Ok(())
    }

    /// Kills all processes at once and waits for them.
    ///
    /// # Errors
    /// The kernel's first error. The other processes are still killed.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.hosts.iter_mut().map(Host::kill).fold(Ok(()), io::Result::and)
    }
}

/// The half of the path that a host belongs to.
fn half_of<const N: usize>(place: usize) -> usize {
    place * 2 / N
}
