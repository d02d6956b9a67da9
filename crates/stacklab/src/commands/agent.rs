//! `stacklab agent`.

use crate::failure::{Failure, OTHER, interrupt_flag};
use clap::Args;
use stacklab_agent::AgentOptions;
use stacklab_agent::advice::listen_advice;
use stacklab_protocols::iperf3::server::{self, ServerError, ServerLimits};
use stacklab_testbed::AGENT;
use std::time::Duration;

/// Options of an agent, and of a server for other programs' clients.
#[derive(Debug, Args)]
pub(crate) struct AgentCommand {
    #[command(flatten)]
    pub options: AgentOptions,
    /// With --listen: serve unmodified iperf3 clients instead, on port 5201. It is open to everyone who reaches
    /// it. A test takes at most --max-duration seconds; to each client it sends at most --max-rate [default: 10000]
    #[arg(
        long,
        requires = "listen",
        conflicts_with_all = ["key_file", "no_auth", "tls", "allow_target", "allow"]
    )]
    pub iperf3: bool,
    /// Maximum number of concurrent iperf3 clients
    #[arg(long, value_name = "N", default_value_t = 32, requires = "iperf3", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
}

/// Highest rate to one client of an iperf3 server, Mbit/s, unless the operator says another.
const MOST_RATE: f64 = 10_000.0;

/// Serves a coordinator on standard input and output until the input ends, or listens for coordinators, or for clients
/// of iperf3.
pub(crate) fn agent(command: &AgentCommand) -> Result<(), Failure> {
    let options = &command.options;
    match &options.listen {
        Some(place) if command.iperf3 => {
            let interrupted = interrupt_flag()?;
            let limits = ServerLimits {
                clients: command.clients as usize,
                longest: Duration::from_secs(options.max_duration.into()),
                most_bits_per_second: options.max_rate.unwrap_or(MOST_RATE) * 1e6,
            };
            server::listen(place, limits, options.once, interrupted).map_err(|ServerError { at, reason }| {
                let advice = listen_advice(&reason, "another server", "--listen :7000");
                Failure::new(OTHER, format!("could not listen on {at}: {reason}{advice}"))
            })
        }
        _ => stacklab_agent::run(options, &AGENT).map_err(|reason| Failure::new(OTHER, reason)),
    }
}
