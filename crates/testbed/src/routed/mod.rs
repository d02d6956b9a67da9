//! Client, router, router, client in a row, and a transition mechanism between the routers.

pub(crate) mod lay;
mod node;
pub(crate) mod plan;
mod proof;
mod row;
mod seats;
pub(crate) mod wire;

pub use node::Node;
pub use plan::{Ends, ends};
pub use proof::Carried;
pub use row::RowPlan;

use crate::error::{Attempt, Fault, TestbedError};
use crate::folder::Folder;
use crate::host::{Guest, Streams, Ticks, last_words};
use crate::mechanism::translate::tayga;
use crate::pin;
use crate::prepare::prepare;
use lay::{Line, Lines};
use node::Machine;
use seats::{CLIENTS, Seats};
use stacklab_model::{Family, Mechanism, Systems};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The interface of a router that its middle link is at.
pub const MIDDLE_INTERFACE: &str = plan::MIDDLE;

/// Path MTUs are found again when they are so old: more than half of the ten minutes for which a kernel keeps them, before
/// which it takes no news of them.
const FORGETTING: Duration = Duration::from_secs(400);

/// Four hosts in a row. Dropping it kills their processes, and everything is gone.
#[derive(Debug)]
pub struct Routed {
    mechanism: Mechanism,
    machines: [Machine; 4],
    /// What each client is, where it is no namespace.
    clients: [Option<String>; 2],
    /// The same of each router.
    routers: [Option<String>; 2],
    carried: Vec<Carried>,
    folder: Folder,
    /// Of the ends' own links, bytes.
    mtus: [u32; 2],
    /// When the path MTUs were found, and whether they hold for as long as the testbed stands.
    found: Instant,
    lasting: bool,
}

impl Routed {
    /// Starts `program args` four times, each in a fresh network namespace, lays the links, builds the mechanism on both
    /// routers, and sees that packets of each family that it carries get through in the form that they should have. What other
    /// systems run as clients and as routers takes their places; `program` is then also the agent in them. Routers are
    /// waited for, and clients are booting when it returns ([`Routed::meet`] waits for them): what is seen of packets is seen
    /// between namespaces, before guests take their places as clients.
    ///
    /// Call it from the main thread: the processes are killed when the thread that started them ends. [`crate::enter`]
    /// must have succeeded before.
    ///
    /// # Errors
    /// What could not be done on which host, or at which hop packets end; a system that has no image here. Then nothing is left.
    pub fn build(plan: &RowPlan, program: &Path, args: &[impl AsRef<OsStr>]) -> Result<Self, TestbedError> {
        let RowPlan { kind, link_config, links, .. } = plan;
        let folder = Folder::create()?;
        // A router that is a guest runs its translator itself.
        let inside = plan.runs_tayga() && kind.routers.guests().next().is_some();
        let others = if inside { vec![tayga::program()?] } else { Vec::new() };
        let guests = |systems: &Systems| -> Result<[Option<Box<dyn Guest>>; 2], TestbedError> {
            let [near, far] = &systems.0;
            Ok([prepare(near, program, &others, &folder)?, prepare(far, program, &others, &folder)?])
        };
        let (clients, routers) = (guests(&kind.clients)?, guests(&kind.routers)?);
        let translators = plan.translates.each_ref().map(|translates| translates.by);
        let processors = pin::halves().unwrap_or_default();
        let seats = Seats { link_config, links, translators, program, processors };
        let mut routed = Self::lay(folder, &seats, kind.mechanism, routers, args)?;
        if clients.iter().any(Option::is_some) {
            routed.seat_clients(clients, &seats)?;
        }
        Ok(routed)
    }

