//! Facts of hosts on the kernels of a campaign.

use stacklab_model::{HostFacts, NoiseFloor};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use std::collections::BTreeMap;

/// The kernels of a campaign's hosts, by boot ID, with their noise floors. Each is measured once: it is that of a
/// kernel's clock, timers and sockets, which all of its network namespaces share, and takes a guest more than a second.
#[derive(Debug, Default)]
pub(crate) struct Kernels(BTreeMap<String, NoiseFloor>);

impl Kernels {
    /// The facts of an agent's host with its noise floor.
    ///
    /// # Errors
    /// When the agent is gone.
    pub(crate) fn facts(&mut self, agent: &mut AgentClient) -> Result<HostFacts, AgentError> {
        let facts = agent.facts()?;
        let known = facts.boot_id.as_ref().and_then(|kernel| self.0.get(kernel)).cloned();
        let floor = known.map_or_else(|| agent.noise_floor(), Ok)?;
        if let Some(kernel) = &facts.boot_id {
            self.0.insert(kernel.clone(), floor.clone());
        }
        Ok(HostFacts { noise: Some(floor), ..facts })
    }
}
