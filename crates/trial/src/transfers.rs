//! Transfers of a trial: one forward or reverse, two both ways, or an echo with load streams.

use crate::path::Path;
use crate::results;
use crate::transfer::{Transfer, TransferRole};
use stacklab_model::{
    Direction, Ends, HostReport, Io, Length, Metric, Pacing, Probe, TrialSpec, Value, Warning,
};
use std::time::Duration;

/// Minimum share of its measured window in which a stream both ways must overlap the other one.
const TOGETHER: f64 = 0.9;
/// How long the load stream of an echo flows before the echo's warm-up and after its end, without the load stream's
/// own warm-up.
const LEAD: Duration = Duration::from_millis(100);
const TAIL: Duration = Duration::from_millis(300);

/// The transfers of a trial, the measured one first. The load streams of an echo flow from the echo's sender or from
/// both hosts. All start at once; the echo's warm-up is longer by the load's own, and the load ends after the echo.
pub(crate) fn of(path: &Path, spec: &TrialSpec, direction: Direction) -> Vec<Transfer> {
    let senders = direction.senders();
    let token = spec.token;
    if spec.probe.probe != Probe::EchoUnderLoad {
        let mut transfers = Vec::new();
        for (number, from) in senders.iter().enumerate() {
            let role = if number == 0 { TransferRole::Main } else { TransferRole::Reverse };
            let token = if number == 0 { token } else { !token };
            transfers.push(build_transfer(path, role, *from, TrialSpec { token, ..spec.clone() }));
        }
        return transfers;
    }
    let length_ns = match spec.probe.length {
        Length::Time(ns) => ns,
        // Studies give a time. With a message count, the load stream ends too early, and a warning says so.
        Length::Packets(_) => 0,
    };
    let mut echo = TrialSpec { io: Io::Send, flows: 1, ..spec.clone() };
    echo.probe.pacing = Pacing::Lockstep;
    echo.probe.warmup_ns += LEAD.as_nanos() as u64 + spec.probe.warmup_ns;
    let mut transfers = vec![build_transfer(path, TransferRole::Main, senders[0], echo)];
    let tokens = [!token, token.rotate_left(16) ^ 0x5555_5555];
    for (from, token) in senders.iter().zip(tokens) {
        let mut load = TrialSpec { token, poll_ns: 0, ..spec.clone() };
        load.probe.probe = Probe::Stream;
        load.probe.length = Length::Time((LEAD + TAIL).as_nanos() as u64 + spec.probe.warmup_ns + length_ns);
        load.probe.metrics = vec![Metric::Throughput];
        transfers.push(build_transfer(path, TransferRole::Load, *from, load));
    }
    transfers
}

/// A transfer from one of the agents, over the path from the first to the second.
fn build_transfer(path: &Path, role: TransferRole, from: usize, spec: TrialSpec) -> Transfer {
    if from == 0 {
        let spec = TrialSpec { uplinks: path.list_uplinks(), ..spec };
        return Transfer { role, from, path: path.clone(), spec };
    }
    // The clock offset is that of the second agent from the first.
    let spec = TrialSpec { clock_offset_ns: -spec.clock_offset_ns, ..spec };
    Transfer { role, from, path: path.reverse(), spec }
}

/// A warning if a load stream did not flow during the whole measured window of the echo. `offset_ns` is as for
/// [`overlap_warning`].
pub(crate) fn load_warning(
    transfers: &[Transfer],
    host_reports: &[Ends<HostReport>],
    offset_ns: i64,
) -> Option<Warning> {
    let echo = transfers.first()?;
    let seen = &host_reports.first()?.sender.received;
    let first = convert_to_second(echo.from, seen.first_ns, offset_ns);
    let last = convert_to_second(echo.from, seen.last_ns, offset_ns);
    for (transfer, ends) in transfers.iter().zip(host_reports) {
        let window = &ends.receiver.received;
        let began = convert_to_second(transfer.to(), window.first_ns, offset_ns);
        let ended = convert_to_second(transfer.to(), window.last_ns, offset_ns);
        if transfer.role == TransferRole::Load && (began > first || last > ended) {
            return Some(Warning {
                code: "unloaded".to_owned(),
                text: "the load stream did not cover the whole echo window".to_owned(),
                advice: "lengthen the warm-up, so that connections have opened, or lower the load".to_owned(),
            });
        }
    }
    None
}

