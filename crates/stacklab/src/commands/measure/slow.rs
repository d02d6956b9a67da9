//! Paths that are too slow for slices of milliseconds: what they show in a short trial decides how their families are
//! compared.

use crate::commands::measure::options::{CommonOptions, MeasureRequest};
use crate::commands::measure::study::{Arms, LEAST_BLOCKS, LOOK_BUFFER, LOOK_NS, study_text, trial_ns};
use crate::failure::Failure;
use stacklab_campaign::rig::rigs::Rigs;
use stacklab_campaign::sources::{StudySource, new_seed};
use stacklab_model::{Family, Length, Probe, RunRecord, Transport, Trial};
use stacklab_study::Plan;
use std::slice::from_ref;
use std::time::Instant;

/// Slices are for paths that empty within this share of a trial.
const EMPTYING_SHARE: u64 = 4;
/// The shortest and the longest trial of a slow path, nanoseconds, and the fewest messages of one.
const SHORTEST_NS: u64 = 250_000_000;
const LONGEST_NS: u64 = 2_000_000_000;
const LEAST_MESSAGES: f64 = 4.0;
/// By how much such a comparison may take longer than the time asked for, nanoseconds.
const MORE_NS: u64 = 10_000_000_000;
/// The least send buffer on a slow path, bytes, and how much of the path's rate it holds, nanoseconds.
const LEAST_BUFFER: f64 = 8192.0;
const BUFFER_NS: f64 = 250_000_000.0;

/// What a family's path showed in a short trial.
struct Shown {
    family: Family,
    bits_per_second: f64,
    message_bits: f64,
    /// How long the path took to empty after it, and all other steps of a trial, nanoseconds.
    emptying_ns: u64,
    steps_ns: u64,
    least_round_trip_ns: u64,
}

impl Shown {
    /// What a run showed; `None` where nothing got through, whose reason a comparison gives.
    fn of(run: &RunRecord) -> Option<Self> {
        let [sender, receiver, ..] = run.host_reports.as_slice() else { return None };
        let received = &receiver.received;
        let window_ns = received.last_ns.saturating_sub(received.first_ns);
        let bytes = (received.bytes + received.cut_bytes).saturating_sub(received.bytes_at_first);
        let emptying_ns = window_ns.saturating_sub(LOOK_NS);
        let least_us = sender.tcp.as_ref().and_then(|tcp| tcp.min_rtt_us).unwrap_or(0);
        (window_ns > 0 && bytes > 0).then(|| Shown {
            family: run.spec.family,
            bits_per_second: bytes as f64 * 8e9 / window_ns as f64,
            message_bits: f64::from(run.spec.message_bytes) * 8.0,
            emptying_ns,
            steps_ns: run.wall_ns.saturating_sub(LOOK_NS + emptying_ns),
            least_round_trip_ns: least_us * 1000,
        })
    }

    /// The send buffer with which the path is always busy, and soon empty.
    fn send_buffer(&self) -> f64 {
        let ns = BUFFER_NS.max(2.0 * self.least_round_trip_ns as f64);
        (self.bits_per_second / 8.0 * ns / 1e9).clamp(LEAST_BUFFER, f64::from(LOOK_BUFFER))
    }
}

/// Looks at the path of each family, and decides how they are compared: interleaved, or on a slow path by trials in
/// turns.
pub(super) fn arms(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    rigs: &mut Rigs,
) -> Result<Arms, Failure> {
    let Length::Time(time_ns) = request.length else { return Ok(Arms::Interleaved) };
    if request.probe != Probe::Stream {
        return Ok(Arms::Interleaved);
    }
    let began = Instant::now();
    let text = study_text(common, request, baseline, Arms::Look)?;
    let study = StudySource { name: "measure.toml".to_owned(), text }.check(None, &[])?;
    let plan = Plan::new(&study, new_seed());
    let mut shown = Vec::new();
    for (position, cell) in (0..).zip(&study.cells) {
        let trial = Trial { block: 0, position, cell: cell.clone(), probe: request.probe };
        let runs = rigs.run(&study, &plan, from_ref(&trial))?;
        shown.extend(runs.iter().filter_map(Shown::of));
    }
    if shown.iter().all(|path| path.emptying_ns <= trial_ns(time_ns) / EMPTYING_SHARE) {
        return Ok(Arms::Interleaved);
    }
    let looked_ns = began.elapsed().as_nanos() as u64;
    by_turns(request.transport, time_ns, looked_ns, &shown)
}

