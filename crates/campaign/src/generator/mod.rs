//! Other programs as generators of trials: found, driven in the hosts of a testbed, and their figures made a run's.

mod drive;

use crate::CampaignError;
use crate::foreign;
use crate::rig::Rig;
use crate::trial::GeneratorEvidence;
use drive::{Driven, drive};
use stacklab_model::{
    Cell, Counters, CpuScope, CpuSource, CpuTime, Drops, Ends, Factor, Family, Generator, HostReport, Metric,
    Pacing, Probe, ProgramSpec, Role, RunStatus, TrialSpec, Value, once_each, printable_text,
};
use stacklab_protocols::generators::{Figures as ToolFigures, Tool, Traffic, tool};
use stacklab_study::Study;
use stacklab_testbed::{find_in, first_line, first_line_of_command};
use stacklab_traffic::foreign::now_ns;
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::validate::Limits;
use stacklab_trial::{Collected, Figures, Path, validate};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The programs that a study runs beside this one.
pub struct Programs {
    /// Those of generators: their versions, with their folders.
    generators: Vec<String>,
    /// The names of the `[[program]]` tables that it measures, with their versions where these have a command.
    own: Vec<String>,
    /// The names of those that it does not measure: left out by the user, or since they are not installed.
    left_out: Vec<String>,
}

impl Programs {
    /// Finds every program that a study needs.
    pub fn of(study: &Study, interrupted: &AtomicBool) -> Result<Self, CampaignError> {
        let used = study.cells.iter().map(|cell| (Generator::of(cell), cell.settings.programs.as_deref()));
        let mut generators = Vec::new();
        for (generator, folder) in once_each(used) {
            if !generator.is_other() {
                continue;
            }
            let about = generator.definition();
            for program in about.programs {
                find_in(folder, program, about.remedy)?;
            }
            let version = version(generator, folder)?;
            generators.push(match folder {
                Some(folder) => format!("{version} of {folder}"),
                None => version,
            });
        }
        let mut own = Vec::new();
        let mut left_out = Vec::new();
        for program in &study.programs {
            let is_measured = study.cells.iter().any(|cell| study.program_of(cell) == Some(program));
            if is_measured {
                own.push(describe_program(program, interrupted)?);
            } else {
                left_out.push(program.name.clone());
            }
        }
        Ok(Programs { generators, own, left_out })
    }

    /// `; generators: iperf 3.12 (cJSON 1.7.15); programs: nginx, ..`, to be said behind the testbed; empty if there
    /// are none.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (what, names) in
            [("generators", &self.generators), ("programs", &self.own), ("programs left out", &self.left_out)]
        {
            if !names.is_empty() {
                text += &format!("; {what}: {}", names.join(", "));
            }
        }
        text
    }
}

/// How long the command for a version may take.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// `http1 (2.6.2)`, or the name alone.
fn describe_program(program: &ProgramSpec, interrupted: &AtomicBool) -> Result<String, CampaignError> {
    let name = &program.name;
    let Some(command) = &program.version else { return Ok(name.clone()) };
    let found = first_line_of_command(command, VERSION_LIMIT, || interrupted.load(Ordering::Relaxed));
    match found {
        Ok(version) => Ok(format!("{name} ({})", printable_text(&version))),
        Err(_) if interrupted.load(Ordering::Relaxed) => Err(CampaignError::Agent(AgentError::Interrupted)),
        Err(reason) => Err(CampaignError::Usage(format!(
            "the version of program `{name}` is not known: `{}`: {}: install what it runs, or change the key `version`",
            printable_text(command.trim()),
            printable_text(&reason)
        ))),
    }
}

fn version(generator: Generator, folder: Option<&str>) -> Result<String, CampaignError> {
    let Some(tool) = tool(generator) else { return Ok(format!("stacklab {}", env!("CARGO_PKG_VERSION"))) };
    let asked = (tool.version)();
    let file = find_in(folder, asked.program, generator.definition().remedy)?;
    Ok(first_line(&file, &asked.arguments))
}

