//! `stacklab agent`.

use crate::failure::Failure;
use stacklab_agent::AgentOptions;
use stacklab_testbed::AGENT;

/// Serves a coordinator on standard input and output until the input ends, or listens for coordinators.
pub fn agent(options: &AgentOptions) -> Result<(), Failure> {
    Ok(stacklab_agent::run(options, &AGENT)?)
}
