//! Paths that are too slow for slices of milliseconds: what a short trial shows of a path, and how long the trials are
//! by which families are compared in turns.

use stacklab_model::{Family, RunRecord, Transport};

/// Length of the trial that samples a path, nanoseconds: a slow one soon empties.
pub const SAMPLE_NS: u64 = 200_000_000;
/// The send buffer of that trial, bytes.
pub const SAMPLE_BUFFER: u32 = 64 << 10;
/// Blocks without which nothing is claimed of a single question.
pub const MIN_BLOCKS: u32 = 6;
/// Blocks that trials in turns are to have in their time, if these can be short enough: a claim on four metrics needs
/// nine.
pub const BLOCKS: u32 = 10;
/// By how much trials in turns may take longer than the time asked for, nanoseconds.
pub const MAX_MORE_NS: u64 = 10_000_000_000;
/// Slices are for paths that empty within this share of a trial.
const EMPTYING_SHARE: u64 = 4;
/// The longest delay of a trial that may come from a busy processor, nanoseconds.
const MAX_LATE_NS: u64 = 1_000_000_000;
/// The shortest and the longest trial of a slow path, nanoseconds, and the fewest messages of one.
const MIN_NS: u64 = 250_000_000;
const MAX_NS: u64 = 2_000_000_000;
const MIN_MESSAGES: f64 = 4.0;
/// The least send buffer on a slow path, bytes, and how much of the path's rate it holds, nanoseconds.
const MIN_BUFFER: f64 = 8192.0;
const BUFFER_NS: f64 = 250_000_000.0;

/// Trials in turns on a slow path.
#[derive(Debug)]
pub struct SlowTrials {
    /// Their length, nanoseconds.
    pub trial_ns: u64,
    /// The send buffer of TCP, bytes.
    pub send_buffer: Option<u32>,
    /// The slowest path, to print.
    pub slowest: String,
}

/// What a family's path showed in a short trial.
pub struct PathSample {
    family: Family,
    bits_per_second: f64,
    message_bits: f64,
    /// How long the path took to empty after the last message was sent, nanoseconds.
    emptying_ns: u64,
    /// All other steps of a trial, nanoseconds.
    steps_ns: u64,
    least_round_trip_ns: u64,
}

impl PathSample {
    /// What a run showed; `None` where nothing got through, whose reason a comparison gives.
    pub fn of(run: &RunRecord) -> Option<Self> {
        let [sender, receiver, ..] = run.host_reports.as_slice() else { return None };
        let received = &receiver.received;
        let window_ns = received.last_ns.saturating_sub(received.first_ns);
        let bytes = received.all_bytes().saturating_sub(received.bytes_at_first);
        // A sender that is late, on a busy machine, sends for longer: that is not the path's time.
        let sent_ns = sender.sent.last_ns.saturating_sub(sender.sent.first_ns).max(SAMPLE_NS);
        let emptying_ns = window_ns.saturating_sub(sent_ns);
        let least_us = sender.tcp.as_ref().and_then(|tcp| tcp.min_rtt_us).unwrap_or(0);
        (window_ns > 0 && bytes > 0).then(|| PathSample {
            family: run.spec.family,
            bits_per_second: bytes as f64 * 8e9 / window_ns as f64,
            message_bits: f64::from(run.spec.message_bytes) * 8.0,
            emptying_ns,
            steps_ns: run.wall_ns.saturating_sub(sent_ns + emptying_ns),
            least_round_trip_ns: least_us * 1000,
        })
    }

    /// Whether slices of a trial of this length fit the path.
    pub fn suits_slices(&self, trial_ns: u64) -> bool {
        self.emptying_ns <= trial_ns / EMPTYING_SHARE
    }

    /// Whether this host may have been late, and the path not slow: it does not suit slices, and emptied soon.
    pub fn may_be_late(&self, trial_ns: u64) -> bool {
        !self.suits_slices(trial_ns) && self.emptying_ns < MAX_LATE_NS
    }

    /// The send buffer with which the path is always busy, and soon empty.
    fn send_buffer(&self) -> f64 {
        let ns = BUFFER_NS.max(2.0 * self.least_round_trip_ns as f64);
        (self.bits_per_second / 8.0 * ns / 1e9).clamp(MIN_BUFFER, f64::from(SAMPLE_BUFFER))
    }
}