/// Runs the programs of a cell's generator on a rig that is prepared, and gives what was observed.
pub(crate) fn run(
    rig: &mut Rig,
    cell: &Cell,
    path: &Path,
    spec: &TrialSpec,
) -> Result<(Collected, GeneratorEvidence), CampaignError> {
    let generator = Generator::of(cell);
    let (Some(tool), Some(hosts)) = (tool(generator), rig.network.tool_hosts()) else {
        return Err(CampaignError::Usage(format!(
            "generator {generator} runs between namespaces of this kernel, and this testbed is inside a guest, where its program is not \
             installed: leave the generator out, or add the missing modules to this kernel (stacklab doctor)"
        )));
    };
    let programs = cell.settings.programs.as_deref();
    let version = version(generator, programs)?;
    let traffic = traffic(path, spec);
    let before = rig.ends.counters()?;
    let started_unix_ns = now_unix_ns();
    let clock = Instant::now();
    let first_ns = now_ns();
    let driven = drive(hosts, generator, (tool, &version, programs), &traffic, || rig.ends.is_interrupted())?;
    thread::sleep(foreign::UNDER_WAY);
    let last_ns = now_ns();
    let wall_ns = clock.elapsed().as_nanos() as u64;
    let after = rig.ends.counters()?;
    let counted = [0, 1].map(|host| foreign::increase(&before[host], &after[host]));
    let reports = reports(path, spec, tool, &driven, counted, [first_ns, last_ns]);
    let limits = Limits::NONE;
    let collected = Collected { started_unix_ns, wall_ns, limits, reports: Ok(vec![reports]) };
    Ok((collected, GeneratorEvidence { generator, figures: driven.figures }))
}

fn traffic(path: &Path, spec: &TrialSpec) -> Traffic {
    Traffic {
        transport: spec.transport,
        message_bytes: spec.message_bytes,
        length: spec.probe.length,
        per_second: match spec.probe.pacing {
            Pacing::Schedule(per_second) => Some(per_second),
            _ => None,
        },
        round_trips: spec.probe.probe == Probe::Echo,
        flows: spec.flows,
        tuning: (*spec.tuning).clone(),
        destination: path.destination(),
        source: path.sender.ip(),
        listen: path.receiver.ip(),
    }
}

/// The reports of both hosts: counts by the programs' word, counters by the kernels'.
fn reports(
    path: &Path,
    spec: &TrialSpec,
    tool: &Tool,
    driven: &Driven,
    counters: [Counters; 2],
    [first_ns, last_ns]: [u64; 2],
) -> Ends<HostReport> {
    let own = driven.figures.as_ref().ok().cloned().unwrap_or_default();
    let Ends { sender, receiver } = foreign::endpoints(path, spec.transport, tool.data_port);
    let messages = |bytes: Option<u64>| bytes.unwrap_or(0) / u64::from(spec.message_bytes.max(1));
    let mut sent = HostReport::new(Role::Sender, sender);
    sent.sent.bytes = own.sent_bytes.unwrap_or(0);
    sent.sent.measured = own.sent_messages.unwrap_or_else(|| messages(own.sent_bytes));
    (sent.sent.first_ns, sent.sent.last_ns) = (first_ns, last_ns);
    let mut received = HostReport::new(Role::Receiver, receiver);
    received.received.bytes = own.received_bytes.unwrap_or(0);
    received.received.measured = own.received_messages.unwrap_or_else(|| messages(own.received_bytes));
    (received.received.first_ns, received.received.last_ns) = (first_ns, last_ns);
    let [by_sender, by_receiver] = counters;
    (sent.counters, received.counters) = (by_sender, by_receiver);
    [sent.tool, received.tool] = driven.reports.clone();
    // With the kernel's work in the program's threads.
    let kind = (CpuScope::Threads, CpuSource::ThreadClocks);
    let window_ns = last_ns.saturating_sub(first_ns);
    [sent.cpu, received.cpu] = driven
        .cpu
        .map(|cpu| cpu.map(|cpu| CpuTime::of_processes(kind, window_ns, [cpu.user_ns, cpu.system_ns])));
    Ends { sender: sent, receiver: received }
}

/// The figures of a trial that a generator drove, from its word and from both hosts' counters.
pub(crate) fn from_generator(
    spec: &TrialSpec,
    path: &Path,
    evidence: GeneratorEvidence,
    reports: Ends<HostReport>,
) -> Figures {
    let GeneratorEvidence { generator, figures } = evidence;
    let (values, reasons) = match figures {
        Ok(own) => (values(generator, spec, &own, &reports), validate::generator(spec, path, &reports)),
        Err(reason) => (BTreeMap::new(), vec![reason]),
    };
    let drops = Drops { socket_buffer: drops_of(&reports.receiver.counters), ..Drops::default() };
    Figures {
        status: RunStatus::of(reasons),
        values,
        drops,
        warnings: Vec::new(),
        host_reports: reports.into_iter().collect(),
    }
}

