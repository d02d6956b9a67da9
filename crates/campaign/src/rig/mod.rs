//! Rigs: two hosts with agents, and the network between them.

pub(crate) mod adapter;
mod addresses;
pub(crate) mod affinity;
mod agent;
mod container;
mod direct;
mod freed_memory;
pub(crate) mod host_pair;
mod in_guest;
mod iperf3_server;
mod machines;
mod rigs;
mod routed;
mod routed_source;
mod routed_text;
mod ssh;
mod stamp_reflector;
mod wifi;

pub use addresses::read_addresses;
pub use agent::{AgentProcess, remove_copies};
pub use host_pair::{names, router_name};
pub use iperf3_server::{Iperf3Server, ServerWay};
pub use machines::{Way, reach};
pub(crate) use rigs::without_routers;
pub use rigs::{Rigs, RoutedPlacement};
pub(crate) use routed_text::translators;
pub use stamp_reflector::{SessionSettings, SessionTraffic, StampReflector, check_answers};
pub use wifi::ACCESS_POINT;

use crate::CampaignError;
use crate::trial::Evidence;
use crate::trial::SingleRun;
use affinity::{CpuAffinity, Steers};
use host_pair::{HostPair, Kernels};
use stacklab_model::wifi::WifiConfig;
use stacklab_model::{
    Cell, CpuScope, LinkBucket, LinkConfig, Probe, RoutedKind, RunRecord, Services, System, Systems, Trial,
};
use stacklab_store::HostRow;
use stacklab_study::{Plan, Study};
use stacklab_testbed::kernel::router_thread::RouterThread;
use stacklab_testbed::{Host, Routed, TestbedError, Ticks, burst_bytes};
use stacklab_traffic::host::{facts, now_unix_ns};
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::Path;

/// The hosts between which the trials of a study run.
pub trait TrialHosts {
    /// A description of them and of the network between them, in a sentence.
    fn describe(&self, study: &Study) -> String;

    /// Each host's facts.
    fn hosts(&mut self) -> Result<Vec<HostRow>, CampaignError>;

    /// Whose CPU time the hosts' CPU figures cover in all of a study's runs.
    fn cpu_scope(&self, study: &Study) -> CpuScope;

    /// Runs one trial, or the arms of an interleaved trial together. `earlier` are the runs of the same block so far:
    /// a stream may have the load that a search among them found.
    fn run(
        &mut self,
        study: &Study,
        plan: &Plan,
        arms: &[Trial],
        earlier: &[RunRecord],
    ) -> Result<Vec<RunRecord>, CampaignError>;

    /// Runs the one trial of a study of a single cell; its figures are kept if it is interrupted. Agents poll for
    /// `poll_ns` before they sleep.
    fn run_once(
        &mut self,
        study: &Study,
        plan: &Plan,
        trial: &Trial,
        poll_ns: u64,
    ) -> Result<SingleRun, CampaignError>;
}

/// The row of this host, where the other one has no agent.
fn this_host() -> HostRow {
    HostRow {
        name: "here".to_owned(),
        kind: "this host".to_owned(),
        since_unix_ns: now_unix_ns(),
        facts: facts::collect(),
    }
}

/// Two hosts with agents: on a virtual link, as real machines, with two routers or an access point between them.
pub(crate) struct Rig {
    pub ends: HostPair,
    pub is: RigKind,
    /// In a sentence; of routed testbeds in a line that all have in common, and one for the mechanism.
    pub description: String,
    pub network: Box<dyn RigNetwork>,
    /// CPU time of the guests' processes when the trial began.
    ticks: [Option<Ticks>; 2],
}

/// What a rig is for, and what it can do.
#[derive(Debug, Default)]
pub(crate) struct RigKind {
    pub cells: CellSet,
    /// Whether a host is on this machine, where other load may disturb it.
    pub here: bool,
    /// Whether TCP has the congestion control that Linux comes with, unless the study says otherwise.
    pub cubic: bool,
    /// Whether each host can have its own half of the processors.
    pub divides: bool,
    /// Whether each host has them as long as the rig exists.
    pub is_divided: bool,
    /// Whose receive work streams have on their own processors by default.
    pub steers: Steers,
    pub cpu: CpuCover,
    /// The links with a token bucket, if they have a rate.
    pub buckets: Vec<BucketLink>,
    /// Whether these links are in a guest.
    pub in_guest: bool,
}

#[derive(Debug)]
pub(crate) struct BucketLink {
    pub link: LinkConfig,
    /// Whether the packets of the cell's mechanism cross it.
    pub has_mechanism: bool,
    /// How many of these links share the traffic: one for each customer.
    pub count: u32,
}

#[derive(Debug, Default)]
pub(crate) enum CellSet {
    #[default]
    All,
    /// Those of hosts with these systems and services.
    OfHosts(Systems, Services),
    OfRouters(RoutedKind),
    /// Those whose settings turn the first network, the study's, into the second.
    OfWifi(Box<[WifiConfig; 2]>),
}

/// Whose CPU time the CPU figures of a rig's hosts cover.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum CpuCover {
    /// That of the processes of guests, counted on this machine.
    Outside,
    /// As the hosts' systems and the processors of a cell determine.
    #[default]
    BySystem,
    /// That of a whole machine each, or of the one that both are.
    Machines,
}

impl Rig {
    pub(crate) fn new(
        ends: HostPair,
        is: RigKind,
        description: String,
        network: impl RigNetwork + 'static,
    ) -> Self {
        Rig { ends, is, description, network: Box::new(network), ticks: [None, None] }
    }

