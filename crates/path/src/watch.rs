//! A measurement of hosts, round by round.

use crate::PathError;
use crate::export::{Exporter, gauges};
use crate::findings::{Rounds, compare};
use crate::metric::PathMetric;
use crate::print;
use crate::probe::Prober;
use crate::probe::certificates::configure_tls;
use crate::probe::pace::Pace;
use crate::progress::Progress;
use crate::target::Target;
use stacklab_analysis::MIN_EQUIVALENT_PAIRS;
use stacklab_analysis::statistics::Drift;
use stacklab_model::{Family, count};
use stacklab_report::OutputFormat;
use stacklab_traffic::host::now_unix_ns;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// Rounds unless the user names a number: the fewest that may show equivalence.
const ROUNDS: u64 = MIN_EQUIVALENT_PAIRS as u64;
/// The least that a request may read.
const MIN_REQUEST: u64 = 16 << 10;
/// What a request may read while hosts are watched.
const WATCH_REQUEST: u64 = 256 << 10;
const HOUR_NS: u64 = 3_600_000_000_000;

/// How hosts are measured.
#[derive(Debug)]
pub struct Settings<'a> {
    /// Resolvers, which are measured over the family of each.
    pub resolvers: &'a [IpAddr],
    /// Rounds; without it 14, or until interrupted while hosts are watched.
    pub rounds: Option<u64>,
    /// Whether drifts are looked for.
    pub watch: bool,
    /// Where Prometheus reads figures.
    pub metrics: Option<SocketAddr>,
    /// Most probes per second.
    pub pps: f64,
    /// Most bytes read in all; while hosts are watched, in each hour.
    pub most_bytes: u64,
    /// Differences within it are equivalent: 0.05 is 5 %.
    pub margin: f64,
    /// Text; JSON, an object for each host at the end; or CSV, a row for each figure as it is measured.
    pub format: OutputFormat,
    /// Set when the user interrupts.
    pub interrupted: &'static AtomicBool,
}

/// The state of hosts and families at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchResult {
    /// Families that do not work, with host and state.
    pub broken: Vec<String>,
    /// How often the families drifted apart.
    pub drifts: u64,
}

/// Measures hosts over each family, and prints what differs.
pub fn measure(
    settings: &Settings<'_>,
    targets: Vec<Target>,
    mut print: impl FnMut(&str) -> io::Result<()>,
) -> Result<WatchResult, PathError> {
    let rounds = settings.rounds.or((!settings.watch).then_some(ROUNDS));
    let requests = 2 * targets.len() as u64 * rounds.unwrap_or(ROUNDS);
    let request_bytes =
        if settings.watch { WATCH_REQUEST } else { (settings.most_bytes / requests).max(MIN_REQUEST) };
    let pace = || Pace::new(settings.pps, settings.most_bytes, settings.interrupted);
    let mut prober =
        Prober { pace: pace(), tls: configure_tls(), resolvers: settings.resolvers, request_bytes };
    let exporter = settings.metrics.map(exporter).transpose()?;
    let mut looks = Vec::new();
    let prints_rounds = settings.watch || settings.format == OutputFormat::Csv;
    let mut progress = Progress::new(rounds.filter(|_| !prints_rounds));
    for mut target in targets {
        progress.show(0, &looks);
        prober.choose_addresses(&mut target).map_err(|_| PathError::Interrupted)?;
        if settings.watch || settings.format == OutputFormat::Csv {
            eprint!("{}", print::refused_text(&target, "stacklab: "));
        }
        let facts = prober.facts(&target).map_err(|_| PathError::Interrupted)?;
        looks.push(Rounds::new(target, facts));
    }
    if settings.format == OutputFormat::Csv {
        print(print::CSV_HEADER).map_err(PathError::Output)?;
    }
    let mut drifts = 0;
    let mut hour = now_unix_ns();
    let mut is_interrupted = false;
    'rounds: for round in 0..rounds.unwrap_or(u64::MAX) {
        if settings.watch && now_unix_ns().saturating_sub(hour) > HOUR_NS {
            (prober.pace, hour) = (pace(), now_unix_ns());
        }
        for look in &mut looks {
            let figures = match prober.round(&look.target) {
                Ok(figures) => figures,
                Err(_) if look.count == 0 => return Err(PathError::Interrupted),
                Err(_) => {
                    is_interrupted = true;
                    break 'rounds;
                }
            };
            for (metric, drift) in look.add(figures) {
                eprintln!("stacklab: {}: {}", look.target.name, drift_text(metric, &drift));
                drifts += 1;
            }
            let text = match (settings.format, look.last()) {
                (OutputFormat::Csv, Some(figures)) => {
                    let unix_s = now_unix_ns() / 1_000_000_000;
                    print::csv(&look.target.name, round + 1, unix_s, figures)
                }
                (OutputFormat::Text, _) if settings.watch => print::line(look),
                _ => continue,
            };
            print(&text).map_err(PathError::Output)?;
        }
        progress.show(round + 1, &looks);
        if let Some(exporter) = &exporter {
            exporter.show(&gauges(&looks, settings.margin));
        }
    }
    progress.end();
    let planned = rounds.filter(|_| is_interrupted && !settings.watch);
    print(&conclusion(settings, &looks, planned)).map_err(PathError::Output)?;
    let broken = looks
        .iter()
        .flat_map(|look| Family::ALL.iter().map(move |family| (look, *family, look.state(*family))))
        .filter(|(.., state)| !state.works())
        .map(|(look, family, state)| format!("{} over {family}: {}", look.target.name, state.name()))
        .collect();
    Ok(WatchResult { broken, drifts })
}

/// Shows figures to Prometheus, and says where.
fn exporter(address: SocketAddr) -> Result<Exporter, PathError> {
    let exporter = Exporter::start(address).map_err(PathError::Listen)?;
    eprintln!("stacklab: figures at http://{}/metrics", exporter.address);
    Ok(exporter)
}

fn drift_text(metric: PathMetric, drift: &Drift) -> String {
    let before = drift.level.exp();
    let now = (drift.level + drift.by).exp();
    format!(
        "drift: {} over IPv6 was {before:.3} times that over IPv4, and is {now:.3} times it since {}",
        metric.name(),
        count(drift.since, "round")
    )
}

/// What the rounds show at the end. `planned` is the number of rounds of a measurement that was interrupted before.
fn conclusion(settings: &Settings<'_>, looks: &[Rounds], planned: Option<u64>) -> String {
    let margin = settings.margin;
    let compared = compare(looks, margin, !settings.watch && planned.is_none());
    let hosts = looks.iter().zip(&compared);
    match settings.format {
        OutputFormat::Text => {
            hosts.map(|(look, found)| format!("{}\n", print::text(look, found, margin, planned))).collect()
        }
        OutputFormat::Json => {
            let all: Vec<_> =
                hosts.map(|(look, found)| print::json_of(look, found, planned.is_some())).collect();
            format!("{:#}\n", serde_json::Value::from(all))
        }
        _ => String::new(),
    }
}