fn values(
    generator: Generator,
    spec: &TrialSpec,
    own: &ToolFigures,
    Ends { sender: sent, receiver: received }: &Ends<HostReport>,
) -> BTreeMap<Metric, Value> {
    let mut values = BTreeMap::new();
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.probe() == spec.probe.probe) {
        let figure = find_figure(metric, own, sent, received).filter(|figure| figure.is_finite());
        let value = match figure {
            _ if !metric.applies_to(spec.transport) => Value::Missing(format!(
                "{} does not apply to {}",
                metric.label(),
                Factor::Transport.level_label(spec.transport.name())
            )),
            Some(figure) => Value::Measured(figure),
            None => Value::Missing(format!("{generator} does not report it")),
        };
        values.insert(metric, value);
    }
    values
}

fn find_figure(metric: Metric, own: &ToolFigures, sent: &HostReport, received: &HostReport) -> Option<f64> {
    use Metric::*;
    let messages = sent.sent.of_trial() as f64;
    match metric {
        Throughput => own.bits_per_second.map(|bits| bits / 1e6),
        MessageRate => {
            let seconds = own.received_bytes? as f64 * 8.0 / own.bits_per_second?;
            Some(own.received_messages? as f64 / seconds)
        }
        Loss => own.loss,
        Jitter => own.jitter_ms,
        JitterRfc3550 => own.jitter_rfc3550_ms,
        OneWayDelayMean => own.delay_mean_ms,
        SenderCpuPerMessage => Some(sent.cpu.as_ref()?.busy_ns() as f64 / messages),
        ReceiverCpuPerMessage => {
            Some(received.cpu.as_ref()?.busy_ns() as f64 / received.received.measured as f64)
        }
        Retransmits => own.retransmits.map(|count| count as f64 / messages),
        IpFragCreates => Some(count_both_families(&sent.counters, "FragCreates") as f64 / messages),
        IpReasmOks => Some(count_both_families(&received.counters, "ReasmOKs") as f64 / messages),
        Rtt => own.round_trip_ms.map(|[median, ..]| median),
        RttMean => own.round_trip_ms.map(|[_, mean, _]| mean),
        RttP99 => own.round_trip_ms.map(|[.., high]| high),
        _ => None,
    }
}

fn count_both_families(counters: &Counters, name: &str) -> u64 {
    counters.get(&format!("ip.{name}")) + counters.get(&format!("ip6.{name}"))
}

/// Adds the bias of the generator that drove a trial: how far its own count of payload is from what the interfaces
/// counted, less the headers of the model.
pub(crate) fn with_bias(mut made: Figures, spec: &TrialSpec, path: &Path) -> Figures {
    if made.status != RunStatus::Valid || !spec.schedule.is_alone() || spec.probe.probe != Probe::Stream {
        return made;
    }
    let [sender, receiver] = &made.host_reports[..] else { return made };
    let sent = &sender.sent;
    let received = &receiver.received;
    // Warm-up and end markers are on the interface too.
    let all_sent = sent.warmup + sent.measured + sent.markers;
    let all_received = received.warmup + received.measured;
    let reported = [
        find_reported_bytes(sender, sent.bytes, all_sent, spec),
        find_reported_bytes(receiver, received.bytes, all_received, spec),
    ];
    let dropped = drops_of(&receiver.counters) as f64 * f64::from(spec.message_bytes);
    let mtu = path.path_mtus()[0];
    // Of another family than the sender's behind a translator.
    let [here, there] = [path.sender.ip(), path.receiver.ip()].map(Family::of);
    let counted = [
        validate::counted_payload(&sender.counters, "tx", spec, here, mtu),
        validate::counted_payload(&receiver.counters, "rx", spec, there, mtu) - dropped,
    ];
    for (metric, (reported, counted)) in [Metric::GeneratorTxError, Metric::GeneratorRxError]
        .into_iter()
        .zip(reported.into_iter().zip(counted))
    {
        let value = match reported {
            Some(reported) => {
                Value::finite(100.0 * (reported as f64 / counted - 1.0), "the interface counted no payload")
            }
            None => Value::Missing("the generator does not report its bytes".to_owned()),
        };
        made.values.insert(metric, value);
    }
    made
}

/// The payload that an end reports: in the word of its program, if it has one, otherwise that of its messages.
fn find_reported_bytes(report: &HostReport, bytes: u64, messages: u64, spec: &TrialSpec) -> Option<u64> {
    match (&report.tool, bytes) {
        (Some(_), 0) => None,
        (Some(_), bytes) => Some(bytes),
        (None, _) => Some(messages * u64::from(spec.message_bytes)),
    }
}

/// Datagrams that a host's kernel dropped for want of room in a socket.
fn drops_of(counters: &Counters) -> u64 {
    counters.get("udp.RcvbufErrors") + counters.get("udp6.RcvbufErrors")
}
