//! Warnings about a run's figures.

use crate::path::Path;
use crate::results::interleaved;
use stacklab_model::{
    ArmSchedule, CpuScope, CpuSource, HostReport, IntervalRow, Length, Pacing, Probe, Rate, Role, SizeOf,
    Slice, TcpInfo, Transport, TrialSpec, Warning, count, wire_size,
};
use stacklab_traffic::timing::tick_ns;
use std::net::SocketAddr;

/// Pacing error against a schedule beyond which a run is flagged, nanoseconds.
const LATE_NS: u64 = 5_000_000;
/// Ticks of CPU time below which a run's CPU figure is flagged as coarse.
const MIN_TICKS: u64 = 100;
/// What may pass without a message, nanoseconds, in addition to the usual: longer than a first retransmission of TCP
/// takes.
const LONG_NS: u64 = 250_000_000;
/// Packets of this size pass any path of IPv6, bytes.
const MIN_MTU: u32 = 1280;

/// Whether it applies, its code, its text and its advice.
type WarningRow = (bool, &'static str, String, &'static str);

/// Warnings about a run's figures.
pub fn warnings(spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = warn_of_resized_buffers(spec, [sender, receiver]).into_iter().collect();
    // Where nothing arrived, nothing moved.
    let arrived = receiver.received.measured > 0;
    warnings.extend(standstill(spec, sender, receiver).filter(|_| arrived));
    warnings.extend(of_found_path(spec, path, sender, receiver));
    let rows = of_messages(spec, sender, receiver).into_iter().chain(of_host(spec, path, sender, receiver));
    warnings.extend(rows.filter(|(applies, ..)| *applies).map(|(_, code, text, advice)| Warning {
        code: code.to_owned(),
        text,
        advice: advice.to_owned(),
    }));
    warnings
}

