//! `stacklab agent`.

use crate::cli::agent::AgentCommand;
use crate::failure::Failure;
use stacklab_agent::interrupt;
use stacklab_protocols::iperf3::server::{self, ServerError, ServerLimits};
use stacklab_testbed::AGENT;
use std::time::Duration;

/// Highest rate to one client of an iperf3 server, Mbit/s, unless the operator says another.
const MOST_RATE: f64 = 10_000.0;

/// Serves a coordinator on standard input and output until the input ends, or listens for coordinators, or for clients
/// of iperf3.
pub(crate) fn agent(command: &AgentCommand) -> Result<(), Failure> {
    let options = &command.options;
    match &options.listen {
        Some(place) if command.iperf3 => {
            let interrupted = interrupt::flag()
                .map_err(|reason| Failure::System { attempted: "install signal handlers", reason })?;
            let limits = ServerLimits {
                clients: command.clients as usize,
                longest: Duration::from_secs(options.longest.into()),
                most_bits_per_second: options.most_rate.unwrap_or(MOST_RATE) * 1e6,
            };
            server::listen(place, limits, options.once, interrupted)
                .map_err(|ServerError { at, reason }| Failure::Iperf3Server { at, reason })
        }
        _ => Ok(stacklab_agent::run(options, &AGENT)?),
    }
}
