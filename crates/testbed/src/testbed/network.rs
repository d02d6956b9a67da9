//! A chain of hosts and links, with the steps that every kind of testbed is built from.

use crate::addressing::routed_hardware_address;
use crate::kernel::netlink::{raise, wait_until_quiet, without_link_local};
use crate::kernel::tc::queue::{Impairment, Queue};
use crate::kernel::tc::tbf::Bucket;
use crate::kernel::{cpus, sysctl};
use crate::link::{create_veth, hand_over, leave_to_frames, switch_off_all, vacate};
use crate::{
    Attachment, Fault, Guest, GuestSpec, Host, INTERFACE, Interface, MIDDLE, Node, PathRole, TestbedError,
    Workdir, hardware_address,
};
use stacklab_model::{LinkConfig, Links, OwnLink, Role};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;

/// The link between a host and the next one. It is the same in both directions.
#[derive(Debug)]
pub(crate) struct Link {
    /// Its interface at the host nearer to the sender, and at the other one.
    interfaces: [&'static str; 2],
    pub mtu: u32,
    pub queue: Queue,
    impairment: Option<Impairment>,
    hardware: [[u8; 6]; 2],
}

impl Link {
    pub(crate) fn direct(mtu: u32, queue: Queue) -> Self {
        let hardware = [Role::Sender, Role::Receiver].map(hardware_address);
        Link { interfaces: [INTERFACE; 2], mtu, queue, impairment: None, hardware }
    }

    /// A link of a routed testbed with these settings.
    pub(crate) fn of_path(
        own: OwnLink,
        link_config: &LinkConfig,
        interfaces: [&'static str; 2],
        hardware: [[u8; 6]; 2],
    ) -> Result<Self, TestbedError> {
        let LinkConfig { rate, mtu, .. } = own.of(link_config);
        let bucket = rate.map(|rate| Bucket::new(rate, mtu)).transpose()?;
        let impairment = own.impairs().then_some(Impairment { delay_ns: own.delay_ns, loss: own.loss });
        Ok(Link { interfaces, mtu, queue: Queue { bucket, packets: None }, impairment, hardware })
    }

    pub(crate) fn list_routed_links(
        links: &Links,
        link_config: &LinkConfig,
    ) -> Result<Vec<Self>, TestbedError> {
        let interfaces = [INTERFACE, MIDDLE, INTERFACE];
        let links = interfaces.into_iter().zip(links.all()).zip(Node::ALL.windows(2));
        let links = links.map(|((interface, (_, own)), ends)| {
            let hardware = [ends[0], ends[1]].map(|node| routed_hardware_address(node, interface));
            Link::of_path(own, link_config, [interface; 2], hardware)
        });
        links.collect()
    }

    /// Creates it between two hosts, and prepares both ends: silent, shaped, and not up.
    pub(crate) fn create(&self, hosts: [&Host; 2], offloads: bool) -> Result<(), TestbedError> {
        let [near, far] = hosts;
        near.inside(|| create_veth(self.interfaces, self.mtu, far.pid(), self.hardware))?;
        for (host, interface) in hosts.into_iter().zip(self.interfaces) {
            if !host.kept_settings.is_empty() {
                host.inside(|| without_link_local(interface))?;
            }
            host.inside(|| self.prepare_end(interface, offloads))?;
        }
        Ok(())
    }

    fn prepare_end(&self, interface: &str, offloads: bool) -> Result<(), Fault> {
        if !offloads {
            switch_off_all(interface)?;
        }
        self.queue.apply(interface, None, self.impairment)
    }

    pub(crate) fn raise(&self, hosts: [&Host; 2]) -> Result<(), TestbedError> {
        for (host, interface) in hosts.into_iter().zip(self.interfaces) {
            host.inside(|| raise(interface, self.mtu))?;
        }
        Ok(())
    }
}

/// Prepares a new host's namespace. Returns whether path MTUs that it discovers stay valid, if it is on a routed path.
pub(crate) fn prepare_host(host: &mut Host, is_routed: bool) -> Result<bool, TestbedError> {
    host.kept_settings = host.inside(sysctl::silence_where_allowed)?;
    if !is_routed {
        return Ok(true);
    }
    host.inside(sysctl::prepare_routing)?;
    host.inside(|| Ok(sysctl::keep_path_mtus()))
}

/// A host of a chain before it is started.
#[derive(Debug)]
pub(crate) struct ChainNode {
    node: Node,
    /// The addresses of its interface, IPv4 first.
    addresses: [IpAddr; 2],
    /// Words that its agent gets behind those of all.
    options: Vec<String>,
}

impl ChainNode {
    pub(crate) fn new(node: Node, addresses: [IpAddr; 2]) -> Self {
        ChainNode { node, addresses, options: Vec::new() }
    }