fn of_messages(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> [WarningRow; 5] {
    let sent = &sender.sent;
    let echoes = spec.probe.probe.echoes();
    let received = if echoes { &sender.received } else { &receiver.received };
    let unanswered = sent.measured.saturating_sub(received.measured);
    [
        (
            received.beyond_window > 0,
            "beyond_window",
            "messages arrived more than a million sequence numbers late: they are neither lost nor counted"
                .to_owned(),
            "check the path for delayed packets",
        ),
        (
            echoes && unanswered > 0,
            "unanswered",
            format!(
                "{unanswered} of {} had no answer: they count as infinite",
                count(sent.measured, "message")
            ),
            "check the path for loss, or lower the load",
        ),
        (
            sent.discarded > 0,
            "discarded",
            format!(
                "{} not counted: still in the sender's buffer when the time to end was over",
                count(sent.discarded, "message")
            ),
            "the path is slow, or has a deep queue: measure for longer, with fewer flows, or a smaller send buffer",
        ),
        (
            received.strays > 0,
            "strays",
            "packets of another sender arrived at a trial's socket".to_owned(),
            "keep the testbed to itself",
        ),
        (
            sent.max_late_ns.is_some_and(|late| late > LATE_NS),
            "late",
            format!("messages left more than {} ms after their schedule", LATE_NS / 1_000_000),
            "lower the rate (measure: -b or --pps; a study: message_rate), or give the sender a separate processor",
        ),
    ]
}

fn of_host(spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> [WarningRow; 6] {
    let tcp = spec.transport == Transport::Tcp;
    let segments = spec.size_of == SizeOf::Payload;
    let counts_segments = sender.tcp.as_ref().and_then(TcpInfo::sent_segments).is_some();
    let counts_packets = receiver.counters.get("interface.rx_packets") > 0;
    let below = find_unfilled_rate(spec, path, sender);
    let slots = sender.slices.len();
    let least = ArmSchedule::MIN_SLICES;
    let left_out = sender.slices.iter().filter(|slice| slice.messages == 0).count();
    [
        (
            is_coarse(sender),
            "tick",
            format!(
                "CPU time counts in ticks of {} ms: over the measured window one run's CPU figure is coarse",
                tick_ns() / 1_000_000
            ),
            "lengthen the runs (measure: -t; a study: --scale standard) if CPU figures matter",
        ),
        (
            tcp && segments && spec.probe.probe != Probe::Connect && !counts_segments,
            "unproved",
            "this stack's TCP_INFO does not count segments: one segment per message could not be validated"
                .to_owned(),
            "read the sizes as those of writes (`size_of = write`)",
        ),
        (
            !tcp && segments && receiver.received.measured > 0 && !counts_packets,
            "unproved",
            "the receiver's interface does not count packets: one packet per message could not be validated"
                .to_owned(),
            "measure between two machines whose interfaces count",
        ),
        (
            below.is_some(),
            "below_link",
            format!(
                "the sender did not fill the link of {}: throughput is the sender's limit, not the link's",
                below.map_or_else(String::new, |rate| rate.to_string())
            ),
            "compare larger sizes, or set a lower rate",
        ),
        (
            matches!(spec.schedule, ArmSchedule::TimeSlots(_)) && 10 * left_out > slots,
            "late_slots",
            format!("{left_out} of {slots} slots came too late for a slice and were left out"),
            "end other load, or set a longer blocks.slice",
        ),
        (
            // A study that names the length of a slice has named how many there are.
            !spec.schedule.is_alone() && spec.schedule.slice_ns().is_none() && (slots as u64) < least,
            "few_rounds",
            format!(
                "figures are of {} of slices: they vary more than those of {least} or more",
                count(slots, "round")
            ),
            "lengthen the runs (measure: -t; a study: --scale standard), or end other load",
        ),
    ]
}

/// Whether few ticks of CPU time passed in the measured window.
fn is_coarse(sender: &HostReport) -> bool {
    sender.cpu.as_ref().is_some_and(|cpu| {
        cpu.scope != CpuScope::Threads
            && cpu.source != Some(CpuSource::IdleResidency)
            && cpu.window_ns < MIN_TICKS * tick_ns()
    })
}

/// The rate of a link that a flood of datagrams, which alone fills one, did not fill.
fn find_unfilled_rate(spec: &TrialSpec, path: &Path, sender: &HostReport) -> Option<Rate> {
    let is_flood = spec.probe.pacing == Pacing::Flood && spec.probe.probe == Probe::Stream;
    let rate = path.rate.filter(|_| spec.transport == Transport::Udp && is_flood)?;
    let wire = wire_size(spec.family, spec.transport, spec.message_bytes, path.mtu).wire_bytes;
    let fills = rate.bits_per_second() as f64 / 8.0 / f64::from(wire);
    let sent = &sender.sent;
    let seconds = match spec.schedule {
        ArmSchedule::Alone => sent.last_ns.saturating_sub(sent.first_ns) as f64 / 1e9,
        _ => interleaved::arrivals(spec, &sender.slices).1,
    };
    ((sent.measured as f64) < 0.99 * fills * seconds).then_some(rate)
}

fn of_found_path(spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> Vec<Warning> {
    if !path.is_as_found() {
        return Vec::new();
    }
    let translated = translations(sender, receiver).into_iter().map(|(end, [from, to])| Warning {
        code: "translated".to_owned(),
        text: format!("the {end}'s address is translated on the way: {} -> {}", from.ip(), to.ip()),
        advice: "figures include the translator; measure from a host behind it to leave it out".to_owned(),
    });
    translated.chain(warn_of_no_arrival(spec, path, sender, receiver)).collect()
}

/// The ends whose address the other one sees differently, each with the address before and behind the translator.
fn translations(sender: &HostReport, receiver: &HostReport) -> Vec<(&'static str, [SocketAddr; 2])> {
    let ends = [("sender", sender, receiver), ("receiver", receiver, sender)];
    let seen = ends.map(|(end, own, other)| (end, [own.endpoint.local, other.endpoint.peer]));
    // A host may not know its peer.
    seen.into_iter().filter(|(_, [from, to])| to.port() != 0 && from.ip() != to.ip()).collect()
}

/// Where all datagrams were lost: what may have dropped them.
fn warn_of_no_arrival(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
) -> Option<Warning> {
    if spec.transport != Transport::Udp || sender.sent.measured == 0 {
        return None;
    }
    if receiver.received.measured > 0 {
        return warn_of_no_answer(spec, sender, receiver);
    }
    let packet = spec.family.header_bytes() + spec.transport.header_bytes() + spec.message_bytes;
    // The end that waits is the one that a firewall has to let something in to.
    let ends = [receiver.endpoint.local, sender.endpoint.local];
    let to = ends[usize::from(path.opener == Some(Role::Receiver))];
    let black_hole = match packet > MIN_MTU {
        true => format!(
            " Or a path MTU black hole, if packets smaller than these of {packet} bytes arrive (-l 1000)?"
        ),
        false => String::new(),
    };
    let family = spec.family;
    let to = to.ip();
    Some(Warning {
        code: "nothing_arrived".to_owned(),
        text: format!("no {family} datagram arrived: all were dropped on the way; a firewall?{black_hole}"),
        advice: format!(
            "let UDP through to {to}, at any port, or at the one of `stacklab agent --listen --data-port PORT` there"
        ),
    })
}

/// Where messages arrived and all of their answers were lost.
fn warn_of_no_answer(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Option<Warning> {
    let has_none = spec.probe.probe.echoes() && sender.received.measured == 0;
    has_none.then(|| Warning {
        code: "nothing_arrived".to_owned(),
        text: format!(
            "{} arrived at the other host, and no answer came back: all were dropped on the way; a firewall?",
            count(receiver.received.measured, "message")
        ),
        advice: format!("let UDP through from {} to {}", receiver.endpoint.local, sender.endpoint.local.ip()),
    })
}

/// Buffers that differ from the requested size. Linux doubles the requested size for its own bookkeeping, limited to
/// the machine's maximum (which root may exceed) and to a minimum of a packet or two.
fn warn_of_resized_buffers(spec: &TrialSpec, host_reports: [&HostReport; 2]) -> Option<Warning> {
    let mut found = Vec::new();
    for side in host_reports {
        let asked = &spec.tuning;
        let options = &side.endpoint.options;
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

/// The warning of a run in which nothing moved for long.
fn standstill(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Option<Warning> {
    if spec.probe.probe == Probe::Connect {
        return None;
    }
    let ns = match spec.schedule {
        ArmSchedule::Alone => alone(spec, sender, receiver),
        _ => [&sender.slices, &receiver.slices].into_iter().filter_map(|slices| in_slices(slices)).max(),
    }?;
    Some(standstill_of(ns))
}

/// The warning for this long without a message.
fn standstill_of(ns: u64) -> Warning {
    Warning {
        code: "standstill".to_owned(),
        text: format!("nothing moved for about {} ms of the measured window", ns / 1_000_000),
        advice: "see whether a host or the link was stopped meanwhile".to_owned(),
    }
}

/// The warning of a test with a peer of another protocol, in whose stream nothing moved for `pause_ns` of `window_ns`;
/// a stream had this many messages, or receives.
pub fn standstill_of_stream(
    spec: &TrialSpec,
    pause_ns: u64,
    window_ns: u64,
    messages: u64,
) -> Option<Warning> {
    let planned_ns = match spec.probe.pacing {
        Pacing::Schedule(per_second) => (1e9 * f64::from(spec.flows) / per_second) as u64,
        _ => 0,
    };
    let usual_ns = planned_ns.max(window_ns / messages.max(1));
    (pause_ns > usual_ns.saturating_mul(2).saturating_add(LONG_NS)).then(|| standstill_of(pause_ns))
}

/// For how long nothing moved in a trial by itself, if that was long.
fn alone(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Option<u64> {
    let seen = if spec.probe.probe.echoes() { sender } else { receiver };
    let sent_ns = sender.sent.last_ns.saturating_sub(sender.sent.first_ns);
    let arrived_ns = seen.received.last_ns.saturating_sub(seen.received.first_ns);
    // Where nothing arrived at the beginning or the end, the arrivals are a shorter window than what was sent.
    let missing_ns = sent_ns.saturating_sub(arrived_ns);
    if seen.received.measured == 0 {
        return (sender.sent.measured > 0).then_some(sent_ns);
    }
    let usual_ns = sent_ns.max(arrived_ns) / seen.received.measured;
    if missing_ns > sent_ns / 5 && missing_ns > usual_ns.saturating_mul(20) {
        return Some(missing_ns);
    }
    let longer_ns = match spec.probe.length {
        Length::Time(ns) => sent_ns.saturating_sub(ns),
        Length::Packets(_) => 0,
    };
    let ns = longer_ns.max(longest_gap(&seen.series));
    (ns > usual_ns.saturating_mul(2).saturating_add(LONG_NS)).then_some(ns)
}

/// How much longer than the others the longest round of an arm lasted, from the beginning of its slice to that of the
/// next one, if that was long. What keeps a path from getting empty keeps all arms waiting. A slice of which nothing
/// arrived has no beginning: the rounds around it count as equally long.
fn in_slices(slices: &[Slice]) -> Option<u64> {
    let slices: Vec<&Slice> =
        slices.iter().filter(|slice| slice.messages > 0 || slice.first_ns > 0).collect();
    let began = slices.windows(2).map(|pair| {
        let rounds = pair[1].round.saturating_sub(pair[0].round).max(1);
        pair[1].first_ns.saturating_sub(pair[0].first_ns) / u64::from(rounds)
    });
    let last = slices.last()?;
    let mut lasted: Vec<u64> = began.chain([last.last_ns.saturating_sub(last.first_ns)]).collect();
    lasted.sort_unstable();
    let usual_ns = lasted[lasted.len() / 2];
    let longest_ns = lasted[lasted.len() - 1];
    (longest_ns > usual_ns.saturating_mul(2).saturating_add(LONG_NS)).then(|| longest_ns - usual_ns)
}

/// The longest stretch of intervals without a message, nanoseconds.
fn longest_gap(series: &[IntervalRow]) -> u64 {
    let [first, second, ..] = series else { return 0 };
    let row_ns = second.start_ns.saturating_sub(first.start_ns);
    let empty = series.split(|row| row.messages > 0).map(<[_]>::len).max().unwrap_or(0);
    (empty as u64).saturating_mul(row_ns)
}

#[cfg(test)]
mod tests;
