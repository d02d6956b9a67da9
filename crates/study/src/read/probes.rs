//! How cells are measured.

use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::plan::{Plan, interleave};
use crate::read::factors::Factors;
use crate::read::{NO_ROWS_NS, Node, nanoseconds, programs, read_metrics, search, whole};
use crate::study::Study;
use stacklab_model::{Factor, Length, Pacing, Probe, ProbeSpec, Transport, print_duration};

/// Maximum rows of a run's interval series; each row is stored in the record.
const MAX_ROWS: u64 = 100_000;

pub(super) fn read(node: Node, testbed: Node, all: &[Factors], problems: &mut Problems) -> Vec<ProbeSpec> {
    let mut probes = Vec::new();
    for probe in Probe::ALL {
        let node = node.get(probe.name());
        let Some(written) = node.0 else { continue };
        let mut transports = all.iter().flat_map(|factors| &factors.transport).peekable();
        if let Some(first) = transports.peek().copied()
            && !transports.any(|transport| probe.supports(transport.value))
        {
            let needed = if *probe == Probe::Search { Transport::Udp } else { Transport::Tcp };
            let title = format!("probe {probe} needs {}", needed.name().to_uppercase());
            let help = format!("add \"{needed}\" to factors.transport, or leave this probe out");
            problems.add(
                Problem::at(&written.place, title, "measures nothing in this study")
                    .with_related_place(&first.place, "the only transport")
                    .help(help),
            );
        }
        if let Some(spec) = spec(*probe, node, problems) {
            check_rate(&spec, node, testbed, problems);
            all.iter().for_each(|factors| check_kernel_pacing(&spec, node, factors, problems));
            check_rows(&spec, node, problems);
            check_metrics(&spec, &probes, node, problems);
            check_memory(node, testbed, problems);
            probes.push(spec);
        }
    }
    probes
}

fn spec(probe: Probe, node: Node, problems: &Problems) -> Option<ProbeSpec> {
    match probe {
        Probe::Search => return search::read(node, problems),
        Probe::Sockets => return read_sockets(node, problems),
        Probe::Program => return programs::read_probe(node, problems),
        _ => {}
    }
    let read = if probe == Probe::Paced { leaf::paced_rate } else { leaf::message_rate };
    let rate = node.get("message_rate").value(read, problems);
    let length = node.get("length");
    let packets = length.get("packets").value(|node| leaf::integer(node, 0, i64::MAX), problems);
    let time = length.get("time").value(nanoseconds, problems);
    Some(ProbeSpec {
        probe,
        pacing: match probe {
            Probe::Stream | Probe::EchoUnderLoad => rate.unwrap_or(Pacing::Flood),
            Probe::Paced | Probe::EchoOpenLoop => rate?,
            Probe::Echo | Probe::Connect | Probe::Search | Probe::Sockets | Probe::Program => {
                Pacing::Lockstep
            }
        },
        length: packets.map(Length::Packets).or(time.map(Length::Time))?,
        warmup_ns: node.get("warmup").value(nanoseconds, problems)?,
        interval_ns: node.get("interval").value(nanoseconds, problems)?,
        metrics: read_metrics(node, problems),
    })
}

fn read_sockets(node: Node, problems: &Problems) -> Option<ProbeSpec> {
    let pairs = node.get("pairs").value(whole, problems)?;
    Some(ProbeSpec {
        probe: Probe::Sockets,
        pacing: Pacing::Lockstep,
        length: Length::Packets(pairs.into()),
        warmup_ns: 0,
        interval_ns: NO_ROWS_NS,
        metrics: read_metrics(node, problems),
    })
}

/// The memory of tables is measured when they are filled, in each block.
fn check_memory(node: Node, testbed: Node, problems: &mut Problems) {
    let rebuild = testbed.get("rebuild");
    let Some(kept) = rebuild.at(leaf::boolean, problems).filter(|rebuild| !rebuild.value) else { return };
    let metrics = node.get("metrics").list(leaf::any_metric, problems);
    for metric in metrics.iter().filter(|metric| metric.value.table().is_some()) {
        problems.add(
            metric
                .problem(
                    format!("{} is measured when a testbed is built", metric.value),
                    "one figure for all blocks",
                )
                .with_related_place(&kept.place, "it is built once")
                .help("leave testbed.rebuild out"),
        );
    }
}

