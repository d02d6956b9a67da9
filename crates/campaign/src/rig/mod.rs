//! Rigs: two hosts with agents, and the network between them.

pub(crate) mod adapter;
pub mod agent_copy;
pub mod agent_process;
pub mod both_families;
pub(crate) mod direct;
pub(crate) mod host_pair;
pub mod placement;
pub(crate) mod remote;
pub mod remote_host;
pub mod rigs;
pub(crate) mod routed;
pub(crate) mod routed_source;
pub mod routed_text;
mod router_counts;
pub(crate) mod ssh;
pub mod wifi;

pub use host_pair::{names, router_name};

use crate::CampaignError;
use crate::rig::host_pair::{HostPair, Kernels};
use crate::trial::evidence::Evidence;
use crate::trial::settings::{self, CpuAffinity, Steers};
use stacklab_model::wifi::WifiConfig;
use stacklab_model::{
    Cell, CpuScope, Generator, LinkBucket, LinkConfig, Probe, RoutedKind, Services, System, Systems,
};
use stacklab_store::HostRow;
use stacklab_testbed::{Host, TestbedError, burst_bytes};
use stacklab_trial::Path;

/// Two hosts with agents: on a virtual link, as real machines, with two routers or an access point between them.
pub(crate) struct Rig {
    pub ends: HostPair,
    pub is: RigKind,
    pub network: Box<dyn Network>,
}

/// What a rig is for, and what it can do.
#[derive(Debug)]
pub(crate) struct RigKind {
    pub cells: Cells,
    /// Whether a host is on this machine, where other load may disturb it.
    pub here: bool,
    /// Whether TCP has the congestion control that Linux comes with, unless the study says otherwise.
    pub cubic: bool,
    /// Whether each host can have its own half of the processors.
    pub divides: bool,
    /// Whose receive work streams have on their own processors by default.
    pub steers: Steers,
    /// Whose CPU time the hosts' CPU figures cover.
    pub cpu: CpuCover,
    /// The links with a token bucket, if they have a rate, and whether the packets of the cell's mechanism cross them.
    pub buckets: Vec<(LinkConfig, bool)>,
    /// Whether these links are in a guest.
    pub in_guest: bool,
}

/// The cells that a rig measures.
#[derive(Debug)]
pub(crate) enum Cells {
    All,
    /// Those of hosts with these systems and services.
    OfHosts(Systems, Services),
    OfRouters(RoutedKind),
    /// Those whose settings turn the first network, the study's, into the second.
    OfWifi(Box<[WifiConfig; 2]>),
}

/// Whose CPU time the CPU figures of a rig's hosts cover.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CpuCover {
    /// That of the processes of guests, counted on this machine.
    Outside,
    /// As the hosts' systems and the processors of a cell determine.
    BySystem,
    /// That of a whole machine each, or of the one that both are.
    Machines,
}

impl Rig {
    pub(crate) fn is_for(&self, cell: &Cell) -> bool {
        match &self.is.cells {
            Cells::All => true,
            Cells::OfHosts(systems, services) => {
                Systems::of(cell) == *systems && Services::of(cell) == *services
            }
            Cells::OfRouters(kind) => RoutedKind::of(cell) == *kind,
            Cells::OfWifi(networks) => networks[0].of(cell) == networks[1],
        }
    }

    /// The processors that the hosts of a trial run on.
    pub(crate) fn affinity(&self, cell: &Cell, probe: Probe) -> CpuAffinity {
        CpuAffinity::of(cell, probe, self.is.divides, self.is.steers)
    }

    /// Whose CPU time the hosts' CPU figures cover in a cell's runs.
    pub(crate) fn cpu_scope(&self, cell: &Cell) -> CpuScope {
        let systems = &self.ends.systems.0;
        let own_kernel = |system: &System| *system != System::Namespace && system.counts_cpu();
        match self.is.cpu {
            _ if Generator::of(cell).is_other() => CpuScope::Threads,
            CpuCover::Outside => CpuScope::Outside,
            CpuCover::Machines if self.ends.one_machine() => CpuScope::Shared,
            CpuCover::Machines => CpuScope::Host,
            CpuCover::BySystem if !systems.iter().any(System::counts_cpu) => CpuScope::Outside,
            CpuCover::BySystem if systems.iter().all(own_kernel) => CpuScope::Host,
            CpuCover::BySystem => settings::cpu_scope(cell, self.is.steers),
        }
    }

    /// The token bucket of the path's bottleneck, in messages of a cell; `None` if no link has one.
    pub(crate) fn bucket(&self, cell: &Cell) -> Option<LinkBucket> {
        let mut plain = cell.clone();
        plain.settings.mechanism = None;
        let buckets = self.is.buckets.iter().filter_map(|(link, has_mechanism)| {
            let cell = if *has_mechanism { cell } else { &plain };
            let burst = burst_bytes(link.rate?, link.mtu_of(cell), self.is.in_guest).ok()?;
            LinkBucket::of(cell, link, burst)
        });
        buckets.min_by(|one, other| one.messages_per_second.total_cmp(&other.messages_per_second))
    }
}

/// The network between the two hosts of a rig.
pub(crate) trait Network {
    /// The hosts in which other programs can run, sender first: namespaces of this kernel. `None` elsewhere.
    fn tool_hosts(&self) -> Option<[&Host; 2]>;

    fn describe(&self, link_config: &LinkConfig) -> String;

    fn hosts(&mut self, ends: &mut HostPair, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError>;

    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path;

    /// Applies a cell's path settings, and pins the hosts and their receive work to processors.
    fn configure(&mut self, cell: &Cell, affinity: CpuAffinity) -> Result<(), TestbedError>;

    /// Begins to observe: called right before a trial. A path that draws random numbers draws them from the seed.
    fn begin(&mut self, ends: &mut HostPair, seed: u64) -> Result<(), CampaignError>;

    /// Ends observing, and adds the observations to the evidence of the trial, or of each arm of an interleaved trial.
    /// Counts of a whole host belong to no arm. The clocks are compared afterwards.
    fn end(&mut self, ends: &mut HostPair, evidence: &mut [Evidence]) -> Result<(), CampaignError>;
}
