//! A routed testbed: sender, router, router, receiver, and a transition mechanism between the routers.

use crate::host::namespaces_only;
use crate::kernel::memory::MemoryWatch;
use crate::kernel::router_thread::RouterThread;
use crate::link::{configure_client, configure_router, fix_path_mtus};
use crate::mechanism::destinations::take_all_addresses;
use crate::mechanism::translate::{tayga_command, tayga_console};
use crate::mechanism::tunnels::Keys;
use crate::testbed::network::{ChainNode, HostChain, Link};
use crate::testbed::path_check::{CheckedPath, refresh_path_mtus, refuse_family};
use crate::testbed::publishing::{Publishing, find_replaced_link, list_agent_options};
use crate::testbed::routed_spec::RoutedSpec;
use crate::testbed::router_queue::{check_steering, router_processors, start_queues};
use crate::testbed::spokes::Spoke;
use crate::{
    AtHost, Attachment, CustomerId, Guest, Host, Node, PathCheck, PathRole, Prepare, Router, Site, Streams,
    TestbedError, Ticks, Workdir, last_words,
};
use stacklab_model::{EntryMemory, Family, Mechanism, RouterQueue};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The age at which path MTUs are discovered again. A kernel keeps a path MTU for ten minutes and accepts no update
/// before half of that time.
const REFRESH: Duration = Duration::from_secs(400);

/// The sites of clients and routers, and their positions among the hosts.
const CLIENTS: [(Site, usize); 2] = [(Site::Near, 0), (Site::Far, 3)];
pub(super) const ROUTERS: [(Site, usize); 2] = [(Site::Near, 1), (Site::Far, 2)];

type Guests = [Option<Box<dyn Guest>>; 2];

/// The streams of the agents of a routed testbed.
pub struct RoutedStreams {
    /// Of the four hosts, in path order.
    pub chain: [Streams; 4],
    /// Of the near routers of the customers after the first.
    pub spokes: Vec<Streams>,
}

/// A chain of four hosts, and a near router for each further customer. Dropping it kills their processes and removes
/// everything.
#[derive(Debug)]
pub struct Routed {
    /// The mechanism on the middle link.
    pub mechanism: Mechanism,
    pub(super) network: HostChain<4>,
    /// What runs on the container's host, if the receiver is one.
    pub(super) publishing: Option<Publishing>,
    /// The customers after the first.
    pub(super) spokes: Vec<Spoke>,
    /// The results of the path checks when the testbed was built, one for each carried family and customer.
    pub path_checks: Vec<PathCheck>,
    /// What the further entries of the near router's tables took of the kernel's memory, where that was watched.
    pub entry_memory: Vec<EntryMemory>,
    workdir: Workdir,
    /// The MTUs of the clients' links, bytes; the sender's first.
    mtus: [u32; 2],
    /// When the path MTUs were discovered, and whether they stay valid as long as the testbed exists.
    pub(super) discovered: Instant,
    lasting: bool,
    threads: Vec<RouterThread>,
}

impl Routed {
    /// Starts `program args` four times, each in a new network namespace. Builds the links, and the mechanism on both
    /// routers. Checks that packets of each carried family arrive in the expected form. Call it as
    /// [`crate::Testbed::build`].
    pub fn build(
        spec: &RoutedSpec,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        Self::build_with(spec, program, args, namespaces_only)
    }