    pub(crate) fn is_for(&self, cell: &Cell) -> bool {
        match &self.is.cells {
            CellSet::All => true,
            CellSet::OfHosts(systems, services) => {
                Systems::of(cell) == *systems && Services::of(cell) == *services
            }
            CellSet::OfRouters(kind) => RoutedKind::of(cell) == *kind,
            CellSet::OfWifi(networks) => networks[0].of(cell) == networks[1],
        }
    }

    pub(crate) fn affinity(&self, cell: &Cell, probe: Probe) -> CpuAffinity {
        CpuAffinity::of(cell, probe, self.is.divides, self.is.steers)
    }

    /// Whether sender and receiver share no processor.
    pub(crate) fn separates_hosts(&self, cell: &Cell, probe: Probe) -> bool {
        self.is.is_divided || self.affinity(cell, probe).divided
    }

    pub(crate) fn cpu_scope(&self, cell: &Cell) -> CpuScope {
        let systems = &self.ends.systems.0;
        match self.is.cpu {
            _ if cell.has_other_programs() => CpuScope::Threads,
            CpuCover::Outside => CpuScope::Outside,
            CpuCover::Machines if self.ends.one_machine() => CpuScope::Shared,
            CpuCover::Machines => CpuScope::Host,
            CpuCover::BySystem if !systems.iter().any(System::counts_cpu) => CpuScope::Outside,
            CpuCover::BySystem if systems.iter().all(System::counts_own_cpu) => CpuScope::Host,
            CpuCover::BySystem => affinity::cpu_scope(cell, self.is.steers),
        }
    }

    /// The token bucket of the path's bottleneck, in messages of a cell; `None` if no link has one.
    pub(crate) fn bucket(&self, cell: &Cell) -> Option<LinkBucket> {
        let mut plain = cell.clone();
        plain.settings.mechanism = None;
        let buckets = self.is.buckets.iter().filter_map(|BucketLink { link, has_mechanism, count }| {
            let cell = if *has_mechanism { cell } else { &plain };
            let burst = burst_bytes(link.rate?, link.mtu_of(cell), self.is.in_guest).ok()?;
            let LinkBucket { messages_per_second, burst } = LinkBucket::of(cell, link, burst)?;
            let count = f64::from(*count);
            Some(LinkBucket { messages_per_second: count * messages_per_second, burst: count * burst })
        });
        buckets.min_by(|one, other| one.messages_per_second.total_cmp(&other.messages_per_second))
    }

    /// Begins to observe: called right before a trial. A path that draws random numbers draws them from the seed.
    pub(crate) fn begin(&mut self, seed: u64) -> Result<(), CampaignError> {
        self.network.begin(&mut self.ends, seed)?;
        self.ticks = self.guest_ticks();
        Ok(())
    }

    /// Ends observing, and adds the observations to the evidence of the trial, or of each arm of an interleaved trial.
    /// The clocks are compared afterwards.
    pub(crate) fn end(&mut self, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        let after = self.guest_ticks();
        let spans = [0, 1].map(|host| Some([self.ticks[host]?, after[host]?]));
        // Counts of a whole host belong to no arm.
        if let [only] = &mut *evidence {
            only.guest_cpu = spans;
        }
        self.network.end(evidence)
    }

    /// CPU time so far of the processes of guests that do not count all of their CPU time themselves.
    fn guest_ticks(&self) -> [Option<Ticks>; 2] {
        match self.is.cpu {
            CpuCover::Outside => self.network.guest_ticks(),
            _ => find_uncounted_cpu(&self.ends.systems, || self.network.guest_ticks()),
        }
    }
}

/// CPU time of the processes of those hosts whose systems do not count all of it themselves.
fn find_uncounted_cpu(systems: &Systems, all: impl FnOnce() -> [Option<Ticks>; 2]) -> [Option<Ticks>; 2] {
    let counts = systems.0.each_ref().map(System::counts_cpu);
    if counts == [true; 2] {
        return [None, None];
    }
    let all = all();
    [0, 1].map(|host| all[host].filter(|_| !counts[host]))
}

/// The network between the two hosts of a rig. By default there is nothing on it but the two, and nothing to do.
pub(crate) trait RigNetwork {
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path;

    /// The hosts in which other programs can run, sender first: namespaces of this kernel.
    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        None
    }

    /// Adds the hosts between the two to their rows.
    fn add_hosts(&mut self, _rows: &mut Vec<HostRow>, _kernels: &mut Kernels) -> Result<(), AgentError> {
        Ok(())
    }

    /// CPU time so far of the processes of hosts that are guests, counted on this machine.
    fn guest_ticks(&self) -> [Option<Ticks>; 2] {
        [None, None]
    }

    /// Packets so far that the routers' queues had no room for: those of their ingress, and of their translators. The
    /// sender's interface counts those of the first router's ingress.
    fn count_queue_drops(&mut self) -> Result<u64, AgentError> {
        Ok(0)
    }

    /// The routed testbed, if it is on this kernel and its routers' tables can be read.
    fn find_routers(&self) -> Option<&Routed> {
        None
    }

    /// The kernel threads of routers that this process can see.
    fn router_threads(&self) -> &[RouterThread] {
        &[]
    }

    /// Applies a cell's path settings, and pins the hosts and their receive work to processors.
    fn configure(&mut self, _cell: &Cell, _affinity: CpuAffinity) -> Result<(), TestbedError> {
        Ok(())
    }

    /// As [`Rig::begin`].
    fn begin(&mut self, _ends: &mut HostPair, _seed: u64) -> Result<(), CampaignError> {
        Ok(())
    }

    /// As [`Rig::end`]. Counts of a whole host belong to no arm.
    fn end(&mut self, _evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        Ok(())
    }
}
