//! Rigs: two hosts with agents, and the path between them.

pub(crate) mod adapter;
pub mod agent_copy;
pub mod agent_process;
pub mod both_families;
pub(crate) mod direct;
pub(crate) mod host_pair;
pub(crate) mod kernels;
pub mod names;
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

use crate::CampaignError;
use crate::rig::host_pair::HostPair;
use crate::rig::kernels::Kernels;
use crate::trial::evidence::Evidence;
use crate::trial::settings::{CpuAffinity, Steers};
use stacklab_model::{Cell, CpuScope, LinkBucket, LinkConfig, Probe};
use stacklab_store::HostRow;
use stacklab_testbed::{Host, TestbedError, burst_bytes};
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::{Collected, Path};

/// Two hosts with agents: on a virtual link, as real machines, with two routers or an access point between them.
pub(crate) trait Rig {
    /// The hosts at the ends.
    fn ends(&self) -> &HostPair;

    /// The hosts at the ends, mutable.
    fn ends_mut(&mut self) -> &mut HostPair;

    /// Whether a cell is measured here.
    fn is_for(&self, cell: &Cell) -> bool {
        self.ends().is_for(cell)
    }

    /// Whether a host is on this machine, where other load may disturb it.
    fn is_here(&self) -> bool {
        true
    }

    /// The hosts in which other programs can run, sender first: namespaces of this kernel. `None` elsewhere.
    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        None
    }

    /// A description in a sentence.
    fn describe(&self, link_config: &LinkConfig) -> String;

    /// Each host's facts, for the record.
    ///
    /// # Errors
    /// When a host is gone.
    fn hosts(&mut self, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError>;

    /// Whose CPU time the hosts' CPU figures cover in a cell's runs.
    fn cpu_scope(&self, cell: &Cell) -> CpuScope;

    /// The path of a cell's trials.
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path;

    /// The token bucket of the path's bottleneck, in messages of a cell; `None` if no link has one.
    fn bucket(&self, _link_config: &LinkConfig, _cell: &Cell) -> Option<LinkBucket> {
        None
    }

    /// The processors that the hosts of a trial run on.
    fn pinning(&self, cell: &Cell, probe: Probe) -> CpuAffinity {
        CpuAffinity::of(cell, probe, false, Steers::None)
    }

    /// Pins the hosts and their receive work to processors, if the hosts are on this machine.
    ///
    /// # Errors
    /// When this machine cannot do it.
    fn pin(&mut self, _pinning: CpuAffinity) -> Result<(), TestbedError> {
        Ok(())
    }

    /// Applies a cell's path settings.
    ///
    /// # Errors
    /// When the path cannot be configured.
    fn prepare(&mut self, _cell: &Cell) -> Result<(), TestbedError> {
        Ok(())
    }

    /// Begins to observe: called right before a trial. A path that draws random numbers draws them from the seed.
    ///
    /// # Errors
    /// When a host is gone or its path has changed.
    fn begin(&mut self, _seed: u64) -> Result<(), CampaignError> {
        Ok(())
    }

    /// Ends observing. Returns the observations of the trial, or of each arm of an interleaved trial, with the reports
    /// of both agents. Counts of a whole host belong to no arm. The clocks are compared afterwards.
    ///
    /// # Errors
    /// Errors of the agents, the routers and the services.
    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, CampaignError>;
}

/// The token bucket of a link of a testbed on this machine's kernel, or in a guest; `None` without a rate.
fn bucket_of(cell: &Cell, link_config: &LinkConfig, in_guest: bool) -> Option<LinkBucket> {
    let burst = burst_bytes(link_config.rate?, link_config.mtu_of(cell), in_guest).ok()?;
    LinkBucket::of(cell, link_config, burst)
}
