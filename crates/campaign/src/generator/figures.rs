//! Makes the figures of a trial that another program drove: they are its own, and what it does not tell is missing.

use crate::generator::bias::drops_of;
use crate::generator::drive::Driven;
use stacklab_model::{
    Counters, CpuScope, CpuSource, CpuTime, Drops, Endpoint, Ends, Factor, Family, Generator, HostReport,
    Metric, Role, RunStatus, TrialSpec, Value,
};
use stacklab_protocols::generators::{Figures as ToolFigures, Tool};
use stacklab_testbed::ChildCpu;
use stacklab_trial::{Figures, Path, validate};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The output of another program in a trial.
#[derive(Debug)]
pub(crate) struct GeneratorEvidence {
    pub generator: Generator,
    /// Its figures, or why there are none.
    pub figures: Result<ToolFigures, String>,
}

/// The reports of both hosts: counts by the programs' word, counters by the kernels'.
pub(super) fn reports(
    path: &Path,
    spec: &TrialSpec,
    tool: &Tool,
    driven: &Driven,
    counters: [Counters; 2],
    [first_ns, last_ns]: [u64; 2],
) -> Ends<HostReport> {
    let own = driven.figures.as_ref().ok().cloned().unwrap_or_default();
    let [own_mtu, other_mtu] = path.own_mtus();
    let endpoint = |local: SocketAddr, peer: SocketAddr, interface_mtu| Endpoint {
        family: Family::of(local.ip()),
        transport: spec.transport,
        local,
        peer,
        interface: stacklab_testbed::INTERFACE.to_owned(),
        interface_mtu,
        path_mtu: None,
        offloads: Default::default(),
        congestion_control: None,
        options: Default::default(),
    };
    let [here, there] = [path.sender.ip(), path.receiver.ip()];
    let sender = endpoint((here, 0).into(), (path.destination(), tool.data_port).into(), own_mtu);
    let receiver = endpoint((there, tool.data_port).into(), (path.source(), 0).into(), other_mtu);
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
    [sent.cpu, received.cpu] = driven.cpu.map(|cpu| Some(cpu_time(cpu?, last_ns.saturating_sub(first_ns))));
    Ends { sender: sent, receiver: received }
}

/// A program's CPU time as its host's, with the kernel's work in its threads.
fn cpu_time(of: ChildCpu, window_ns: u64) -> CpuTime {
    CpuTime {
        scope: CpuScope::Threads,
        source: Some(CpuSource::ThreadClocks),
        window_ns,
        user_ns: of.user_ns,
        system_ns: of.system_ns,
        irq_ns: 0,
        softirq_ns: 0,
        idle_ns: 0,
        steal_ns: 0,
        undivided: false,
        own_user_ns: 0,
        own_system_ns: 0,
    }
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
    let metrics = Metric::ALL.iter().copied().filter(|metric| metric.probe() == spec.probe.probe);
    let figure = |metric: Metric| {
        use Metric::*;
        let seconds =
            own.received_bytes.zip(own.bits_per_second).map(|(bytes, rate)| bytes as f64 * 8.0 / rate);
        let each = |count: u64| count as f64 / sent.sent.of_trial() as f64;
        let both = |counters: &Counters, name: &str| {
            each(counters.get(&format!("ip.{name}")) + counters.get(&format!("ip6.{name}")))
        };
        match metric {
            Throughput => own.bits_per_second.map(|bits| bits / 1e6),
            MessageRate => Some(own.received_messages? as f64 / seconds?),
            Loss => own.loss,
            Jitter => own.jitter_ms,
            JitterRfc3550 => own.jitter_rfc3550_ms,
            OneWayDelayMean => own.delay_mean_ms,
            SenderCpuPerMessage => Some(sent.cpu.as_ref()?.busy_ns() as f64 / sent.sent.of_trial() as f64),
            ReceiverCpuPerMessage => {
                Some(received.cpu.as_ref()?.busy_ns() as f64 / received.received.measured as f64)
            }
            Retransmits => own.retransmits.map(each),
            IpFragCreates => Some(both(&sent.counters, "FragCreates")),
            IpReasmOks => Some(both(&received.counters, "ReasmOKs")),
            Rtt => own.round_trip_ms.map(|[median, ..]| median),
            RttMean => own.round_trip_ms.map(|[_, mean, _]| mean),
            RttP99 => own.round_trip_ms.map(|[.., high]| high),
            _ => None,
        }
    };
    let value = |metric: Metric| match figure(metric).filter(|figure| figure.is_finite()) {
        _ if !metric.applies_to(spec.transport) => Value::Missing(format!(
            "{} does not apply to {}",
            metric.label(),
            Factor::Transport.level_label(spec.transport.name())
        )),
        Some(figure) => Value::Measured(figure),
        None => Value::Missing(format!("{generator} does not report it")),
    };
    metrics.map(|metric| (metric, value(metric))).collect()
}
