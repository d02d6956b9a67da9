//! `stacklab path`.

use crate::failure::{DRIFTED, FAMILY_FAILS, Failure, OTHER, interrupt_flag};
use crate::output::write_stdout;
use crate::quantities::{format, per_second, read_bytes};
use clap::Args;
use stacklab_campaign::notice::wrap_for_stdout;
use stacklab_model::count;
use stacklab_path::{PathError, Settings, Target, WatchResult, look_up_target, pairs, system_resolvers};
use stacklab_report::OutputFormat;
use stacklab_traffic::host::files::read_text_file;
use stacklab_traffic::protocol::AgentError;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(crate) struct PathOptions {
    /// Host name, or http:// or https:// URL to request; default: https
    #[arg(required_unless_present = "pairs")]
    pub names: Vec<String>,
    /// File with an IPv4 address, an IPv6 address and a name or URL on each line
    #[arg(long, value_name = "FILE", conflicts_with = "names")]
    pub pairs: Option<PathBuf>,
    /// Use these resolvers instead of the system's; DNS is measured over the family of each
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub resolver: Vec<IpAddr>,
    /// Number of rounds; default: 14, with --watch unlimited
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,
    /// Run until interrupted, and report when the ratio of the families drifts
    #[arg(long)]
    pub watch: bool,
    /// With --watch, serve figures and verdicts to Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", requires = "watch")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Maximum probes per second, across all hosts and families
    #[arg(long, value_name = "N", default_value = "1", value_parser = per_second)]
    pub pps: f64,
    /// Maximum bytes read in total, such as 10M; with --watch, per hour
    #[arg(long, value_name = "BYTES", default_value = "10M", value_parser = read_bytes)]
    pub max_bytes: u64,
    /// Margin in per cent: smaller differences are equivalent
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub margin: u8,
    /// text; json: an object for each host at the end; or csv: a row for each figure, as it is measured
    #[arg(long, value_name = "FORMAT", value_parser = format(&["text", "json", "csv"]), default_value = "text")]
    pub format: OutputFormat,
}

pub(crate) fn path(options: &PathOptions) -> Result<(), Failure> {
    let interrupted = interrupt_flag()?;
    let targets = targets(options)?;
    let resolvers = if options.resolver.is_empty() { system_resolvers() } else { options.resolver.clone() };
    let settings = Settings {
        resolvers: &resolvers,
        rounds: options.rounds,
        watch: options.watch,
        metrics: options.metrics,
        pps: options.pps,
        most_bytes: options.max_bytes,
        margin: f64::from(options.margin) / 100.0,
        format: options.format,
        interrupted,
    };
    let watched = stacklab_path::measure(&settings, targets, |text: &str| match options.format {
        OutputFormat::Text => write_stdout(wrap_for_stdout(text).as_bytes()),
        _ => write_stdout(text.as_bytes()),
    });
    let WatchResult { broken, drifts } = watched.map_err(failure)?;
    match (broken.is_empty(), drifts) {
        (false, _) => {
            Err(Failure::new(FAMILY_FAILS, format!("not every family works: {}", broken.join("; "))))
        }
        (true, 0) => Ok(()),
        (true, _) => {
            let text =
                format!("the ratio of the families has drifted ({}; see above)", count(drifts, "time"));
            Err(Failure::new(DRIFTED, text))
        }
    }
}

fn targets(options: &PathOptions) -> Result<Vec<Target>, Failure> {
    match &options.pairs {
        Some(file) => {
            let name = file.display().to_string();
            let text = read_text_file(file)
                .map_err(|reason| Failure::usage(format!("could not read {name}: {reason}")))?;
            pairs(&text, &name).map_err(failure)
        }
        None => options
            .names
            .iter()
            .map(|name| look_up_target(name, &options.resolver).map_err(failure))
            .collect(),
    }
}

fn failure(error: PathError) -> Failure {
    match error {
        PathError::Unreadable(text) => Failure::usage(text),
        PathError::NoAddress(text) => Failure::unreachable(text),
        PathError::Certificates(text) => Failure::new(OTHER, text),
        PathError::Interrupted => Failure::from(AgentError::Interrupted),
        PathError::Listen(reason) => Failure::step("listen on the address of --metrics")(reason),
        PathError::Output(reason) => Failure::step("write to standard output")(reason),
    }
}