    /// Like [`Routed::build`], with guests that `prepare` makes in place of the namespaces of clients or routers.
    /// `program` also runs as the agent in them. Guest routers are started before the path checks, guest clients after
    /// them. Clients are still booting on return ([`Routed::meet`] waits for them).
    pub fn build_with(
        spec: &RoutedSpec,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        prepare: Prepare,
    ) -> Result<Self, TestbedError> {
        let RoutedSpec { kind, link_config, links, .. } = spec;
        let mechanism = kind.mechanism;
        let workdir = Workdir::create()?;
        // A router in a guest runs its translator and nftables itself.
        let inside = kind.routers.guests().next().is_some();
        let others = if inside { spec.programs()? } else { Vec::new() };
        let [near, far] = &kind.clients.0;
        let clients = [prepare(near, program, &others, &workdir)?, prepare(far, program, &others, &workdir)?];
        let [near, far] = &kind.routers.0;
        let routers = [prepare(near, program, &others, &workdir)?, prepare(far, program, &others, &workdir)?];
        let nodes = [
            ChainNode::new(Node::Sender, Site::Near.client_addresses(mechanism)),
            ChainNode::new(Node::Router1, Site::Near.gateways(mechanism)),
            ChainNode::new(Node::Router2, Site::Far.gateways(mechanism)),
            ChainNode::new(Node::Receiver, Site::Far.client_addresses(mechanism))
                .with_options(list_agent_options(mechanism)),
        ];
        let chain = Link::list_routed_links(links, link_config)?;
        let network = HostChain::build(nodes, chain, link_config.offloads, program, args)?;
        network.raise()?;
        let spokes = Spoke::build_all(spec, &network, program, args)?;
        let lasting = network.keeps_path_mtus;
        let mut routed = Routed {
            mechanism,
            network,
            publishing: None,
            spokes,
            path_checks: Vec::new(),
            entry_memory: Vec::new(),
            workdir,
            mtus: [links.near, links.far].map(|link| link.of(link_config).mtu),
            discovered: Instant::now(),
            lasting,
            threads: Vec::new(),
        };
        routed.configure_clients()?;
        if kind.tables.destinations > 1 {
            routed.network.hosts[CLIENTS[1].1].inside(|| take_all_addresses(mechanism))?;
        }
        routed.set_up_routers(&routers, spec, program)?;
        let far = routed.far_router(spec);
        routed.publishing = Publishing::start(&mut routed.network, &far, routed.mtus, &routed.workdir)?;
        routed.threads = start_queues(kind.queue, &routed.network, &routed.spokes)?;
        routed.wait_until_quiet()?;
        routed.check_forwarding(spec, inside)?;
        if let (RouterQueue::Rps, Some(carried)) = (kind.queue, routed.path_checks.first()) {
            check_steering(&routed.network, mechanism, carried)?;
        }
        if clients.iter().any(Option::is_some) {
            routed.start_clients(&clients, spec, program)?;
        }
        Ok(routed)
    }

    fn configure_clients(&self) -> Result<(), TestbedError> {
        for (site, place) in CLIENTS {
            let is_later = find_replaced_link(self.mechanism) == Some(site);
            if !is_later {
                self.network.hosts[place].inside(|| configure_client(site, self.mechanism))?;
            }
        }
        Ok(())
    }

    fn far_router(&self, spec: &RoutedSpec) -> Router {
        Router::of_chain(Site::Far, self.mechanism, spec.link_config.mtu, spec.translates[1].by)
    }

    fn set_up_routers(
        &mut self,
        guests: &Guests,
        spec: &RoutedSpec,
        program: &Path,
    ) -> Result<(), TestbedError> {
        let keys = Keys::draw(self.mechanism).at(Site::Near.router())?;
        let mtu = spec.link_config.mtu;
        for (number, ((site, place), guest)) in ROUTERS.into_iter().zip(guests).enumerate() {
            let translator = spec.translates[number].by;
            let mut router = Router::of_chain(site, self.mechanism, mtu, translator);
            router.customers = spec.kind.customers;
            router.keys = keys[number];
            router.tables.destinations = spec.kind.tables.destinations;
            router.tables.neighbours = spec.kind.tables.neighbours;
            if site == Site::Near {
                router.rules = spec.kind.rules;
                router.tables = spec.kind.tables;
                self.spokes.iter().try_for_each(|spoke| spoke.configure(&self.network.hosts[0], &router))?;
            }
            match guest {
                None => self.configure_router(place, &router, spec)?,
                Some(guest) => {
                    let role = PathRole::Router { router, near_mtu: self.mtus[number] };
                    self.start_guest(place, guest.as_ref(), role, program)?;
                }
            }
        }
        ROUTERS.iter().try_for_each(|(_, place)| self.network.hosts[*place].come_up())
    }

