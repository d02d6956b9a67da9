//! The options of `stacklab agent`.

use clap::Args;
use stacklab_agent::AgentOptions;

/// Options of an agent, and of a server for other programs' clients.
#[derive(Debug, Args)]
pub(crate) struct AgentCommand {
    #[command(flatten)]
    pub options: AgentOptions,
    /// With --listen: serve unmodified iperf3 clients instead, on port 5201. It is open to everyone who reaches
    /// it. A test takes at most --longest seconds; to each client it sends at most --most-rate [default: 10000]
    #[arg(
        long,
        requires = "listen",
        conflicts_with_all = ["key_file", "open", "tls", "allow_target", "allow"]
    )]
    pub iperf3: bool,
    /// Maximum number of concurrent iperf3 clients
    #[arg(long, value_name = "N", default_value_t = 32, requires = "iperf3", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
}