    pub(crate) fn with_options(self, options: Vec<String>) -> Self {
        ChainNode { options, ..self }
    }
}

/// Running hosts, connected by links. Dropping it kills their processes and removes everything.
#[derive(Debug)]
pub(crate) struct HostChain<const N: usize> {
    pub hosts: [Host; N],
    pub links: Vec<Link>,
    /// Whether each host's interface is a guest's and has no address.
    vacated: [bool; N],
    /// The processors of the path's near half and of its far half, if they are divided.
    pub processors: Option<[Vec<usize>; 2]>,
    /// Whether discovered path MTUs stay valid as long as the hosts run.
    pub keeps_path_mtus: bool,
    pub offloads: bool,
}

impl<const N: usize> HostChain<N> {
    /// Starts `program args` as each host in a new network namespace, and creates the links between them. The links
    /// are silent, shaped, not up, and without addresses. Hosts are in path order.
    pub(crate) fn build(
        nodes: [ChainNode; N],
        links: Vec<Link>,
        offloads: bool,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        let processors = cpus::halves();
        // A host kills its process when dropped, so an early return from here on leaves nothing behind.
        let mut hosts = Vec::with_capacity(N);
        for (place, ChainNode { node, addresses, options }) in nodes.into_iter().enumerate() {
            let words = args.iter().map(AsRef::as_ref).chain(options.iter().map(OsStr::new));
            let words: Vec<&OsStr> = words.collect();
            // Neighbours on the path share processors: each half of the path has its own.
            let own = processors.as_ref().map_or(&[][..], |halves| &halves[half_of::<N>(place)]);
            hosts.push(Host::start(node, addresses, program, &words, own)?);
        }
        let Ok(mut hosts) = <[Host; N]>::try_from(hosts) else { unreachable!("one host for each node") };
        // A step needs the neighbours to have finished the previous one.
        let mut keeps_path_mtus = true;
        for host in &mut hosts {
            keeps_path_mtus &= prepare_host(host, N > 2)?;
        }
        for (place, link) in links.iter().enumerate() {
            link.create([&hosts[place], &hosts[place + 1]], offloads)?;
        }
        let vacated = [false; N];
        Ok(HostChain { hosts, links, vacated, processors, keeps_path_mtus, offloads })
    }

    pub(crate) fn raise(&self) -> Result<(), TestbedError> {
        for (place, link) in self.links.iter().enumerate() {
            link.raise([&self.hosts[place], &self.hosts[place + 1]])?;
        }
        Ok(())
    }

    /// The processors of a host. Empty: any.
    pub(crate) fn processors_of(&self, place: usize) -> &[usize] {
        self.processors.as_ref().map_or(&[], |halves| &halves[half_of::<N>(place)])
    }

    /// Leaves a host's link ends to its guest, unless that takes them over itself. The ends lose their addresses.
    pub(crate) fn hand_over(
        &mut self,
        place: usize,
        guest: &dyn Guest,
        role: &PathRole,
    ) -> Result<(), TestbedError> {
        let attachment = guest.attachment();
        if attachment == Attachment::Interface {
            return Ok(());
        }
        let offloads = self.offloads;
        self.hosts[place].inside(|| {
            role.interfaces().into_iter().try_for_each(|Interface { link, hardware, mtu }| {
                vacate(link, hardware)?;
                match attachment {
                    Attachment::Tap => hand_over(link, mtu, offloads),
                    _ => leave_to_frames(link, mtu),
                }
            })
        })?;
        self.vacated[place] = true;
        Ok(())
    }

    /// Starts a guest, with `program` as its agent, on link ends that were handed over. Does not wait for its boot.
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

    pub(crate) fn wait_until_quiet(&self) -> Result<(), TestbedError> {
        for (host, vacated) in self.hosts.iter().zip(self.vacated) {
            let addresses = host.addresses();
            host.inside(|| wait_until_quiet(INTERFACE, if vacated { &[] } else { &addresses }))?;
        }
        Ok(())
    }
}

fn half_of<const N: usize>(place: usize) -> usize {
    place * 2 / N
}
