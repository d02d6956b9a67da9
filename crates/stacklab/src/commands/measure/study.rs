//! The study of `stacklab measure .. --against FAMILY`.

use crate::commands::measure::options::{CommonOptions, Peer};
use crate::commands::measure::refuse;
use crate::failure::Failure;
use stacklab_campaign::single::{MeasureRequest, Pace, default_size};
use stacklab_campaign::slow_path::{BLOCKS, MAX_MORE_NS, MIN_BLOCKS, SAMPLE_BUFFER, SAMPLE_NS};
use stacklab_campaign::trial::spec::{Goal, choose_io};
use stacklab_model::{Direction, Factor, Family, Length, Pacing, Probe, Transport};
use stacklab_study::Study;

/// A campaign has this many trials of each arm in its time, about: trials are what is compared.
const TRIALS: u64 = 40;
/// The shortest and the longest trial of an arm, nanoseconds.
const MIN_NS: u64 = 50_000_000;
/// The shortest trial of an arm that is not interleaved.
const MIN_ALONE_NS: u64 = 250_000_000;
pub(super) const MAX_TRIAL_NS: u64 = 2_000_000_000;
/// Warm-up without -O, as a share of a trial.
const WARMUP: u64 = 10;
/// Bytes per message of TCP on a slow path, which soon empties, or at a low rate.
const SLOW_MESSAGE: u32 = 1400;
/// Messages per second below which slices have too few of them.
const MIN_SLICED_RATE: f64 = 1000.0;
/// Messages of a trial, of which a rate can be found.
const MIN_TRIAL_MESSAGES: f64 = 8.0;

/// How the families take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arms {
    Interleaved,
    /// In separate trials, with a peer that reports nothing of slices.
    Alternating,
    /// In separate trials: of connections, at a rate or over a path that is too slow for slices. A small send buffer
    /// leaves little to empty.
    Slow {
        /// Length of a trial.
        trial_ns: u64,
        /// Send buffer of a connection, bytes.
        send_buffer: Option<u32>,
    },
    /// In one short trial each, to see whether their paths are slow.
    Look,
}

/// Length of a trial of interleaved arms in this time, nanoseconds.
pub(super) fn trial_ns(time_ns: u64) -> u64 {
    (time_ns / TRIALS).clamp(MIN_NS, MAX_TRIAL_NS)
}

/// Bytes of a message: at a low rate and on a slow path shorter ones, unless the user names a size.
pub(super) fn message_size(request: &MeasureRequest, is_slow: bool) -> u32 {
    let MeasureRequest { probe, transport, size_of, .. } = *request;
    let size = default_size(probe, transport, size_of);
    let is_seldom =
        matches!(request.pace.of(size), Pacing::Schedule(per_second) if per_second < MIN_SLICED_RATE);
    let is_short = probe == Probe::Stream && (is_slow || is_seldom);
    request.size.unwrap_or(if is_short { size.min(SLOW_MESSAGE) } else { size })
}

/// How the families take turns at a rate whose messages are too seldom for slices; `None` for another rate. An error if
/// the time is too short for them.
pub(super) fn arms_at_low_rate(request: &MeasureRequest) -> Result<Option<Arms>, Failure> {
    let size = message_size(request, false);
    let (Pacing::Schedule(per_second), Length::Time(time_ns)) = (request.pace.of(size), request.length)
    else {
        return Ok(None);
    };
    if per_second >= MIN_SLICED_RATE {
        return Ok(None);
    }
    let least_ns = least_ns(request.pace.of(size));
    let advice = match request.pace {
        Pace::As(_) => "a higher rate (--pps)",
        Pace::Bits(_) => "shorter messages (-l), a higher rate (-b)",
    };
    let needed_ns = least_ns.saturating_mul(2 * u64::from(MIN_BLOCKS));
    if needed_ns > time_ns.saturating_add(MAX_MORE_NS) {
        return Err(Failure::usage(format!(
            "at this rate a message of {size} bytes leaves {per_second:.3} times a second, too seldom to compare both families \
             in this time: choose {advice}, or -t {} or more",
            needed_ns.div_ceil(1_000_000_000)
        )));
    }
    // A third of the time is left for what trials take besides.
    let trial_ns =
        (time_ns / 3 * 2 / (2 * u64::from(BLOCKS))).clamp(MIN_ALONE_NS, MAX_TRIAL_NS).max(least_ns);
    Ok(Some(Arms::Slow { trial_ns, send_buffer: None }))
}

/// How the families take turns where connections are opened: these have no slices.
pub(super) fn arms_of_connections(time_ns: u64) -> Arms {
    Arms::Slow { trial_ns: trial_ns(time_ns).max(MIN_ALONE_NS), send_buffer: None }
}

/// The shortest trial that has enough messages, nanoseconds.
fn least_ns(pacing: Pacing) -> u64 {
    match pacing {
        Pacing::Schedule(per_second) => (MIN_TRIAL_MESSAGES / per_second * 1e9) as u64,
        _ => 0,
    }
}

/// The time of a comparison; an error for what cannot be compared.
fn time_to_compare(common: &CommonOptions, request: &MeasureRequest) -> Result<u64, Failure> {
    let refused = [
        (matches!(request.length, Length::Packets(_)), "a number of messages (-n)"),
        (
            common.peer != Peer::Stamp && request.probe == Probe::EchoOpenLoop,
            "a schedule of round trips (--pps)",
        ),
        (request.direction == Direction::Both, "--bidir"),
        (request.at_interface, "--at-interface"),
        (request.poll_ns > 0, "--poll"),
    ];
    refuse(&refused, " cannot be combined with --against: leave one out")?;
    let (Length::Time(time_ns) | Length::Packets(time_ns)) = request.length;
    Ok(time_ns)
}