    /// Starts the processes, lays the links, builds the mechanism and sees that it works.
    fn lay(
        folder: Folder,
        seats: &Seats<'_>,
        mechanism: Mechanism,
        guests: [Option<Box<dyn Guest>>; 2],
        args: &[impl AsRef<OsStr>],
    ) -> Result<Self, TestbedError> {
        let Seats { link_config, links, program, processors, .. } = seats;
        let [near, middle, far] = links.all().map(|(_, link)| Line::new(&link, link_config));
        let lines = Lines { near: near?, middle: middle?, far: far?, offloads: link_config.offloads };
        // Neighbours on the path share processors, so that each half of it has its own.
        let [near, far] = processors;
        let start = |node, processors: &[usize]| Machine::start(node, program, args, processors);
        let machines = [
            start(Node::Sender, near)?,
            start(Node::Router1, near)?,
            start(Node::Router2, far)?,
            start(Node::Receiver, far)?,
        ];
        let lasting = lay::links(&machines, &lines)?;
        let mut routed = Routed {
            mechanism,
            machines,
            clients: [None, None],
            routers: [None, None],
            carried: Vec::new(),
            folder,
            mtus: [links.near, links.far].map(|link| link.of(link_config).mtu),
            found: Instant::now(),
            lasting,
        };
        for (site, place) in CLIENTS {
            routed.machines[place].inside(|| lay::join(site.client(), site, mechanism))?;
        }
        routed.set_up_routers(guests, seats)?;
        routed.settle()?;
        for family in Family::ALL {
            let Some(ends) = ends(mechanism, *family) else { continue };
            let carried = proof::prove(&routed.machines, mechanism, *family, &ends, link_config.mtu);
            let carried = carried.map_err(|error| routed.blame(error, *family))?;
            routed.carried.push(carried);
        }
        routed.found = Instant::now();
        Ok(routed)
    }

    /// Finds the path MTUs again before the kernel forgets them, where it does: without root its setting for that is out of
    /// reach. To be called between trials.
    ///
    /// # Errors
    /// When an end does not find the path MTU any more.
    pub fn keep_path_mtus(&mut self) -> Result<(), TestbedError> {
        if self.lasting || self.found.elapsed() < FORGETTING {
            return Ok(());
        }
        for carried in &self.carried {
            proof::find_again(&self.machines, self.mechanism, carried, self.mtus)?;
        }
        self.found = Instant::now();
        Ok(())
    }

    /// How packets cross the middle link.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// What was seen of each family's packets when it was built.
    pub fn carried(&self) -> &[Carried] {
        &self.carried
    }

    /// A host's process.
    pub fn pid(&self, node: Node) -> u32 {
        self.machines[node as usize].pid()
    }

    /// What the clients are where they are no namespaces, with its version; the sender first.
    pub fn clients(&self) -> &[Option<String>; 2] {
        &self.clients
    }

    /// The same of the routers; the sender's first.
    pub fn routers(&self) -> &[Option<String>; 2] {
        &self.routers
    }

    /// What the processes of clients that are guests have run until now, as this machine counts it; the sender's first.
    pub fn client_ticks(&self) -> [Option<Ticks>; 2] {
        [self.machines[0].guest_ticks(), self.machines[3].guest_ticks()]
    }

    /// The same of routers.
    pub fn router_ticks(&self) -> [Option<Ticks>; 2] {
        [self.machines[1].guest_ticks(), self.machines[2].guest_ticks()]
    }

    /// What the hosts' agents write and read, in their order on the path; waits until guests have booted. Once.
    ///
    /// # Errors
    /// When a guest does not come up.
    pub fn meet(&mut self) -> Result<[Streams; 4], TestbedError> {
        let [sender, one, other, receiver] = self.machines.each_mut().map(Machine::meet);
        Ok([sender?, one?, other?, receiver?])
    }

    /// Waits until the hosts send nothing by themselves any more: IPv6 reports its multicast groups when links come up.
    fn settle(&self) -> Result<(), TestbedError> {
        let quiet = || -> Result<Vec<(u64, u64)>, TestbedError> {
            self.machines.iter().map(|machine| machine.inside(|| wire::packets(plan::NEAR))).collect()
        };
        let start = Instant::now();
        let mut last = quiet()?;
        loop {
            std::thread::sleep(Duration::from_millis(60));
            let now = quiet()?;
            if now == last {
                return Ok(());
            }
            last = now;
            if start.elapsed().as_secs() >= 5 {
                let late = io::Error::new(io::ErrorKind::TimedOut, "it still sends packets by itself");
                let fault: Result<(), Fault> = Err(late).attempt(format!("use {}", plan::NEAR));
                return fault.map_err(|fault| fault.at(Node::Sender));
            }
        }
    }

    /// The error, or that a translator has ended, which is its cause.
    fn blame(&mut self, error: TestbedError, family: Family) -> TestbedError {
        let Some(lost) = self.machines.iter_mut().find_map(Machine::lost) else { return error };
        let said = last_words(&tayga::console(self.folder.path()));
        TestbedError::NotCarried { mechanism: self.mechanism, family, reason: format!("{lost}{said}") }
    }
}