/// Trials in turns, as long as the time allows after the samples have taken `looked_ns`; at least one sample. An error
/// if the paths are too slow for the time, with the time that is enough.
pub fn trials_in_turns(
    transport: Transport,
    time_ns: u64,
    looked_ns: u64,
    shown: &[PathSample],
) -> Result<SlowTrials, String> {
    let buffer = (transport == Transport::Tcp)
        .then(|| shown.iter().map(PathSample::send_buffer).fold(MIN_BUFFER, f64::max));
    let smaller = buffer.map_or(1.0, |buffer| buffer / f64::from(SAMPLE_BUFFER));
    let mut besides_each_ns = 0;
    let mut least_ns = MIN_NS as f64;
    for path in shown {
        besides_each_ns += (path.emptying_ns as f64 * smaller) as u64 + path.steps_ns;
        least_ns = least_ns.max(MIN_MESSAGES * path.message_bits / path.bits_per_second * 1e9);
    }
    let least_ns = least_ns as u64;
    let blocks = u64::from(BLOCKS);
    let left_ns = time_ns.saturating_sub(looked_ns + blocks * besides_each_ns);
    let trial_ns = (left_ns / (2 * blocks)).max(least_ns);
    let slowest = shown.iter().min_by(|one, two| one.bits_per_second.total_cmp(&two.bits_per_second));
    let slowest = slowest.expect("a path was slow");
    let family = slowest.family;
    let rate = slowest.bits_per_second / 1e3;
    let needed_ns = looked_ns + u64::from(MIN_BLOCKS) * (besides_each_ns + 2 * least_ns);
    if needed_ns > time_ns + MAX_MORE_NS {
        let seconds = needed_ns.div_ceil(1_000_000_000);
        return Err(format!(
            "the path is too slow to compare both families in this time: over {family} it carries {rate:.0} kbit/s, \
             and takes {:.1} s to empty after each trial; use -t {seconds} or more, or measure each family alone",
            slowest.emptying_ns as f64 / 1e9
        ));
    }
    Ok(SlowTrials {
        trial_ns: trial_ns.min(MAX_NS.max(least_ns)),
        send_buffer: buffer.map(|bytes| bytes as u32),
        slowest: format!("{rate:.0} kbit/s over {family}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::make_receiver_report;
    use stacklab_model::{Cell, HostReport, Metric, Probe, Role, SizeOf, Trial, Value};

    fn path(bits_per_second: f64, emptying_ns: u64) -> PathSample {
        let family = Family::Ipv4;
        let message_bits = 11_200.0;
        PathSample {
            family,
            bits_per_second,
            message_bits,
            emptying_ns,
            steps_ns: 50_000_000,
            least_round_trip_ns: 1_000_000,
        }
    }

    #[test]
    fn slightly_late_trial_is_looked_at_again() {
        for (emptying_ns, is_late) in [(5_000_000, false), (200_000_000, true), (1_500_000_000, false)] {
            assert_eq!(path(512e3, emptying_ns).may_be_late(50_000_000), is_late, "{emptying_ns}");
        }
    }

    /// A run whose messages left and arrived over these times, both hosts' own.
    fn run_over(sent_ns: u64, received_ns: u64) -> RunRecord {
        let cell = Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 1400);
        let trial = Trial { block: 0, position: 0, cell, probe: Probe::Stream };
        let mut run = RunRecord::with_value(trial, Metric::Throughput, Value::Measured(1.0));
        let mut sender = HostReport { role: Role::Sender, ..make_receiver_report(0, 0.0) };
        sender.sent.first_ns = 5_000;
        sender.sent.last_ns = 5_000 + sent_ns;
        let mut receiver = make_receiver_report(0, 0.0);
        receiver.received.first_ns = 9_000;
        receiver.received.last_ns = 9_000 + received_ns;
        receiver.received.bytes = 1_250_000;
        receiver.received.bytes_at_first = 0;
        run.host_reports = vec![sender, receiver];
        run
    }

    #[test]
    fn a_late_sender_makes_no_slow_path() {
        let millis = 1_000_000;
        // On a busy machine 200 ms of messages left within 900 ms, and arrived as they left.
        let late = PathSample::of(&run_over(900 * millis, 902 * millis)).unwrap();
        assert_eq!(late.emptying_ns, 2 * millis);
        assert!(late.suits_slices(50 * millis));
        // They left in time, and the path had them for as long again as it took to send them.
        let slow = PathSample::of(&run_over(200 * millis, 400 * millis)).unwrap();
        assert_eq!(slow.emptying_ns, 200 * millis);
        assert!(!slow.suits_slices(50 * millis));
        // The schedule's last message may leave before its end.
        assert_eq!(PathSample::of(&run_over(190 * millis, 201 * millis)).unwrap().emptying_ns, millis);
    }

    #[test]
    fn trials_of_a_slow_path_fill_or_name_a_longer_time() {
        let second = 1_000_000_000;
        let slow = [path(512e3, second), path(512e3, second)];
        let Ok(SlowTrials { trial_ns, send_buffer: None, .. }) =
            trials_in_turns(Transport::Udp, 30 * second, 3 * second, &slow)
        else {
            panic!("it fits")
        };
        assert_eq!(trial_ns, (30 - 3) * second / 20 - second - 50_000_000);
        // In a shorter time there are fewer blocks.
        let short = trials_in_turns(Transport::Udp, 20 * second, 3 * second, &slow).unwrap();
        assert_eq!(short.trial_ns, MIN_NS);
        // A small buffer leaves less to empty.
        let tcp = trials_in_turns(Transport::Tcp, 30 * second, 3 * second, &slow).unwrap();
        let SlowTrials { trial_ns: longer, send_buffer: Some(16_000), .. } = tcp else { panic!("{tcp:?}") };
        assert!(longer > trial_ns);
        let slower = [path(64e3, 8 * second), path(64e3, 8 * second)];
        // 18 s until now, six blocks of two trials of 0.7 s and what they need besides.
        let error = trials_in_turns(Transport::Udp, 20 * second, 18 * second, &slower).unwrap_err();
        assert!(error.contains("64 kbit/s") && error.contains("-t 123 or more"), "{error}");
    }
}
