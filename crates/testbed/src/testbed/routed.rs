//! A routed testbed: client, router, router, client, and a transition mechanism between the routers.

use crate::error::TestbedError;
use crate::guest::protocol::{ClientRole, GuestRole, PathCheck, RouterRole};
use crate::host::console::last_words;
use crate::host::guest::Guest;
use crate::host::launch::Host;
use crate::host::prepare::prepare;
use crate::host::streams::Streams;
use crate::host::ticks::Ticks;
use crate::host::workdir::Workdir;
use crate::link::addressing::{MIDDLE, Site, ends};
use crate::link::configure::{configure_on_client_network, configure_router, fix_path_mtus};
use crate::mechanism::keys::Keys;
use crate::mechanism::router::Router;
use crate::mechanism::translate::tayga;
use crate::testbed::network::{Network, Topology};
use crate::testbed::path_check::{check_path, refresh_path_mtus};
use crate::testbed::spec::RoutedSpec;
use crate::topology::Node;
use stacklab_model::{Family, Mechanism, Systems};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The interface of a router that its middle link is at.
pub const MIDDLE_INTERFACE: &str = MIDDLE;

/// Path MTUs are discovered again when they are so old: more than half of the ten minutes for which a kernel keeps them, before
/// which it takes no news of them.
const REFRESH: Duration = Duration::from_secs(400);

/// The clients' sites, and their places among the hosts.
const CLIENTS: [(Site, usize); 2] = [(Site::Near, 0), (Site::Far, 3)];
/// The same of the routers.
const ROUTERS: [(Site, usize); 2] = [(Site::Near, 1), (Site::Far, 2)];

type Guests = [Option<Box<dyn Guest>>; 2];

/// Four hosts in a row. Dropping it kills their processes, and everything is gone.
#[derive(Debug)]
pub struct Routed {
    mechanism: Mechanism,
    network: Network<4>,
    path_checks: Vec<PathCheck>,
    workdir: Workdir,
    /// Of the clients' own links, bytes; the sender's first.
    mtus: [u32; 2],
    /// When the path MTUs were discovered, and whether they hold for as long as the testbed stands.
    discovered: Instant,
    lasting: bool,
}

impl Routed {
    /// Starts `program args` four times, each in a fresh network namespace, builds the links and the mechanism on both
    /// routers, and checks that packets of each family that it carries get through in the form that they should have. What other
    /// systems run as clients and as routers takes their places; `program` is then also the agent in them. Routers are
    /// waited for, and clients are booting when it returns ([`Routed::meet`] waits for them): what is seen of packets is seen
    /// between namespaces, before guests take their places as clients.
    ///
    /// Call it from the main thread: the processes are killed when the thread that started them ends. [`crate::enter`]
    /// must have succeeded before.
    ///
    /// # Errors
    /// What could not be done on which host, or at which hop packets end; a system that has no image here. Then nothing is left.
    pub fn build(
        spec: &RoutedSpec,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        let RoutedSpec { kind, link_config, links, .. } = spec;
        let mechanism = kind.mechanism;
        let workdir = Workdir::create()?;
        // A router that is a guest runs its translator itself.
        let inside = spec.runs_tayga() && kind.routers.guests().next().is_some();
        let others = if inside { vec![tayga::program()?] } else { Vec::new() };
        let guests = |systems: &Systems| -> Result<Guests, TestbedError> {
            let [near, far] = &systems.0;
            Ok([prepare(near, program, &others, &workdir)?, prepare(far, program, &others, &workdir)?])
        };
        let (clients, routers) = (guests(&kind.clients)?, guests(&kind.routers)?);
        let topology = Topology::routed(links, link_config, mechanism)?;
        let network = Network::build(&topology, program, args)?;
        network.raise(&topology)?;
        let lasting = network.keeps_path_mtus;
        let mut routed = Routed {
            mechanism,
            network,
            path_checks: Vec::new(),
            workdir,
            mtus: [links.near, links.far].map(|link| link.of(link_config).mtu),
            discovered: Instant::now(),
            lasting,
        };
        for (site, place) in CLIENTS {
            let join = || configure_on_client_network(site.client(), site, mechanism);
            routed.network.hosts[place].inside(join)?;
        }
        routed.set_up_routers(&routers, spec, program)?;
        routed.network.wait_until_quiet()?;
        routed.check_paths(link_config.mtu)?;
        if clients.iter().any(Option::is_some) {
            routed.start_clients(&clients, spec, program)?;
        }
        Ok(routed)
    }