/// The trials of a comparison.
struct Turns {
    schedule: &'static str,
    trial_ns: u64,
    warmup_ns: u64,
    send_buffer: Option<u32>,
}

impl Turns {
    fn of(request: &MeasureRequest, arms: Arms, time_ns: u64, pacing: Pacing) -> Self {
        // Beginning and end of a separate trial take as long as the shortest one.
        let (schedule, trial_ns) = match arms {
            Arms::Interleaved => ("interleaved", trial_ns(time_ns)),
            Arms::Alternating => ("sequential", trial_ns(time_ns).max(MIN_ALONE_NS).max(least_ns(pacing))),
            Arms::Slow { trial_ns, .. } => ("sequential", trial_ns),
            Arms::Look => ("sequential", SAMPLE_NS),
        };
        let warmup_ns = match arms {
            Arms::Interleaved if request.warmup_ns > 0 => request.warmup_ns,
            Arms::Interleaved => trial_ns / WARMUP,
            _ => 0,
        };
        let send_buffer = match arms {
            Arms::Slow { send_buffer, .. } => send_buffer,
            Arms::Look if request.transport == Transport::Tcp => Some(SAMPLE_BUFFER),
            _ => None,
        };
        Turns { schedule, trial_ns, warmup_ns, send_buffer }
    }
}

/// A study of both families with the request's options, which ends when its verdicts are sure or the time is over.
/// Without `counts_cpu` it has no CPU time: that of the trials would be the load of the machine that both hosts share.
pub(super) fn study_text(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    arms: Arms,
    counts_cpu: bool,
) -> Result<String, Failure> {
    let MeasureRequest { probe, transport, size_of, flows, .. } = *request;
    let time_ns = time_to_compare(common, request)?;
    let is_slow = matches!(arms, Arms::Slow { .. } | Arms::Look);
    let size = message_size(request, is_slow);
    let pacing = request.pace.of(size);
    let Turns { schedule, trial_ns, warmup_ns, send_buffer } = Turns::of(request, arms, time_ns, pacing);
    let candidate = if baseline == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 };
    let way = if common.reverse { "from" } else { "to" };
    let is_stream = probe == Probe::Stream;
    let metrics = metrics(common, request, pacing, arms, counts_cpu);
    let io = request.io.unwrap_or(choose_io(Goal::FillPath, probe, pacing, transport));
    let tuning = &request.tuning;
    let key = |key| format!("probe.{probe}.{key}");
    let mut study =
        Study::builder(format!("{transport} {probe} {way} {}: {candidate} against {baseline}", common.host))
            .set("testbed.offloads", true)
            .levels(Factor::Family, [baseline.name(), candidate.name()])
            .level(Factor::Transport, Some(transport.name()))
            .level(Factor::SizeOf, Some(size_of.name()))
            .level(Factor::Size, Some(size))
            .level(Factor::Io, is_stream.then(|| io.name()))
            .level(Factor::Flows, (is_stream && flows > 1).then_some(flows))
            .level(Factor::SendBuffer, tuning.send_buffer.or(send_buffer))
            .level(Factor::ReceiveBuffer, tuning.receive_buffer)
            .level(Factor::Mss, tuning.mss)
            .level(Factor::Nodelay, tuning.nodelay)
            .level(Factor::CongestionControl, tuning.congestion_control.as_deref())
            .level(Factor::Dscp, tuning.dscp)
            .set(&key("metrics"), metrics)
            .set(&key("length.time"), duration(trial_ns))
            .set(&key("warmup"), duration(warmup_ns))
            .set("blocks.min", MIN_BLOCKS)
            .set("blocks.max", 1000)
            .set("blocks.target", "0.1 %")
            .set("blocks.budget", duration(time_ns))
            .set("blocks.schedule", schedule)
            .compare(Factor::Family, [baseline.name(), candidate.name()], Some("1 %"));
    if let Pacing::Schedule(per_second) = pacing {
        study = study.set(&key("message_rate"), per_second);
    }
    Ok(study.text())
}

pub(super) fn duration(ns: u64) -> String {
    format!("{}us", ns / 1000)
}

/// The metrics of a request: a flood has no meaningful delays.
fn metrics(
    common: &CommonOptions,
    request: &MeasureRequest,
    pacing: Pacing,
    arms: Arms,
    counts_cpu: bool,
) -> Vec<&'static str> {
    let mut names = match (request.probe, request.transport) {
        (Probe::Echo, _) => vec!["rtt"],
        // Of a STAMP reflector: with an agent, no schedule of round trips is compared.
        (Probe::EchoOpenLoop, _) => vec!["path_round_trip", "echo_loss"],
        (Probe::Connect, _) => vec!["connect_time"],
        (_, Transport::Tcp) => vec!["throughput", "sender_cpu_per_message", "receiver_cpu_per_message"],
        (_, Transport::Udp) => {
            vec!["throughput", "loss", "sender_cpu_per_message", "receiver_cpu_per_message"]
        }
    };
    if arms == Arms::Alternating {
        // The peer reports neither CPU time nor delays.
        let unknown = if common.reverse { "sender_cpu_per_message" } else { "receiver_cpu_per_message" };
        names.retain(|name| *name != unknown);
    } else if request.probe == Probe::Stream && pacing != Pacing::Flood {
        names.extend(["one_way_delay", "jitter"]);
    }
    if !counts_cpu {
        names.retain(|name| !name.contains("_cpu_"));
    }
    names
}
