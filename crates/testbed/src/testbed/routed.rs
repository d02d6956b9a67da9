//! A routed testbed: sender, router, router, receiver, and a transition mechanism between the routers.

use crate::host::namespaces_only;
use crate::kernel::router_thread::{RouterThread, start_threads};
use crate::link::{configure_on_client_network, configure_router, fix_path_mtus};
use crate::mechanism::conntrack::count_connection_packets;
use crate::mechanism::esp::ip_program;
use crate::mechanism::nat::nft_program;
use crate::mechanism::rules::count_packets;
use crate::mechanism::translate::{tayga_command, tayga_console, tayga_program};
use crate::mechanism::translates_at;
use crate::mechanism::tunnels::Keys;
use crate::testbed::network::{Link, Network};
use crate::testbed::path_check::{check_path, not_carried, refresh_path_mtus};
use crate::{
    AtHost, Attempt, Guest, Host, INTERFACE, MIDDLE, Node, PathCheck, PathRole, Prepare, Router, Site,
    Streams, TestbedError, Ticks, Translates, Workdir, ends, last_words,
};
use stacklab_model::{
    Family, LinkConfig, Links, Mechanism, RoutedKind, RouterQueue, Rules, Setup, Systems, Tables, Tracking,
    Translator,
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The age at which path MTUs are discovered again. A kernel keeps a path MTU for ten minutes and accepts no update
/// before half of that time.
const REFRESH: Duration = Duration::from_secs(400);

/// The sites of clients and routers, and their positions among the hosts.
const CLIENTS: [(Site, usize); 2] = [(Site::Near, 0), (Site::Far, 3)];
const ROUTERS: [(Site, usize); 2] = [(Site::Near, 1), (Site::Far, 2)];

type Guests = [Option<Box<dyn Guest>>; 2];

/// A chain of four hosts. Dropping it kills their processes and removes everything.
#[derive(Debug)]
pub struct Routed {
    /// The mechanism on the middle link.
    pub mechanism: Mechanism,
    network: Network<4>,
    /// The results of the path checks when the testbed was built, one for each carried family.
    pub path_checks: Vec<PathCheck>,
    workdir: Workdir,
    /// The MTUs of the clients' links, bytes; the sender's first.
    mtus: [u32; 2],
    /// When the path MTUs were discovered, and whether they stay valid as long as the testbed exists.
    discovered: Instant,
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
        let guests = |systems: &Systems| -> Result<Guests, TestbedError> {
            let [near, far] = &systems.0;
            Ok([prepare(near, program, &others, &workdir)?, prepare(far, program, &others, &workdir)?])
        };
        let clients = guests(&kind.clients)?;
        let routers = guests(&kind.routers)?;
        let nodes = [
            (Node::Sender, Site::Near.client_addresses(mechanism)),
            (Node::Router1, Site::Near.gateways(mechanism)),
            (Node::Router2, Site::Far.gateways(mechanism)),
            (Node::Receiver, Site::Far.client_addresses(mechanism)),
        ];
        let chain = Link::routed(links, link_config)?;
        let network = Network::build(nodes, chain, link_config.offloads, program, args)?;
        network.raise()?;
        let lasting = network.keeps_path_mtus;
        let mut routed = Routed {
            mechanism,
            network,
            path_checks: Vec::new(),
            workdir,
            mtus: [links.near, links.far].map(|link| link.of(link_config).mtu),
            discovered: Instant::now(),
            lasting,
            threads: Vec::new(),
        };
        for (site, place) in CLIENTS {
            let join = || configure_on_client_network(site.client(), site, mechanism);
            routed.network.hosts[place].inside(join)?;
        }
        routed.set_up_routers(&routers, spec, program)?;
        if kind.queue == RouterQueue::Thread {
            routed.start_threads()?;
        }
        routed.network.wait_until_quiet()?;
        if !mechanism.reports_path_mtu() {
            routed.fix_path_mtus(link_config.mtu)?;
        }
        routed.check_paths(link_config.mtu)?;
        if kind.rules.count > 0 && !inside {
            routed.check_rules()?;
        }
        if kind.tables.tracking != Tracking::Off && !inside {
            routed.check_tracking()?;
        }
        if clients.iter().any(Option::is_some) {
            routed.start_clients(&clients, spec, program)?;
        }
        Ok(routed)
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
            let mut router = Router {
                site,
                mechanism: self.mechanism,
                mtu,
                translator,
                rules: Rules::default(),
                tables: Tables::default(),
                keys: keys[number],
            };
            if site == Site::Near {
                router.rules = spec.kind.rules;
                router.tables = spec.kind.tables;
            }
            match guest {
                None => self.configure_router(place, &router)?,
                Some(guest) => {
                    let role = PathRole::Router { router, near_mtu: self.mtus[number] };
                    self.start_guest(place, guest.as_ref(), role, program)?;
                }
            }
        }
        ROUTERS.iter().try_for_each(|(_, place)| self.network.hosts[*place].come_up())
    }

    fn configure_router(&mut self, place: usize, router: &Router) -> Result<(), TestbedError> {
        let host = &mut self.network.hosts[place];
        host.inside(|| configure_router(router))?;
        let translator = tayga_command(router, self.workdir.path());
        match translator.at(host.node())? {
            Some(mut command) => host.start_companion(&mut command),
            None => Ok(()),
        }
    }

    /// Gives each ingress of the routers a kernel thread. They share the receiver's processors: the sender's thread
    /// needs its own.
    fn start_threads(&mut self) -> Result<(), TestbedError> {
        let processors = self.network.processors_of(CLIENTS[1].1).to_vec();
        for (_, place) in ROUTERS {
            let host = &self.network.hosts[place];
            self.threads.extend(host.inside(|| start_threads(&[INTERFACE, MIDDLE], &processors))?);
        }
        Ok(())
    }

    /// The kernel threads of its routers that this process can see, if they have any.
    pub fn router_threads(&self) -> &[RouterThread] {
        &self.threads
    }

    /// Gives both clients the path MTU, which then lasts.
    fn fix_path_mtus(&mut self, middle_mtu: u32) -> Result<(), TestbedError> {
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
            if !has_a_route && !guest.is_some_and(|guest| guest.wants_a_tap()) {
                let fix = || fix_path_mtus(site, mechanism, middle_mtu);
                self.network.hosts[place].inside(fix)?;
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

    fn check_paths(&mut self, mtu: u32) -> Result<(), TestbedError> {
        for family in Family::ALL {
            let Some(ends) = ends(self.mechanism, *family) else { continue };
            let check = check_path(&self.network.hosts, self.mechanism, *family, &ends, mtu);
            let check = check.map_err(|error| self.cause_of(error, *family))?;
            self.path_checks.push(check);
        }
        self.discovered = Instant::now();
        Ok(())
    }

    /// Whether what crossed the near router was compared with all rules of its firewall.
    fn check_rules(&self) -> Result<(), TestbedError> {
        let router = &self.network.hosts[ROUTERS[0].1];
        for check in &self.path_checks {
            if router.inside(|| count_packets(check.family))? == 0 {
                let error = format!("no {} packet has passed all rules of its firewall", check.family);
                return Err::<(), _>(error).attempt("check the firewall").at(router.node());
            }
        }
        Ok(())
    }

    /// Whether the near router tracked what crossed it.
    fn check_tracking(&self) -> Result<(), TestbedError> {
        let router = &self.network.hosts[ROUTERS[0].1];
        for check in &self.path_checks {
            if router.inside(|| count_connection_packets(check.family))? == 0 {
                let error = format!("no {} packet has been tracked", check.family);
                return Err::<(), _>(error).attempt("check connection tracking").at(router.node());
            }
        }
        Ok(())
    }

    /// Discovers the path MTUs at both ends again before the kernel forgets them. Does nothing if they do not expire;
    /// changing their expiry needs root. Call it between trials.
    pub fn keep_path_mtus(&mut self) -> Result<(), TestbedError> {
        if self.lasting || self.discovered.elapsed() < REFRESH {
            return Ok(());
        }
        for check in &self.path_checks {
            refresh_path_mtus(&self.network.hosts, self.mechanism, check, self.mtus)?;
        }
        self.discovered = Instant::now();
        Ok(())
    }

    /// The process ID of a host, which is one of the four.
    pub fn pid(&self, node: Node) -> u32 {
        let host = self.network.hosts.iter().find(|host| host.node() == node);
        host.expect("it is one of the four hosts").pid()
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

    /// The streams of the hosts' agents, in path order. Waits until guests have booted. Call it once.
    pub fn meet(&mut self) -> Result<[Streams; 4], TestbedError> {
        let [sender, router1, router2, receiver] = self.network.hosts.each_mut().map(Host::meet);
        Ok([sender?, router1?, router2?, receiver?])
    }

    /// Returns the given error, or, if a translator has ended and so caused it, an error that says so.
    fn cause_of(&mut self, error: TestbedError, family: Family) -> TestbedError {
        let Some(lost) = self.network.hosts.iter_mut().find_map(Host::lost_companion) else { return error };
        let said = last_words(&tayga_console(self.workdir.path()));
        not_carried(self.mechanism, family, format!("{lost}{said}"))
    }
}

/// The specification of a routed testbed to build.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutedSpec {
    /// The mechanism between the routers, and the systems of the hosts.
    pub kind: RoutedKind,
    /// The translator of each router, if the mechanism translates; the sender's first.
    pub translates: [Translates; 2],
    /// The settings that its links share.
    pub link_config: LinkConfig,
    /// The settings of each link.
    pub links: Links,
}

impl RoutedSpec {
    /// Four namespaces with equal links, and programs as translators.
    pub fn of_namespaces(mechanism: Mechanism, link_config: &LinkConfig) -> Self {
        let tayga = Translates { by: Translator::Tayga, version: None };
        let kind = RoutedKind::of_namespaces(mechanism);
        let links = Links::default();
        RoutedSpec { kind, translates: [tayga.clone(), tayga], link_config: link_config.clone(), links }
    }

    /// The translators, the sender's router first. Empty if the mechanism does not translate.
    pub fn translators(&self) -> Vec<&Translates> {
        let sites = [Site::Near, Site::Far].into_iter().zip(&self.translates);
        let translating = sites.filter(|(site, _)| translates_at(self.kind.mechanism, *site));
        translating.map(|(_, translates)| translates).collect()
    }

    /// Whether a router keeps connection state: connections start at the sender only, and their ports may change.
    pub fn keeps_state(&self) -> bool {
        let mechanism = self.kind.mechanism;
        mechanism.changes_source() || self.translates[1].by.keeps_state(mechanism)
    }

    /// Whether a router translates with tayga.
    pub fn runs_tayga(&self) -> bool {
        self.translators().iter().any(|translates| translates.by == Translator::Tayga)
    }

    /// The programs that its routers run beside this one. The error names the one that is missing.
    pub fn programs(&self) -> Result<Vec<PathBuf>, TestbedError> {
        let mut programs = Vec::new();
        if self.runs_tayga() {
            programs.push(tayga_program()?);
        }
        if self.kind.mechanism.changes_source() || self.kind.filters() {
            programs.push(nft_program()?);
        }
        if self.kind.mechanism.tunnel().is_some_and(|tunnel| tunnel.device.setup == Setup::Esp) {
            programs.push(ip_program()?);
        }
        Ok(programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_translates_is_told_of_the_routers_that_do() {
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
        let jool = Translates { by: Translator::Jool, version: Some("4.1.13".to_owned()) };
        let said = |mechanism, far_is_jool: bool| {
            let plain = RoutedSpec::of_namespaces(mechanism, &link_config);
            let [near, far] = plain.translates.clone();
            let [near, far] = if far_is_jool { [near, jool.clone()] } else { [jool.clone(), far] };
            let spec = RoutedSpec { translates: [near, far], ..plain };
            let names: Vec<String> = spec.translators().iter().map(ToString::to_string).collect();
            (names.join(", "), spec.keeps_state(), spec.runs_tayga())
        };
        let text = str::to_owned;
        assert_eq!(said(Mechanism::Native, true), (String::new(), false, false));
        assert_eq!(said(Mechanism::Nat64, true), (text("Jool 4.1.13"), true, false));
        assert_eq!(said(Mechanism::Nat64, false), (text("tayga"), false, true));
        assert_eq!(said(Mechanism::Siit, false), (text("Jool 4.1.13"), false, false));
        assert_eq!(said(Mechanism::Xlat464, true), (text("tayga, Jool 4.1.13"), true, true));
        assert_eq!(said(Mechanism::Xlat464, false), (text("Jool 4.1.13, tayga"), false, true));
    }
}
