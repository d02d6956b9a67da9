//! How cells are measured.

use super::factors::Factors;
use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::plan::{Plan, interleave};
use crate::read::node::{at, items, nanoseconds};
use crate::study::Study;
use stacklab_model::{Factor, Length, Pacing, Probe, ProbeSpec, print_duration};

/// Maximum rows of a run's interval series; each row is stored in the record.
const MOST_ROWS: u64 = 100_000;

/// Reads the probes, in the model's order.
pub(super) fn read(
    node: Option<&Located>,
    link_config: Option<&Located>,
    all: &[Factors],
    problems: &mut Problems,
) -> Vec<ProbeSpec> {
    let mut probes = Vec::new();
    for probe in Probe::ALL {
        let Some(node) = node.and_then(|node| node.get(probe.name())) else { continue };
        check_transport(*probe, node, all, problems);
        if let Some(spec) = spec(*probe, node, problems) {
            check_schedule(&spec, node, problems);
            check_link(&spec, node, link_config, problems);
            all.iter().for_each(|factors| check_kernel_pacing(&spec, node, factors, problems));
            check_rows(&spec, node, problems);
            check_metrics(&spec, &probes, node, problems);
            probes.push(spec);
        }
    }
    probes
}

fn spec(probe: Probe, node: &Located, problems: &Problems) -> Option<ProbeSpec> {
    let read = if probe == Probe::Paced { leaf::paced_rate } else { leaf::message_rate };
    let rate = at(node.get("message_rate"), read, problems);
    Some(ProbeSpec {
        probe,
        pacing: match (probe, rate) {
            (Probe::Stream | Probe::EchoUnderLoad, None) => Pacing::Flood,
            (Probe::Stream | Probe::Paced | Probe::EchoUnderLoad | Probe::EchoOpenLoop, Some(rate)) => {
                rate.value
            }
            (Probe::Paced | Probe::EchoOpenLoop, None) => return None,
            (Probe::Echo | Probe::Connect, _) => Pacing::Lockstep,
        },
        length: length(node.get("length")?, problems)?,
        warmup_ns: at(node.get("warmup"), nanoseconds, problems)?.value,
        interval_ns: at(node.get("interval"), nanoseconds, problems)?.value,
        metrics: items(node.get("metrics"), |node| leaf::metric(node, None), problems)
            .into_iter()
            .map(|metric| metric.value)
            .collect(),
    })
}

fn length(node: &Located, problems: &Problems) -> Option<Length> {
    let packets = at(node.get("packets"), |node| leaf::integer(node, 0, i64::MAX), problems);
    let time = at(node.get("time"), nanoseconds, problems);
    packets.map(|packets| Length::Packets(packets.value)).or(time.map(|time| Length::Time(time.value)))
}

fn check_transport(probe: Probe, node: &Located, all: &[Factors], problems: &mut Problems) {
    let mut transports = all.iter().flat_map(|factors| &factors.transport);
    let Some(first) = transports.clone().next() else { return };
    if !transports.any(|transport| probe.supports(transport.value)) {
        problems.add(
            Problem::at(
                node.place.clone(),
                format!("probe {probe} needs TCP"),
                "measures nothing in this study",
            )
            .related(first.place.clone(), "the only transport")
            .help("add \"tcp\" to factors.transport, or leave this probe out"),
        );
    }
}

fn check_schedule(spec: &ProbeSpec, node: &Located, problems: &mut Problems) {
    let (Pacing::Schedule(rate), Length::Time(time)) = (spec.pacing, spec.length) else { return };
    let Some(place) = node.get("message_rate").map(|node| node.place.clone()) else { return };
    let seconds = time as f64 / 1e9;
    if rate * seconds < 1.0 {
        problems.add(Problem::at(
            place,
            format!("no message is due within a run of {}", print_duration(time)),
            format!("expected at least {} per second, or a longer run", 1.0 / seconds),
        ));
    }
}

/// The link's rate must be known to whom is to keep it.
fn check_link(spec: &ProbeSpec, node: &Located, link_config: Option<&Located>, problems: &mut Problems) {
    if spec.pacing != Pacing::Link || link_config.is_some_and(|link_config| link_config.get("rate").is_some())
    {
        return;
    }
    let Some(place) = node.get("message_rate").map(|node| node.place.clone()) else { return };
    problems.add(
        Problem::at(place, "the link has no rate that messages could be sent at", "needs testbed.rate")
            .help("add rate to [testbed], or name a number of messages per second"),
    );
}

/// Kernel pacing needs a schedule.
fn check_kernel_pacing(spec: &ProbeSpec, node: &Located, factors: &Factors, problems: &mut Problems) {
    let Some(setting) = factors.setting(Factor::KernelPacing) else { return };
    let Some(level) = setting.levels.iter().find(|level| level.value == "true") else { return };
    if (spec.probe, spec.pacing) == (Probe::Stream, Pacing::Flood) {
        problems.add(
            Problem::at(
                level.place.clone(),
                "there is no schedule for the kernel to keep",
                "needs probe.stream.message_rate",
            )
            .related(node.place.clone(), "this sends as fast as it can")
            .help("add message_rate to probe.stream, or leave factors.kernel_pacing out"),
        );
    }
}

/// A share of the flood rate needs arms that warm up together.
pub(super) fn check_share(node: Option<&Located>, study: &Study, problems: &mut Problems) {
    let is_share = |spec: &&ProbeSpec| matches!(spec.pacing, Pacing::Share(_));
    let (Some(_), Some(table)) =
        (study.probe(Probe::Paced).filter(is_share), node.and_then(|node| node.get(Probe::Paced.name())))
    else {
        return;
    };
    let plan = Plan::new(study, 0);
    let block = plan.block(0);
    let alone = plan.together(&block).any(|arms| arms.len() == 1 && arms[0].probe == Probe::Paced);
    if let Some(key) =
        table.get("message_rate").filter(|_| alone || !interleave::on_one_testbed(&study.comparisons))
    {
        problems.add(
            Problem::at(
                table.place.clone(),
                "a share of the flood rate is that of the slowest arm, and the arms are not interleaved on one testbed",
                "expected message_rate = messages per second, or \"link\"",
            )
            .related(key.place.clone(), "the share")
            .help("or set blocks.schedule = \"interleaved\", and compare a factor whose arms one testbed can hold"),
        );
    }
}

/// A metric has one figure for each cell and block.
fn check_metrics(spec: &ProbeSpec, others: &[ProbeSpec], node: &Located, problems: &mut Problems) {
    let Some(list) = node.get("metrics") else { return };
    for metric in items(Some(list), |node| leaf::metric(node, None), problems) {
        let other = others.iter().find(|other| other.metrics.contains(&metric.value));
        if let Some(other) = other {
            problems.add(Problem::at(
                metric.place,
                format!("probe.{} measures `{}` too", other.probe, metric.value),
                format!("expected it in one of probe.{} and probe.{}", other.probe, spec.probe),
            ));
        }
    }
}

fn check_rows(spec: &ProbeSpec, node: &Located, problems: &mut Problems) {
    let Length::Time(time) = spec.length else { return };
    let Some(place) = node.get("interval").map(|node| node.place.clone()) else { return };
    let rows = time / spec.interval_ns.max(1);
    if rows > MOST_ROWS {
        problems.add(Problem::at(
            place,
            format!("a run of {} would have {rows} rows of this interval", print_duration(time)),
            format!("expected at least {}", print_duration(time.div_ceil(MOST_ROWS))),
        ));
    }
}
