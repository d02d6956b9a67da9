//! The options of `stacklab path`.

use crate::cli::quantities::{per_second, read_bytes};
use crate::otlp::Endpoint;
use clap::{Args, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

/// Options of `stacklab path`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PathOptions {
    /// Name of a host, or http:// or https:// address to ask for; https where nothing is said
    #[arg(required_unless_present = "pairs")]
    pub names: Vec<String>,
    /// File with an IPv4 and an IPv6 address on each line, and then NAME or address to ask for
    #[arg(long, value_name = "FILE", conflicts_with = "names")]
    pub pairs: Option<PathBuf>,
    /// Ask these resolvers, and not the system's; DNS is measured over the family of each
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub resolver: Vec<IpAddr>,
    /// Rounds; without it 10, or as many as there is time for with --watch
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,
    /// Go on until interrupted, and tell when the ratio of the families drifts
    #[arg(long)]
    pub watch: bool,
    /// With --watch, show figures and verdicts to Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", requires = "watch")]
    pub metrics: Option<std::net::SocketAddr>,
    /// After a round, give figures and verdicts to a collector of OpenTelemetry (OTLP over HTTP, JSON), such as
    /// http://localhost:4318
    #[arg(long, value_name = "URL")]
    pub otlp: Option<Endpoint>,
    /// Most probes a second, of all hosts and families together
    #[arg(long, value_name = "N", default_value = "1", value_parser = per_second)]
    pub pps: f64,
    /// Bytes read in all, such as 10M; with --watch, in each hour
    #[arg(long, value_name = "BYTES", default_value = "10M", value_parser = read_bytes)]
    pub max_bytes: u64,
    /// Differences within so many per cent are equivalent
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub margin: u8,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = PathFormat::Text)]
    pub format: PathFormat,
}

/// Forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathFormat {
    /// For people
    Text,
    /// One object for each host at the end
    Json,
    /// A row for each figure, as they come
    Csv,
}
