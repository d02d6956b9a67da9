//! `stacklab path`.

use crate::cli::path::{PathFormat, PathOptions};
use crate::commands::output::print_text;
use crate::failure::Failure;
use crate::otlp::Collector;
use crate::path::export::{Exporter, gauges};
use crate::path::findings::Rounds;
use crate::path::metric::PathMetric;
use crate::path::pace::{Interrupted, Pace};
use crate::path::probes::Prober;
use crate::path::target::{Target, named, pairs};
use crate::path::{http, print};
use stacklab_agent::interrupt;
use stacklab_analysis::statistics::Drift;
use stacklab_model::Family;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Rounds where nothing is said.
const ROUNDS: u64 = 10;
/// The least that a request may read.
const LEAST_REQUEST: u64 = 16 << 10;
/// What a request may read with --watch.
const WATCH_REQUEST: u64 = 256 << 10;
const HOUR_NS: u64 = 3_600_000_000_000;
/// A collector is given figures after a round, if it was given none for so long.
const GIVE_PERIOD: Duration = Duration::from_secs(10);

/// Looks at hosts over each family and prints what differs.
///
/// # Errors
/// When a name has no address, a family does not work, the families drift apart, or the user interrupts before the
/// first round's
/// end.
pub(crate) fn path(options: &PathOptions) -> Result<(), Failure> {
    let interrupted = interrupt::flag()
        .map_err(|reason| Failure::System { attempted: "install signal handlers", reason })?;
    let targets = targets(options)?;
    let resolvers = if options.resolver.is_empty() { systems_resolvers() } else { options.resolver.clone() };
    let rounds = options.rounds.or((!options.watch).then_some(ROUNDS));
    let most_bytes = options.max_bytes;
    let requests = 2 * targets.len() as u64 * rounds.unwrap_or(ROUNDS);
    let request_bytes =
        if options.watch { WATCH_REQUEST } else { (most_bytes / requests).max(LEAST_REQUEST) };
    let pace = |interrupted: &'static AtomicBool| Pace::new(options.pps, most_bytes, interrupted);
    let mut prober =
        Prober { pace: pace(interrupted), tls: http::tls(), resolvers: &resolvers, request_bytes };
    let mut collector = options.otlp.as_ref().map(Collector::new).transpose()?;
    let mut given: Option<Instant> = None;
    let mut after_round = |looks: &[Rounds], is_last: bool| {
        if let Some(collector) = &mut collector
            && (is_last || given.is_none_or(|at| at.elapsed() >= GIVE_PERIOD))
        {
            collector.give(&gauges(looks, margin(options)));
            given = Some(Instant::now());
        }
    };
    let mut looks = Vec::new();
    let renewed = || pace(interrupted);
    let drifted = measure(options, targets, rounds, &mut prober, &mut looks, renewed, |looks| {
        after_round(looks, false);
    })?;
    after_round(&looks, true);
    conclude(options, &looks, drifted)
}

fn targets(options: &PathOptions) -> Result<Vec<Target>, Failure> {
    match &options.pairs {
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .map_err(|reason| Failure::Usage(format!("could not read {name}: {reason}")))?;
            pairs(&text, &name)
        }
        None => {
            options.names.iter().map(|name| named(name, &options.resolver, &systems_resolvers())).collect()
        }
    }
}

/// The resolvers of /etc/resolv.conf.
fn systems_resolvers() -> Vec<std::net::IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let words = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
    words.filter_map(|address| address.trim().parse().ok()).collect()
}

/// Measures until there are enough rounds, or the user interrupts; the outcome is how many drifts there were.
fn measure(
    options: &PathOptions,
    targets: Vec<Target>,
    rounds: Option<u64>,
    prober: &mut Prober<'_>,
    looks: &mut Vec<Rounds>,
    renewed: impl Fn() -> Pace,
    mut after_round: impl FnMut(&[Rounds]),
) -> Result<u64, Failure> {
    let exporter = options.metrics.map(exporter).transpose()?;
    let over = |_: Interrupted| Failure::Agent(AgentError::Interrupted);
    for target in targets {
        let facts = prober.facts(&target).map_err(over)?;
        looks.push(Rounds::new(target, facts, !options.watch));
    }
    if options.format == PathFormat::Csv {
        print_text(print::CSV_HEADER)?;
    }
    let (mut drifted, mut hour) = (0, now_unix_ns());
    for round in 0.. {
        if rounds.is_some_and(|rounds| round >= rounds) {
            break;
        }
        if options.watch && now_unix_ns().saturating_sub(hour) > HOUR_NS {
            (prober.pace, hour) = (renewed(), now_unix_ns());
        }
        for look in looks.iter_mut() {
            let figures = match prober.round(&look.target) {
                Ok(figures) => figures,
                Err(interrupted) if look.count == 0 => return Err(over(interrupted)),
                Err(_) => return Ok(drifted),
            };
            let drifts = look.add(figures);
            for (metric, drift) in &drifts {
                eprintln!("stacklab: {}: {}", look.target.name, drift_text(*metric, drift));
            }
            drifted += drifts.len() as u64;
            match (options.format, look.last()) {
                (PathFormat::Csv, Some(figures)) => {
                    let unix_s = now_unix_ns() / 1_000_000_000;
                    print_text(&print::csv(&look.target.name, round + 1, unix_s, figures))?;
                }
                (PathFormat::Text, _) if options.watch => print_text(&print::line(look))?,
                _ => {}
            }
        }
        if let Some(exporter) = &exporter {
            exporter.show(&gauges(looks, margin(options)));
        }
        after_round(looks);
    }
    Ok(drifted)
}

/// Shows figures to Prometheus, and says where.
fn exporter(address: SocketAddr) -> Result<Exporter, Failure> {
    let exporter = Exporter::start(address)
        .map_err(|reason| Failure::System { attempted: "listen on the address of --metrics", reason })?;
    eprintln!("stacklab: figures at http://{}/metrics", exporter.address);
    Ok(exporter)
}

/// Differences within it are equivalent: 0.05 is 5 %.
fn margin(options: &PathOptions) -> f64 {
    f64::from(options.margin) / 100.0
}

fn drift_text(metric: PathMetric, drift: &Drift) -> String {
    let (before, now) = (drift.level.exp(), (drift.level + drift.by).exp());
    format!(
        "drift: {} over IPv6 was {before:.3} times that over IPv4, and is {now:.3} times it since {} rounds",
        metric.name(),
        drift.since
    )
}

fn conclude(options: &PathOptions, looks: &[Rounds], drifted: u64) -> Result<(), Failure> {
    let margin = margin(options);
    match options.format {
        PathFormat::Text => {
            for look in looks {
                print_text(&format!("{}\n", print::text(look, margin)))?;
            }
        }
        PathFormat::Json => {
            let all: Vec<_> = looks.iter().map(|look| print::json_of(look, margin)).collect();
            print_text(&format!("{:#}\n", serde_json::Value::from(all)))?;
        }
        PathFormat::Csv => {}
    }
    let broken: Vec<String> = looks
        .iter()
        .flat_map(|look| Family::ALL.iter().map(move |family| (look, *family)))
        .filter(|(look, family)| !look.state(*family).works())
        .map(|(look, family)| format!("{} over {family}: {}", look.target.name, look.state(family).name()))
        .collect();
    match (broken.is_empty(), drifted) {
        (false, _) => Err(Failure::FamilyFails(broken.join("; "))),
        (true, 0) => Ok(()),
        (true, _) => Err(Failure::Drifted(drifted)),
    }
}
