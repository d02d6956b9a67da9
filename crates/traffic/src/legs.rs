//! What a trial is made of: one stream or echo, or several at once.

use crate::conduct::Path;
use crate::metrics;
use stacklab_model::{Direction, Metric, Side, TrialSpec, Value, Warning};
use std::time::Duration;

/// The least part of its own measured window that a stream both ways must share with the other.
const TOGETHER: f64 = 0.9;

/// A part of a trial that has a sender and a receiver of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leg {
    /// What it is beside the others.
    pub part: Part,
    /// Which of the two agents sends.
    pub from: usize,
    /// The path, sender first.
    pub path: Path,
    /// What both its agents are told.
    pub spec: TrialSpec,
    /// When its sender is started, from the beginning of the trial.
    pub starts: Duration,
}

/// What a leg is beside the others of its trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// What is measured.
    Main,
    /// The same the other way.
    Reverse,
}

impl Leg {
    /// Which of the two agents receives.
    pub(crate) fn to(&self) -> usize {
        1 - self.from
    }

    /// What reasons and warnings say before they speak of it.
    pub(crate) fn prefix(&self) -> &'static str {
        match self.part {
            Part::Main => "",
            Part::Reverse => "in the other direction, ",
        }
    }
}

/// The legs of a trial, what is measured first.
pub(crate) fn of(path: &Path, spec: &TrialSpec, direction: Direction) -> Vec<Leg> {
    let leg = |part, from, token| {
        let path = if from == 0 { path.clone() } else { path.reversed() };
        Leg { part, from, path, spec: TrialSpec { token, ..spec.clone() }, starts: Duration::ZERO }
    };
    let token = spec.token;
    match direction {
        Direction::Forward => vec![leg(Part::Main, 0, token)],
        Direction::Reverse => vec![leg(Part::Main, 1, token)],
        Direction::Both => vec![leg(Part::Main, 0, token), leg(Part::Reverse, 1, !token)],
    }
}

/// Figures that are not those of what is measured first.
pub(crate) fn values_beside(legs: &[Leg], sides: &[[Side; 2]]) -> Vec<(Metric, Value)> {
    let beside = legs.iter().zip(sides).filter_map(|(leg, [sent, received])| match leg.part {
        Part::Main => None,
        Part::Reverse => {
            let mut values = metrics::values(&leg.spec, &leg.path, sent, received);
            values.remove(&Metric::Throughput).map(|value| (Metric::ThroughputReverse, value))
        }
    });
    beside.collect()
}

/// A warning where streams both ways were not measured at the same time. `offset_ns` is how far the clock of the second
/// agent's host is ahead of the first one's. Windows are the receivers': what a sender's buffer holds can be much of a
/// short one.
pub(crate) fn apart(legs: &[Leg], sides: &[[Side; 2]], offset_ns: i64) -> Option<Warning> {
    let reverse = legs.iter().position(|leg| leg.part == Part::Reverse)?;
    let [there, back] = [0, reverse].map(|leg| &sides[leg][1].received);
    let on_second = |ns: u64| ns as i64 + offset_ns;
    let (first, last) = (there.first_ns as i64, there.last_ns as i64);
    let (other_first, other_last) = (on_second(back.first_ns), on_second(back.last_ns));
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
    use crate::conduct::tests::{path, sides, spec};
    use stacklab_model::{Family, Transport};

    #[test]
    fn each_direction_has_its_sender_and_its_path() {
        for family in Family::ALL.iter().copied() {
            let (path, spec) = (path(family), spec(family, Transport::Udp));
            let of = |direction| {
                let legs = of(&path, &spec, direction);
                legs.into_iter().map(|leg| (leg.from, leg.path.sender, leg.path.receiver)).collect::<Vec<_>>()
            };
            let (there, back) = ((0, path.sender, path.receiver), (1, path.receiver, path.sender));
            assert_eq!(of(Direction::Forward), [there]);
            assert_eq!(of(Direction::Reverse), [back]);
            assert_eq!(of(Direction::Both), [there, back]);
        }
    }

    #[test]
    fn streams_that_ran_one_after_the_other_are_said_to_be_apart() {
        let spec = spec(Family::Ipv6, Transport::Udp);
        let legs = of(&path(Family::Ipv6), &spec, Direction::Both);
        let windows = |first, last, offset| {
            let (there, back) = (sides(&spec), sides(&spec));
            let mut seen = [[there.0, there.1], [back.0, back.1]];
            (seen[1][1].received.first_ns, seen[1][1].received.last_ns) = (first, last);
            apart(&legs, &seen, offset).map(|warning| warning.code)
        };
        // The forward stream's window is the first second.
        assert_eq!(windows(50_000_000, 1_040_000_000, 0), None);
        assert_eq!(windows(1_000_000_000, 2_000_000_000, 0).as_deref(), Some("apart"));
        assert_eq!(windows(1_000_000_000, 2_000_000_000, -1_010_000_000), None);
        assert_eq!(windows(200_000_000, 1_200_000_000, 0).as_deref(), Some("apart"));
        assert_eq!(windows(0, 500_000_000, 0).as_deref(), Some("apart"));
        assert_eq!(apart(&legs[..1], &[[sides(&spec).0, sides(&spec).1]], 0), None);
    }
}