    /// Configures the routers, or starts guests in their places and waits until they have done it.
    fn set_up_routers(
        &mut self,
        guests: &Guests,
        spec: &RoutedSpec,
        program: &Path,
    ) -> Result<(), TestbedError> {
        let keys = Keys::draw(self.mechanism);
        let keys = keys.map_err(|fault| fault.at(Site::Near.router()))?;
        let (mtu, offloads) = (spec.link_config.mtu, spec.link_config.offloads);
        for (number, ((site, place), guest)) in ROUTERS.into_iter().zip(guests).enumerate() {
            let translator = spec.translates[number].by;
            let router = Router { site, mechanism: self.mechanism, mtu, translator, keys: keys[number] };
            match guest {
                None => self.configure_router(place, &router)?,
                Some(guest) => {
                    let role = RouterRole { router, near_mtu: self.mtus[number], offloads };
                    self.start_guest(place, guest.as_ref(), GuestRole::Router(role), program)?;
                }
            }
        }
        ROUTERS.iter().try_for_each(|(_, place)| self.network.hosts[*place].come_up())
    }

    /// Configures a router that is a namespace, and starts its translator where that is a program.
    fn configure_router(&mut self, place: usize, router: &Router) -> Result<(), TestbedError> {
        let host = &mut self.network.hosts[place];
        host.inside(|| configure_router(router))?;
        let translator = tayga::command(router, self.workdir.path());
        match translator.map_err(|fault| fault.at(host.node()))? {
            Some(mut command) => host.start_companion(&mut command),
            None => Ok(()),
        }
    }

    /// Starts guests in the clients' places and does not wait until they have booted. Their interfaces have the hardware and IP
    /// addresses that the namespaces had, so the routers see no difference; gVisor takes over the namespace's own. From then on
    /// kernels at both ends have their path MTUs by routes: nobody can have a guest discover them again.
    fn start_clients(
        &mut self,
        guests: &Guests,
        spec: &RoutedSpec,
        program: &Path,
    ) -> Result<(), TestbedError> {
        let mechanism = self.mechanism;
        let (middle_mtu, offloads) = (spec.link_config.mtu, spec.link_config.offloads);
        for (number, ((site, place), guest)) in CLIENTS.into_iter().zip(guests).enumerate() {
            let guest = guest.as_ref();
            if !guest.is_some_and(|guest| guest.wants_a_tap()) {
                let fix = || fix_path_mtus(site, mechanism, middle_mtu);
                self.network.hosts[place].inside(fix)?;
            }
            let Some(guest) = guest else { continue };
            let role = ClientRole { site, mechanism, mtu: self.mtus[number], middle_mtu, offloads };
            self.start_guest(place, guest.as_ref(), GuestRole::Client(role), program)?;
        }
        self.lasting = true;
        Ok(())
    }

    fn start_guest(
        &mut self,
        place: usize,
        guest: &dyn Guest,
        role: GuestRole,
        program: &Path,
    ) -> Result<(), TestbedError> {
        self.network.hand_over(place, guest, &role)?;
        self.network.start_guest(place, guest, role, program, &self.workdir)
    }

    /// Checks the path of each family that the mechanism carries.
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

    /// Has both ends discover the path MTUs again before the kernel forgets them, where it does: without root its setting for
    /// that is out of reach. To be called between trials.
    ///
    /// # Errors
    /// When an end does not discover the path MTU any more.
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

    /// How packets cross the middle link.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// What was seen of each family's packets when it was built.
    pub fn path_checks(&self) -> &[PathCheck] {
        &self.path_checks
    }

    /// A host's process.
    pub fn pid(&self, node: Node) -> u32 {
        self.network.hosts[node as usize].pid()
    }

    /// What the clients are where they are no namespaces, with its version; the sender first.
    pub fn clients(&self) -> [Option<String>; 2] {
        CLIENTS.map(|(_, place)| self.network.hosts[place].guest_version())
    }

    /// The same of the routers; the sender's first.
    pub fn routers(&self) -> [Option<String>; 2] {
        ROUTERS.map(|(_, place)| self.network.hosts[place].guest_version())
    }

    /// What the processes of clients that are guests have run until now, as this machine counts it; the sender's first.
    pub fn client_ticks(&self) -> [Option<Ticks>; 2] {
        CLIENTS.map(|(_, place)| self.network.hosts[place].guest_ticks())
    }

    /// The same of routers.
    pub fn router_ticks(&self) -> [Option<Ticks>; 2] {
        ROUTERS.map(|(_, place)| self.network.hosts[place].guest_ticks())
    }

    /// What the hosts' agents write and read, in their order on the path; waits until guests have booted. Once.
    ///
    /// # Errors
    /// When a guest does not come up.
    pub fn meet(&mut self) -> Result<[Streams; 4], TestbedError> {
        let [sender, router1, router2, receiver] = self.network.hosts.each_mut().map(Host::meet);
        Ok([sender?, router1?, router2?, receiver?])
    }

    /// The error, or that a translator has ended, which is its cause.
    fn cause_of(&mut self, error: TestbedError, family: Family) -> TestbedError {
        let Some(lost) = self.network.hosts.iter_mut().find_map(Host::lost_companion) else { return error };
        let said = last_words(&tayga::console(self.workdir.path()));
        TestbedError::NotCarried { mechanism: self.mechanism, family, reason: format!("{lost}{said}") }
    }
}