/// Trials in turns, as long as the time allows.
fn by_turns(transport: Transport, time_ns: u64, looked_ns: u64, shown: &[Shown]) -> Result<Arms, Failure> {
    let buffer = (transport == Transport::Tcp)
        .then(|| shown.iter().map(Shown::send_buffer).fold(LEAST_BUFFER, f64::max));
    let smaller = buffer.map_or(1.0, |buffer| buffer / f64::from(LOOK_BUFFER));
    let blocks = u64::from(LEAST_BLOCKS);
    let besides = |path: &Shown| (path.emptying_ns as f64 * smaller) as u64 + path.steps_ns;
    let besides_ns = blocks * shown.iter().map(besides).sum::<u64>() + looked_ns;
    let messages_ns = |path: &Shown| LEAST_MESSAGES * path.message_bits / path.bits_per_second * 1e9;
    let least_ns = shown.iter().map(messages_ns).fold(SHORTEST_NS as f64, f64::max) as u64;
    let trials = blocks * 2;
    let trial_ns = (time_ns.saturating_sub(besides_ns) / trials).max(least_ns);
    let slowest = shown.iter().min_by(|one, two| one.bits_per_second.total_cmp(&two.bits_per_second));
    let slowest = slowest.expect("a path was slow");
    let (family, rate) = (slowest.family, slowest.bits_per_second / 1e3);
    let needed_ns = besides_ns + trials * least_ns;
    if needed_ns > time_ns + MORE_NS {
        let seconds = needed_ns.div_ceil(1_000_000_000);
        return Err(Failure::usage(format!(
            "the path is too slow to compare both families in this time: over {family} it carries {rate:.0} kbit/s, \
             and takes {:.1} s to empty after each trial; use -t {seconds} or more, or measure each family alone",
            slowest.emptying_ns as f64 / 1e9
        )));
    }
    eprintln!(
        "stacklab: the path is slow ({rate:.0} kbit/s over {family}): the families are not interleaved in slices, but \
         have trials in turns"
    );
    Ok(Arms::Slow {
        trial_ns: trial_ns.min(LONGEST_NS.max(least_ns)),
        send_buffer: buffer.map(|bytes| bytes as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bits_per_second: f64, emptying_ns: u64) -> Shown {
        let (family, message_bits) = (Family::Ipv4, 11_200.0);
        Shown {
            family,
            bits_per_second,
            message_bits,
            emptying_ns,
            steps_ns: 50_000_000,
            least_round_trip_ns: 1_000_000,
        }
    }

    #[test]
    fn trials_of_a_slow_path_fill_the_time_or_a_longer_one_is_named() {
        let second = 1_000_000_000;
        let slow = [path(512e3, second), path(512e3, second)];
        let Ok(Arms::Slow { trial_ns, send_buffer: None }) =
            by_turns(Transport::Udp, 20 * second, 3 * second, &slow)
        else {
            panic!("it fits")
        };
        assert_eq!(trial_ns, (20 - 3) * second / 12 - second - 50_000_000);
        // A small buffer leaves less to empty.
        let tcp = by_turns(Transport::Tcp, 20 * second, 3 * second, &slow).unwrap();
        let Arms::Slow { trial_ns: longer, send_buffer: Some(16_000) } = tcp else { panic!("{tcp:?}") };
        assert!(longer > trial_ns);
        let slower = [path(64e3, 8 * second), path(64e3, 8 * second)];
        // 18 s until now, six blocks of two trials of 0.7 s and what they need besides.
        let error = by_turns(Transport::Udp, 20 * second, 18 * second, &slower).unwrap_err().printed();
        assert!(error.contains("64 kbit/s") && error.contains("-t 123 or more"), "{error}");
    }
}