/// A message must be due within a run; and the link's rate must be known if messages are sent at it.
fn check_rate(spec: &ProbeSpec, node: Node, testbed: Node, problems: &mut Problems) {
    let Some(place) = node.get("message_rate").place() else { return };
    match (spec.pacing, spec.length) {
        (Pacing::Schedule(rate), Length::Time(time)) if rate * (time as f64 / 1e9) < 1.0 => {
            problems.add(Problem::at(
                place,
                format!("no message is due within a run of {}", print_duration(time)),
                format!("expected at least {} per second, or a longer run", 1.0 / (time as f64 / 1e9)),
            ));
        }
        (Pacing::Link, _) if testbed.get("rate").0.is_none() => {
            let title = "the link has no rate that messages could be sent at";
            problems.add(
                Problem::at(place, title, "needs testbed.rate")
                    .help("add rate to [testbed], or name a number of messages per second"),
            );
        }
        _ => {}
    }
}

/// Kernel pacing needs a schedule.
fn check_kernel_pacing(spec: &ProbeSpec, node: Node, factors: &Factors, problems: &mut Problems) {
    let mut levels = factors.setting_levels(Factor::KernelPacing).iter();
    if let Some(level) = levels.find(|level| level.value == "true")
        && let Some(place) = node.place()
        && (spec.probe, spec.pacing) == (Probe::Stream, Pacing::Flood)
    {
        problems.add(
            level
                .problem("there is no schedule for the kernel to keep", "needs probe.stream.message_rate")
                .with_related_place(place, "this sends as fast as it can")
                .help("add message_rate to probe.stream, or leave factors.kernel_pacing out"),
        );
    }
}

/// A share of the flood rate needs arms that warm up together.
pub(super) fn check_share(node: Node, study: &Study, problems: &mut Problems) {
    let node = node.get(Probe::Paced.name());
    let (Some(place), Some(key)) = (node.place(), node.get("message_rate").place()) else { return };
    let is_share = study.probe(Probe::Paced).is_some_and(|spec| matches!(spec.pacing, Pacing::Share(_)));
    if !is_share {
        return;
    }
    let plan = Plan::new(study, 0);
    let block = plan.block(0);
    let alone = plan.together(&block).any(|arms| arms.len() == 1 && arms[0].probe == Probe::Paced);
    let mut compared =
        study.questions().into_iter().filter(|question| study.probe_of(question.metric) == Probe::Paced);
    let are_apart = compared.any(|question| !plan.measures_together(&question, Probe::Paced));
    if alone || are_apart || !interleave::on_one_testbed(&study.comparisons) {
        let title = "a share of the flood rate is that of the slowest arm, and the arms are not interleaved on one testbed";
        problems.add(
            Problem::at(place, title, "expected message_rate = messages per second, or \"link\"")
                .with_related_place(key, "the share")
                .help("or set blocks.schedule = \"interleaved\", and compare a factor whose arms one testbed can hold"),
        );
    }
}

/// A metric has one figure for each cell and block.
fn check_metrics(spec: &ProbeSpec, others: &[ProbeSpec], node: Node, problems: &mut Problems) {
    for metric in node.get("metrics").list(leaf::any_metric, problems) {
        if let Some(other) = others.iter().find(|other| other.metrics.contains(&metric.value)) {
            problems.add(metric.problem(
                format!("probe.{} measures `{}` too", other.probe, metric.value),
                format!("expected it in one of probe.{} and probe.{}", other.probe, spec.probe),
            ));
        }
    }
}

fn check_rows(spec: &ProbeSpec, node: Node, problems: &mut Problems) {
    let (Length::Time(time), Some(place)) = (spec.length, node.get("interval").place()) else { return };
    let rows = time / spec.interval_ns.max(1);
    if rows > MAX_ROWS {
        problems.add(Problem::at(
            place,
            format!("a run of {} would have {rows} rows of this interval", print_duration(time)),
            format!("expected at least {}", print_duration(time.div_ceil(MAX_ROWS))),
        ));
    }
}
