//! What a trial runs on: two hosts with agents, and the path between them.

pub mod direct;
pub mod host_pair;
pub mod names;
pub mod placement;
pub mod remote;
pub mod remote_host;
pub mod rigs;
pub mod routed;
pub mod routed_source;
pub mod routed_text;

use crate::failure::Failure;
use crate::rig::host_pair::HostPair;
use crate::trial::evidence::Evidence;
use crate::trial::settings::CpuAffinity;
use stacklab_model::{Cell, CpuScope, LinkConfig, Probe};
use stacklab_store::HostRow;
use stacklab_testbed::TestbedError;
use stacklab_traffic::protocol::AgentError;
use stacklab_traffic::trial::{Collected, Path};

/// Two hosts with agents, on a link built for them, as real machines, or with two routers between them.
pub trait Rig {
    /// The hosts at the ends.
    fn ends(&self) -> &HostPair;

    /// The same, to ask them.
    fn ends_mut(&mut self) -> &mut HostPair;

    /// Whether a cell is measured here.
    fn is_for(&self, cell: &Cell) -> bool;

    /// What it is, in a sentence.
    fn describe(&self, link_config: &LinkConfig) -> String;

    /// Each host's facts, for the record.
    ///
    /// # Errors
    /// When a host is gone.
    fn hosts(&mut self) -> Result<Vec<HostRow>, Failure>;

    /// Whose CPU the hosts' CPU figures are in a cell's runs.
    fn cpu_scope(&self, cell: &Cell) -> CpuScope;

    /// The path of a cell's trials.
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path;

    /// Which processors the hosts of a trial run on.
    fn pinning(&self, cell: &Cell, probe: Probe) -> CpuAffinity {
        CpuAffinity::of(cell, probe, false, false)
    }

    /// Puts the hosts and their receive work on processors, where they are this machine's to give.
    ///
    /// # Errors
    /// When this machine cannot do it.
    fn pin(&mut self, _pinning: CpuAffinity) -> Result<(), TestbedError> {
        Ok(())
    }

    /// Gives the path what a cell sets of it.
    ///
    /// # Errors
    /// When the path cannot be set so.
    fn prepare(&mut self, _cell: &Cell) -> Result<(), TestbedError> {
        Ok(())
    }

    /// Begins to observe: called right before a trial.
    ///
    /// # Errors
    /// When a host is gone or its path is not as it was.
    fn begin(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Ends observing. Gives what was observed, with what the agents of both hosts reported; the clocks are compared
    /// after it.
    ///
    /// # Errors
    /// Those of the agents, of routers and of services.
    fn end(&mut self, collected: Result<Collected, AgentError>) -> Result<Evidence, Failure>;
}
