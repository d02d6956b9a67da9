//! A measurement of hosts, round by round.

use crate::PathError;
use crate::export::{Exporter, gauges};
use crate::findings::{Rounds, compare};
use crate::metric::PathMetric;
use crate::print;
use crate::probe::Prober;
use crate::probe::certificates::configure_tls;
use crate::probe::pace::Pace;
use crate::progress::RoundProgress;
use crate::target::Target;
use stacklab_analysis::MIN_EQUIVALENT_PAIRS;
use stacklab_analysis::statistics::Drift;
use stacklab_model::{Family, count, say, say_part};
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
    let tls = configure_tls();
    // Without certificates here, the fault of this host would look like one of the servers.
    if let Err(reason) = &tls
        && targets.iter().any(|target| target.tls)
    {
        return Err(PathError::Certificates(reason.clone()));
    }
    let mut watch = Watch {
        settings,
        prober: Prober { pace: start_pace(settings), tls, resolvers: settings.resolvers, request_bytes },
        exporter: settings.metrics.map(exporter).transpose()?,
        progress: RoundProgress::new(rounds.filter(|_| !settings.prints_rounds())),
        looks: Vec::new(),
        drifts: 0,
    };
    watch.look_up(targets)?;
    if settings.format == OutputFormat::Csv {
        print(print::CSV_HEADER).map_err(PathError::Output)?;
    }
    let is_interrupted = watch.run_rounds(rounds, &mut print)?;
    watch.progress.end();
    let planned = rounds.filter(|_| is_interrupted && !settings.watch);
    print(&conclusion(settings, &watch.looks, planned)).map_err(PathError::Output)?;
    Ok(WatchResult { broken: find_broken(&watch.looks), drifts: watch.drifts })
}

impl Settings<'_> {
    /// Whether each round is printed when it ends.
    fn prints_rounds(&self) -> bool {
        self.watch || self.format == OutputFormat::Csv
    }
}

fn start_pace(settings: &Settings<'_>) -> Pace {
    Pace::new(settings.pps, settings.most_bytes, settings.interrupted)
}

/// A measurement under way.
struct Watch<'a> {
    settings: &'a Settings<'a>,
    prober: Prober<'a>,
    exporter: Option<Exporter>,
    progress: RoundProgress,
    /// What was measured of each host.
    looks: Vec<Rounds>,
    /// How often the families drifted apart so far.
    drifts: u64,
}

impl Watch<'_> {
    /// Chooses the addresses of each host, and collects what does not change from round to round.
    fn look_up(&mut self, targets: Vec<Target>) -> Result<(), PathError> {
        for mut target in targets {
            self.progress.show(0, &self.looks);
            self.prober.choose_addresses(&mut target).map_err(|_| PathError::Interrupted)?;
            if self.settings.prints_rounds() {
                say_part!("{}", print::refused_text(&target, "stacklab: "));
            }
            let facts = self.prober.facts(&target).map_err(|_| PathError::Interrupted)?;
            self.looks.push(Rounds::new(target, facts));
        }
        Ok(())
    }

    /// Returns whether the user interrupted after the first round of the first host.
    fn run_rounds(
        &mut self,
        rounds: Option<u64>,
        print: &mut impl FnMut(&str) -> io::Result<()>,
    ) -> Result<bool, PathError> {
        let settings = self.settings;
        let mut hour = now_unix_ns();
        for round in 0..rounds.unwrap_or(u64::MAX) {
            if settings.watch && now_unix_ns().saturating_sub(hour) > HOUR_NS {
                self.prober.pace = start_pace(settings);
                hour = now_unix_ns();
            }
            for look in &mut self.looks {
                let figures = match self.prober.round(&look.target) {
                    Ok(figures) => figures,
                    Err(_) if look.count == 0 => return Err(PathError::Interrupted),
                    Err(_) => return Ok(true),
                };
                for (metric, drift) in look.add(figures) {
                    say!("stacklab: {}: {}", look.target.name, drift_text(metric, &drift));
                    self.drifts += 1;
                }
                if let Some(text) = round_text(settings, look, round) {
                    print(&text).map_err(PathError::Output)?;
                }
            }
            self.progress.show(round + 1, &self.looks);
            if let Some(exporter) = &self.exporter {
                exporter.show(&gauges(&self.looks, settings.margin));
            }
        }
        Ok(false)
    }
}

/// What is printed of a host's latest round, if rounds are printed.
fn round_text(settings: &Settings<'_>, look: &Rounds, round: u64) -> Option<String> {
    match (settings.format, look.last()) {
        (OutputFormat::Csv, Some(figures)) => {
            let unix_s = now_unix_ns() / 1_000_000_000;
            Some(print::csv(&look.target.name, round + 1, unix_s, figures))
        }
        (OutputFormat::Text, _) if settings.watch => Some(print::line(look)),
        _ => None,
    }
}

/// Families that do not work, with host and state.
fn find_broken(looks: &[Rounds]) -> Vec<String> {
    let mut broken = Vec::new();
    for look in looks {
        for family in Family::ALL {
            let state = look.state(*family);
            if !state.works() {
                broken.push(format!("{} over {family}: {}", look.target.name, state.name()));
            }
        }
    }
    broken
}

/// Shows figures to Prometheus, and says where.
fn exporter(address: SocketAddr) -> Result<Exporter, PathError> {
    let exporter = Exporter::start(address).map_err(PathError::Listen)?;
    say!("stacklab: figures at http://{}/metrics", exporter.address);
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
