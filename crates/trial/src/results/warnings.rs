//! Warnings about a run's figures.

use crate::path::Path;
use crate::results::{found_path, interleaved, standstill};
use stacklab_model::{
    ArmSchedule, CpuScope, CpuSource, HostReport, Pacing, Probe, Transport, TrialSpec, Warning, wire_size,
};

/// Pacing error against a schedule beyond which a run is flagged, nanoseconds.
const LATE_NS: u64 = 5_000_000;
/// Ticks of CPU time below which a run's CPU figure is flagged as coarse.
const FEW_TICKS: u64 = 100;

/// Warnings about a run's figures.
pub fn warnings(spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = resized(spec, [sender, receiver]).into_iter().collect();
    // Where nothing arrived, nothing moved.
    if receiver.received.measured > 0 {
        warnings.extend(standstill::standstill(spec, sender, receiver));
    }
    warnings.extend(found_path::warnings(spec, path, sender, receiver));
    let mut warn = |code: &str, text: String, advice: &str| {
        warnings.push(Warning { code: code.to_owned(), text, advice: advice.to_owned() });
    };
    let received = if spec.probe.probe.echoes() { &sender.received } else { &receiver.received };
    if received.beyond_window > 0 {
        warn(
            "beyond_window",
            "messages arrived more than a million sequence numbers late: they are neither lost nor counted"
                .to_owned(),
            "check the path for delayed packets",
        );
    }
    let unanswered = sender.sent.measured.saturating_sub(received.measured);
    if spec.probe.probe.echoes() && unanswered > 0 {
        warn(
            "unanswered",
            format!(
                "{unanswered} of {} messages had no answer: they count as infinite",
                sender.sent.measured
            ),
            "check the path for loss, or lower the load",
        );
    }
    if sender.sent.discarded > 0 {
        warn(
            "discarded",
            format!(
                "{} messages were still in the sender's buffer when the time to end was over: they are not counted",
                sender.sent.discarded
            ),
            "the path is slow, or has a deep queue: measure for longer, with fewer flows, or a smaller send buffer",
        );
    }
    if received.strays > 0 {
        warn(
            "strays",
            "packets of another sender arrived at a trial's socket".to_owned(),
            "keep the testbed to itself",
        );
    }
    if sender.sent.max_late_ns.is_some_and(|late| late > LATE_NS) {
        warn(
            "late",
            format!("messages left more than {} ms after their schedule", LATE_NS / 1_000_000),
            "lower message_rate, or give the sender a separate processor",
        );
    }
    if let Some(cpu) = &sender.cpu
        && cpu.scope != CpuScope::Threads
        && cpu.source != Some(CpuSource::IdleResidency)
        && cpu.window_ns < FEW_TICKS * stacklab_traffic::timing::tick_ns()
    {
        warn(
            "tick",
            format!(
                "CPU time counts in ticks of {} ms: over the measured window one run's CPU figure is coarse",
                stacklab_traffic::timing::tick_ns() / 1_000_000
            ),
            "lengthen the runs (--scale standard) if CPU figures matter",
        );
    }
    let tcp_segments = spec.transport == Transport::Tcp && spec.size_of == stacklab_model::SizeOf::Payload;
    if tcp_segments
        && spec.probe.probe != Probe::Connect
        && sender.tcp.as_ref().and_then(|tcp| tcp.sent_segments()).is_none()
    {
        warn(
            "unproved",
            "this stack's TCP_INFO does not count segments: one segment per message could not be validated"
                .to_owned(),
            "read the sizes as those of writes (`size_of = write`)",
        );
    }
    let datagrams = spec.transport == Transport::Udp && spec.size_of == stacklab_model::SizeOf::Payload;
    if datagrams && receiver.received.measured > 0 && receiver.counters.get("interface.rx_packets") == 0 {
        warn(
            "unproved",
            "the receiver's interface does not count packets: one packet per message could not be validated"
                .to_owned(),
            "measure between two machines whose interfaces count",
        );
    }
    if let Some(rate) = path.rate
        && spec.transport == Transport::Udp
        && spec.probe.pacing == Pacing::Flood
        && spec.probe.probe == Probe::Stream
    {
        let wire = wire_size(spec.family, spec.transport, spec.message_bytes, path.mtu).wire_bytes;
        let fills = rate.bits_per_second() as f64 / 8.0 / f64::from(wire);
        let seconds = match spec.schedule {
            ArmSchedule::Alone => sender.sent.last_ns.saturating_sub(sender.sent.first_ns) as f64 / 1e9,
            _ => interleaved::arrivals(spec, &sender.slices).1,
        };
        if (sender.sent.measured as f64) < 0.99 * fills * seconds {
            warn(
                "below_link",
                format!(
                    "the sender did not fill the link of {rate}: throughput is the sender's limit, not the link's"
                ),
                "compare larger sizes, or set a lower rate",
            );
        }
    }
    let late = sender.slices.iter().filter(|slice| slice.messages == 0).count();
    if matches!(spec.schedule, ArmSchedule::TimeSlots(_)) && 10 * late > sender.slices.len() {
        warn(
            "late_slots",
            format!("{late} of {} slots came too late for a slice and were left out", sender.slices.len()),
            "end other load, or set a longer blocks.slice",
        );
    }
    warnings
}

/// Buffers that differ from the requested size. Linux doubles the requested size for its own bookkeeping, limited to
/// the machine's maximum (which root may exceed) and to a minimum of a packet or two.
fn resized(spec: &TrialSpec, host_reports: [&HostReport; 2]) -> Option<Warning> {
    let mut found = Vec::new();
    for side in host_reports {
        let (asked, options) = (&spec.tuning, &side.endpoint.options);
        for (what, asked, kept) in [
            ("send", asked.send_buffer, options.send_buffer),
            ("receive", asked.receive_buffer, options.receive_buffer),
        ] {
            let (Some(asked), Some(kept)) = (asked, kept) else { continue };
            if u64::from(kept) != 2 * u64::from(asked) {
                found.push(format!("the {}'s {what} buffer: {asked} requested, {} set", side.role, kept / 2));
            }
        }
    }
    (!found.is_empty()).then(|| Warning {
        code: "clamped".to_owned(),
        text: format!("socket buffers differ from the requested sizes, in bytes: {}", found.join("; ")),
        advice: "run as root, raise net.core.wmem_max and net.core.rmem_max, or use a size between a few KiB and those"
            .to_owned(),
    })
}