    fn configure_router(
        &mut self,
        place: usize,
        router: &Router,
        spec: &RoutedSpec,
    ) -> Result<(), TestbedError> {
        let processors = router_processors(spec.kind.queue, &self.network).to_vec();
        let host = &mut self.network.hosts[place];
        let memory = MemoryWatch::new(spec.watches_memory);
        self.entry_memory.extend(host.inside(|| {
            let mut memory = memory;
            configure_router(router, &mut memory)?;
            Ok(memory.into_entries())
        })?);
        let translator = tayga_command(router, self.workdir.path());
        match translator.at(host.node())? {
            Some(mut command) => host.start_companion("the translator", &mut command, &processors),
            None => Ok(()),
        }
    }

    fn wait_until_quiet(&self) -> Result<(), TestbedError> {
        self.network.wait_until_quiet()?;
        self.spokes.iter().try_for_each(|spoke| spoke.wait_until_quiet(&self.network.hosts[0]))
    }

    /// The path of a customer.
    pub(super) fn path_of(&self, customer: CustomerId) -> CheckedPath<'_> {
        let [sender, router1, router2, receiver] = &self.network.hosts;
        let spoke = self.spokes.iter().find(|spoke| spoke.customer == customer);
        let router1 = spoke.map_or(router1, |spoke| &spoke.router);
        CheckedPath { hosts: [sender, router1, router2, receiver], customer }
    }

    /// Whether sender and receiver share no processor.
    pub fn has_own_processors(&self) -> bool {
        self.network.processors.is_some()
    }

    /// The kernel threads of its routers that this process can see, if they have any.
    pub fn router_threads(&self) -> &[RouterThread] {
        &self.threads
    }

    /// Gives both clients the path MTU, which then lasts.
    pub(super) fn fix_path_mtus(&mut self, middle_mtu: u32) -> Result<(), TestbedError> {
        for (site, place) in CLIENTS {
            let host = &self.network.hosts[place];
            host.inside(|| fix_path_mtus(site, self.mechanism, middle_mtu))?;
        }
        self.lasting = true;
        Ok(())
    }

    /// Starts guests in the clients' places and does not wait until they have booted. Nothing changes for the routers:
    /// their interfaces have the addresses of the namespaces. From then on, routes set the path MTUs at both ends,
    /// because rediscovery cannot be started in a guest.
    fn start_clients(
        &mut self,
        guests: &Guests,
        spec: &RoutedSpec,
        program: &Path,
    ) -> Result<(), TestbedError> {
        let mechanism = self.mechanism;
        let middle_mtu = spec.link_config.mtu;
        for (number, ((site, place), guest)) in CLIENTS.into_iter().zip(guests).enumerate() {
            let guest = guest.as_ref();
            let has_a_route = !mechanism.reports_path_mtu();
            if !has_a_route && guest.is_none_or(|guest| guest.attachment() == Attachment::Interface) {
                let host = &self.network.hosts[place];
                host.inside(|| fix_path_mtus(site, mechanism, middle_mtu))?;
            }
            let Some(guest) = guest else { continue };
            let role = PathRole::Client { site, mechanism, mtu: self.mtus[number], middle_mtu };
            self.start_guest(place, guest.as_ref(), role, program)?;
        }
        self.lasting = true;
        Ok(())
    }

    fn start_guest(
        &mut self,
        place: usize,
        guest: &dyn Guest,
        role: PathRole,
        program: &Path,
    ) -> Result<(), TestbedError> {
        self.network.hand_over(place, guest, &role)?;
        self.network.start_guest(place, guest, role, program, &self.workdir)
    }

    /// Discovers the path MTUs at both ends again before the kernel forgets them. Does nothing if they do not expire;
    /// changing their expiry needs root. Call it between trials.
    pub fn keep_path_mtus(&mut self) -> Result<(), TestbedError> {
        if self.lasting || self.discovered.elapsed() < REFRESH {
            return Ok(());
        }
        for check in &self.path_checks {
            refresh_path_mtus(&self.path_of(check.customer), self.mechanism, check, self.mtus)?;
        }
        self.discovered = Instant::now();
        Ok(())
    }

    /// Its hosts: the four in path order, and the near routers of further customers.
    pub fn list_nodes(&self) -> Vec<Node> {
        let spokes = self.spokes.iter().map(|spoke| spoke.router.node());
        Node::ALL.into_iter().chain(spokes).collect()
    }

    /// The process ID of a host that is a process.
    pub fn pid(&self, node: Node) -> u32 {
        let spokes = self.spokes.iter().map(|spoke| &spoke.router);
        let host = self.network.hosts.iter().chain(spokes).find(|host| host.node() == node);
        host.expect("it is one of the testbed's hosts").pid()
    }

    /// The guests in place of clients and of routers, with versions; the sender's first. `None` for a namespace.
    pub fn guests(&self) -> [[Option<String>; 2]; 2] {
        [CLIENTS, ROUTERS].map(|hosts| hosts.map(|(_, place)| self.network.hosts[place].guest_version()))
    }

    /// The CPU time of guest clients and of guest routers, counted by this machine's kernel; the sender's first.
    pub fn ticks(&self) -> [[Option<Ticks>; 2]; 2] {
        [CLIENTS, ROUTERS].map(|hosts| hosts.map(|(_, place)| self.network.hosts[place].guest_ticks()))
    }

    /// The clients' hosts, the sender's first; `None` if one is a guest.
    pub fn client_namespaces(&self) -> Option<[&Host; 2]> {
        let hosts = CLIENTS.map(|(_, place)| &self.network.hosts[place]);
        hosts.iter().all(|host| host.guest_version().is_none()).then_some(hosts)
    }

    /// The bytes that what runs on the container's host has carried so far, if an end is a container. If it has ended,
    /// the error says so.
    pub fn published_bytes(&mut self) -> Result<Option<u64>, TestbedError> {
        let Some(publishing) = &self.publishing else { return Ok(None) };
        let counted = publishing.settle(&self.network.hosts[publishing.host()]);
        counted.map(Some).map_err(|error| self.name_lost_companion(error))
    }

    /// The addresses of an end whose device keeps its segmentation offload on and is limited to single segments, which
    /// was checked; `None` if no device is.
    pub fn single_segment_addresses(&self) -> Option<[IpAddr; 2]> {
        let is_limited = self.mechanism.is_on_middle_link() && !self.network.offloads;
        is_limited.then(|| Site::Far.client_addresses(self.mechanism))
    }

    /// The bytes that it has carried since it had carried `before`, once they are as many as expected, or after a
    /// while. `None` if no end is a container. If it has ended, the error says so.
    pub fn published_since(&mut self, before: u64, expected: u64) -> Result<Option<u64>, TestbedError> {
        let Some(publishing) = &self.publishing else { return Ok(None) };
        let counted = publishing.wait_for_bytes(&self.network.hosts[publishing.host()], before, expected);
        counted.map(Some).map_err(|error| self.name_lost_companion(error))
    }

    /// The streams of the hosts' agents. Waits until guests have booted. Call it once.
    pub fn meet(&mut self) -> Result<RoutedStreams, TestbedError> {
        let [sender, router1, router2, receiver] = self.network.hosts.each_mut().map(Host::meet);
        let chain = [sender?, router1?, router2?, receiver?];
        let spokes = self.spokes.iter_mut().map(Spoke::meet).collect::<Result<_, _>>()?;
        Ok(RoutedStreams { chain, spokes })
    }

    /// A program beside the hosts, such as a translator, that has ended.
    pub fn lost_companion(&mut self) -> Option<String> {
        self.network.hosts.iter_mut().find_map(Host::lost_companion)
    }

    /// The given error, or that a program has ended, which caused it.
    fn name_lost_companion(&mut self, error: TestbedError) -> TestbedError {
        self.lost_companion().map_or(error, TestbedError)
    }

    /// Returns the given error, or, if a translator has ended and so caused it, an error that says so.
    pub(super) fn cause_of(&mut self, error: TestbedError, family: Family) -> TestbedError {
        let Some(lost) = self.lost_companion() else { return error };
        let said = last_words(&tayga_console(self.workdir.path()));
        refuse_family(self.mechanism, family, format!("{lost}{said}"))
    }
}