/// A time by an agent's clock, by that of the second agent. Wide enough for any time that a host may tell.
fn convert_to_second(agent: usize, ns: u64, offset_ns: i64) -> i128 {
    match agent {
        0 => i128::from(ns) + i128::from(offset_ns),
        _ => i128::from(ns),
    }
}

/// Figures of the transfers other than the main one.
pub(crate) fn secondary_values(
    transfers: &[Transfer],
    host_reports: &[Ends<HostReport>],
) -> Vec<(Metric, Value)> {
    let beside = transfers.iter().zip(host_reports).filter_map(|(transfer, Ends { sender, receiver })| {
        let metric = match transfer.role {
            TransferRole::Main => return None,
            // With load streams both ways, the stream in the direction of the echo's requests.
            TransferRole::Load if transfer.from != transfers[0].from => return None,
            TransferRole::Load => Metric::LoadThroughput,
            TransferRole::Reverse => Metric::ThroughputReverse,
        };
        let mut values = results::values(&transfer.spec, &transfer.path, sender, receiver);
        Some((metric, values.remove(&Metric::Throughput)?))
    });
    beside.collect()
}

/// A warning if streams both ways were not measured at the same time. `offset_ns` is the clock offset of the second
/// agent's host from the first one's. The receivers' windows are compared: draining the sender's buffer can take much
/// of a short window.
pub(crate) fn overlap_warning(
    transfers: &[Transfer],
    host_reports: &[Ends<HostReport>],
    offset_ns: i64,
) -> Option<Warning> {
    let reverse = transfers.iter().position(|transfer| transfer.role == TransferRole::Reverse)?;
    let [there, back] = [0, reverse].map(|transfer| &host_reports[transfer].receiver.received);
    // The second agent receives the stream there, and the first one the stream back.
    let first = convert_to_second(1, there.first_ns, offset_ns);
    let last = convert_to_second(1, there.last_ns, offset_ns);
    let other_first = convert_to_second(0, back.first_ns, offset_ns);
    let other_last = convert_to_second(0, back.last_ns, offset_ns);
    let together = (last.min(other_last) - first.max(other_first)) as f64;
    let longest = (last - first).max(other_last - other_first) as f64;
    (together < TOGETHER * longest).then(|| Warning {
        code: "apart".to_owned(),
        text: "the streams of both directions were not measured at the same time for a tenth of it or more"
            .to_owned(),
        advice: "lengthen the runs or their warm-up, and let them end after a time, not after some packets"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ends, path, spec};
    use stacklab_model::{Family, ScopedAddr, Transport};

    #[test]
    fn each_direction_has_its_sender_and_its_path() {
        for family in Family::ALL.iter().copied() {
            let path = path(family);
            let spec = spec(family, Transport::Udp);
            let there = (0, path.sender.clone(), path.receiver.clone());
            let back = (1, path.receiver.clone(), path.sender.clone());
            assert_eq!(list_ends(&path, &spec, Direction::Forward), std::slice::from_ref(&there));
            assert_eq!(list_ends(&path, &spec, Direction::Reverse), std::slice::from_ref(&back));
            assert_eq!(list_ends(&path, &spec, Direction::Both), [there, back]);
        }
    }

    /// The agent that sends in each transfer, and both addresses.
    fn list_ends(
        path: &Path,
        spec: &TrialSpec,
        direction: Direction,
    ) -> Vec<(usize, ScopedAddr, ScopedAddr)> {
        let mut ends = Vec::new();
        for transfer in of(path, spec, direction) {
            ends.push((transfer.from, transfer.path.sender, transfer.path.receiver));
        }
        ends
    }

    #[test]
    fn stream_beside_an_echo_encloses_it_in_time() {
        for family in Family::ALL.iter().copied() {
            let mut spec = spec(family, Transport::Tcp);
            (spec.probe.probe, spec.probe.length) = (Probe::EchoUnderLoad, Length::Time(1_000_000_000));
            (spec.probe.warmup_ns, spec.io, spec.flows) = (50_000_000, Io::Sendmmsg, 4);
            for (direction, senders) in [
                (Direction::Forward, &[0, 0][..]),
                (Direction::Reverse, &[1, 1]),
                (Direction::Both, &[0, 0, 1]),
            ] {
                let transfers = of(&path(family), &spec, direction);
                assert_eq!(transfers.iter().map(|transfer| transfer.from).collect::<Vec<_>>(), senders);
                let [echo, loads @ ..] = &transfers[..] else { panic!() };
                assert_eq!((echo.role, echo.spec.probe.pacing), (TransferRole::Main, Pacing::Lockstep));
                assert_eq!((echo.spec.io, echo.spec.flows), (Io::Send, 1));
                for load in loads {
                    assert_eq!((load.role, load.spec.probe.probe), (TransferRole::Load, Probe::Stream));
                    assert_eq!((load.spec.probe.pacing, load.spec.flows), (Pacing::Flood, 4));
                    assert!(load.spec.probe.warmup_ns < echo.spec.probe.warmup_ns);
                    assert!(compute_end_ns(load) > compute_end_ns(echo));
                    assert_ne!(load.spec.token, echo.spec.token);
                }
            }
        }
    }

    fn compute_end_ns(transfer: &Transfer) -> u64 {
        let Length::Time(ns) = transfer.spec.probe.length else { panic!() };
        transfer.spec.probe.warmup_ns + ns
    }

    #[test]
    fn echo_that_outlasts_its_stream_is_unloaded() {
        let mut spec = spec(Family::Ipv4, Transport::Udp);
        spec.probe.probe = Probe::EchoUnderLoad;
        let transfers = of(&path(Family::Ipv4), &spec, Direction::Forward);
        for (first_ns, last_ns, expected) in
            [(100, 900, None), (99, 900, Some("unloaded")), (100, 901, Some("unloaded"))]
        {
            let mut seen = [ends(&spec), ends(&spec)];
            (seen[0].sender.received.first_ns, seen[0].sender.received.last_ns) = (first_ns, last_ns);
            (seen[1].receiver.received.first_ns, seen[1].receiver.received.last_ns) = (100, 900);
            let code = load_warning(&transfers, &seen, 0).map(|warning| warning.code);
            assert_eq!(code.as_deref(), expected, "{first_ns} to {last_ns}");
        }
    }

    #[test]
    fn streams_one_after_the_other_are_said_to_be_apart() {
        let spec = spec(Family::Ipv6, Transport::Udp);
        let transfers = of(&path(Family::Ipv6), &spec, Direction::Both);
        // The forward stream's window is the first second.
        for (first_ns, last_ns, offset_ns, expected) in [
            (50_000_000, 1_040_000_000, 0, None),
            (1_000_000_000, 2_000_000_000, 0, Some("apart")),
            (1_000_000_000, 2_000_000_000, -1_010_000_000, None),
            (200_000_000, 1_200_000_000, 0, Some("apart")),
            (0, 500_000_000, 0, Some("apart")),
        ] {
            let mut seen = [ends(&spec), ends(&spec)];
            (seen[1].receiver.received.first_ns, seen[1].receiver.received.last_ns) = (first_ns, last_ns);
            let code = overlap_warning(&transfers, &seen, offset_ns).map(|warning| warning.code);
            assert_eq!(code.as_deref(), expected, "{first_ns} to {last_ns}");
        }
        assert_eq!(overlap_warning(&transfers[..1], &[ends(&spec)], 0), None);
    }
}
