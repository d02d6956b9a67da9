//! The two ends of a measurement: this host, and the host of a listening agent.

use crate::commands::measure::options::CommonOptions;
use crate::failure::Failure;
use stacklab_agent::client::{self, AgentAddress};
use stacklab_campaign::rig::agent_process::AgentProcess;
use stacklab_model::{Family, HostFacts, ScopedAddr};
use stacklab_traffic::host::route::{self, Route};
use stacklab_traffic::protocol::AgentClient;
use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// One end: its agent and its host's facts.
pub(super) struct End {
    pub agent: AgentClient,
    /// Its address in this measurement, as its own host names it; the zone of another host's is known to its agent
    /// only.
    pub address: ScopedAddr,
    pub facts: HostFacts,
}

/// Both ends, and what keeps them alive.
pub(super) struct AgentPair {
    pub here: End,
    pub there: End,
    /// The route from this host to the other one.
    pub route: Route,
    pub family: Family,
    /// When the other host's agent had answered.
    pub met: Instant,
    _local: AgentProcess,
}

impl AgentPair {
    /// Connects to the other host's agent and starts an agent on this host.
    pub(super) fn connect(
        options: &CommonOptions,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let (mut agent, there) = reach(options, &[], interrupted)?;
        let met = Instant::now();
        let route = route::route_to(&there.address, options.from.as_ref()).map_err(Failure::unreachable)?;
        let facts = agent.facts()?;
        let there = End { agent, address: there.address.elsewhere(), facts };
        let (local, mut agent) = AgentProcess::here(interrupted)?;
        agent.hello()?;
        let facts = agent.facts()?;
        let here = End { agent, address: route.address.clone(), facts };
        Ok(AgentPair { here, there, family: Family::of(route.address.ip()), route, met, _local: local })
    }
}

/// Connects to the agent on the first address of the host that accepts. `others` are further addresses of the host, to
/// and from which there will be traffic.
pub(super) fn reach(
    options: &CommonOptions,
    others: &[AgentAddress],
    interrupted: &'static AtomicBool,
) -> Result<(AgentClient, AgentAddress), Failure> {
    let ask_key = |there: &AgentAddress| {
        let is_person = std::io::stdin().is_terminal();
        is_person.then(|| rpassword::prompt_password(format!("Key of the agent on {there}: ")))
    };
    Ok(client::reach(&options.target(), others, &ask_key, interrupted)?)
}
