//! The verdict on a finding: three-sided tests (Goeman, Solari and Stijnen 2010).
//!
//! Direction and size are separate questions. A one-sided test at 5 % decides the direction; the comparison with the
//! margin decides whether the difference is negligible. So a true direction is not refuted for being small.
//!
//! A finding of several parts holds if each part holds at 5 % (intersection-union test: no adjustment is needed,
//! because all of them must be wrong together). It is refuted if a part is, with Holm's adjustment over the parts. If
//! only more than half of the parts must hold, the levels are those of a partial conjunction (Benjamini and Heller
//! 2008).

#[cfg(test)]
mod tests;

use crate::finding::FindingDirection;
use serde::{Serialize, Serializer};
use stacklab_analysis::Paired;
use stacklab_model::{Effect, Interval, Scale};

/// Level of each one-sided test.
const LEVEL: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingOutcome {
    /// The direction is that of the study; or the arms are the same within the margin, if the study states that.
    Holds,
    /// The direction is that of the study, and the difference is inside the margin.
    HoldsNegligible,
    /// The direction is the opposite one.
    OtherWay,
    /// The difference is larger than the margin where the study states none, or larger than the study's limit.
    TooLarge,
    /// The difference is inside the margin, and may have either direction.
    DirectionOpen,
    /// The intervals are too wide, or there are no runs.
    CannotTell,
}

use FindingOutcome::{CannotTell, DirectionOpen, Holds, HoldsNegligible, OtherWay, TooLarge};

impl FindingOutcome {
    const ALL: [Self; 6] = [Holds, HoldsNegligible, OtherWay, TooLarge, DirectionOpen, CannotTell];

    pub(super) fn name(self) -> &'static str {
        match self {
            Holds => "holds",
            HoldsNegligible => "holds, negligible",
            OtherWay => "the other way",
            TooLarge => "larger than stated",
            DirectionOpen => "no larger than the margin, direction open",
            CannotTell => "cannot tell",
        }
    }

    pub(super) fn short_name(self) -> &'static str {
        if self == DirectionOpen { "direction open" } else { self.name() }
    }
}

impl Serialize for FindingOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a finding claims of each part, and of how many of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stated {
    /// Arm a against arm b.
    pub direction: FindingDirection,
    /// Whether more than half of the parts must hold instead of all.
    pub most: bool,
}

/// The data of a part.
#[derive(Debug, Clone)]
pub(super) struct PartData {
    pub scale: Scale,
    /// Arm a against arm b, on the metric's scale.
    pub paired: Paired,
    pub margin: f64,
    /// The differences in the metric's unit, and the largest one that the study states.
    pub limit: Option<(Paired, f64)>,
}

impl PartData {
    /// The interval whose ends are one-sided limits at this level.
    fn interval(paired: &Paired, level: f64) -> Interval {
        paired.interval(1.0 - 2.0 * level)
    }

    pub(super) fn effect(&self) -> Effect {
        self.paired.effect()
    }

    /// Whether the difference has the claimed direction, or the opposite one.
    fn has_direction(&self, direction: FindingDirection, level: f64) -> bool {
        let interval = Self::interval(&self.paired, level);
        let none = Interval::of_margin(self.scale, 0.0).low;
        match direction {
            FindingDirection::Higher => interval.low > none,
            FindingDirection::Lower => interval.high < none,
            FindingDirection::Equal => false,
        }
    }

    /// Whether the difference is inside the margin: two one-sided tests, of enough blocks.
    fn is_negligible(&self, level: f64) -> bool {
        self.is_inside_margin(level) && self.paired.may_be_equivalent(self.margin)
    }

    fn is_inside_margin(&self, level: f64) -> bool {
        Self::interval(&self.paired, level).is_within(&Interval::of_margin(self.scale, self.margin))
    }

    /// Whether the difference is beyond the margin, on either side. At most one side can be rejected wrongly, so both
    /// have the full level.
    fn is_beyond_margin(&self, level: f64) -> bool {
        is_beyond(&Self::interval(&self.paired, level), &Interval::of_margin(self.scale, self.margin))
    }

    /// The interval of the differences in the metric's unit, and the study's limits.
    fn find_limits(&self, level: f64) -> Option<[Interval; 2]> {
        let (paired, most) = self.limit.as_ref()?;
        Some([Self::interval(paired, level), Interval { low: -most, high: *most }])
    }

    /// Whether the difference in the metric's unit is inside the study's limit, if it states one.
    fn is_within_limit(&self, level: f64) -> bool {
        let Some((paired, most)) = &self.limit else { return true };
        let limits = Interval { low: -most, high: *most };
        paired.may_be_equivalent(*most) && Self::interval(paired, level).is_within(&limits)
    }

    fn confirms(&self, direction: FindingDirection, level: f64) -> bool {
        let confirmed = match direction {
            FindingDirection::Equal => self.is_negligible(level),
            _ => self.has_direction(direction, level),
        };
        confirmed && self.is_within_limit(level)
    }

    fn refutes(&self, direction: FindingDirection, level: f64) -> bool {
        self.has_direction(direction.reverse(), level)
            || (direction == FindingDirection::Equal && self.is_beyond_margin(level))
            || self.find_limits(level).is_some_and(|[found, limits]| is_beyond(&found, &limits))
    }

    /// The outcome of the part, and why, in a few words.
    fn outcome(&self, direction: FindingDirection, is_refuted: bool) -> (FindingOutcome, String) {
        let (outcome, because) = self.classify(direction, is_refuted);
        if outcome == CannotTell
            && self.is_inside_margin(LEVEL)
            && let Some(reason) = self.paired.explain_forbidden_equivalence(self.margin, "blocks")
        {
            return (outcome, reason);
        }
        (outcome, because.to_owned())
    }

    fn classify(&self, direction: FindingDirection, is_refuted: bool) -> (FindingOutcome, &'static str) {
        let is_direction = direction != FindingDirection::Equal;
        let is_negligible = self.is_negligible(LEVEL);
        if is_refuted {
            return if self.has_direction(direction.reverse(), LEVEL) {
                (OtherWay, "the 90 % interval is on the other side of no difference")
            } else if is_direction {
                (TooLarge, "the 90 % interval is beyond the study's limit")
            } else {
                (TooLarge, "the 90 % interval is beyond the margin")
            };
        }
        if self.confirms(direction, LEVEL) {
            return match (is_direction, is_negligible) {
                (false, _) => (Holds, "the 90 % interval is inside the margin"),
                (true, false) => (Holds, "the 90 % interval is on this side of no difference"),
                (true, true) => (
                    HoldsNegligible,
                    "the 90 % interval is on this side of no difference, and inside the margin",
                ),
            };
        }
        if self.has_direction(direction, LEVEL) {
            (CannotTell, "the direction is the study's, but the difference may be beyond its limit")
        } else if is_direction && is_negligible {
            (DirectionOpen, "the 90 % interval is inside the margin")
        } else if self.refutes(direction, LEVEL) {
            (CannotTell, "refuted alone, but not with Holm's adjustment over the parts")
        } else {
            (CannotTell, "the interval is too wide")
        }
    }
}

fn is_beyond(interval: &Interval, limits: &Interval) -> bool {
    interval.low > limits.high || interval.high < limits.low
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// The outcome of each part, with the reason.
    pub parts: Vec<(FindingOutcome, String)>,
    pub outcome: FindingOutcome,
    pub because: String,
}

/// Judges a finding by its parts; those without data say why.
pub(super) fn judge_parts(stated: Stated, parts: &[Result<PartData, String>]) -> Verdict {
    let all = parts.len();
    let needed = if stated.most { all / 2 + 1 } else { all };
    let data: Vec<&PartData> = parts.iter().flatten().collect();
    let refuted_at = holm_level(&data, stated.direction, all);
    let judged: Vec<(FindingOutcome, String)> = parts
        .iter()
        .map(|part| match part {
            Err(reason) => (CannotTell, reason.clone()),
            Ok(part) => {
                let is_refuted = refuted_at.is_some_and(|level| part.refutes(stated.direction, level));
                part.outcome(stated.direction, is_refuted)
            }
        })
        .collect();
    let refuted = count_parts(&judged, &[OtherWay, TooLarge]);
    // 5 % if all parts must hold.
    let level = LEVEL / (all - needed + 1) as f64;
    let confirmed = data.iter().filter(|part| part.confirms(stated.direction, level)).count();
    let inside = count_parts(&judged, &[HoldsNegligible, DirectionOpen]);
    let outcome = if confirmed >= needed {
        if count_parts(&judged, &[Holds]) == 0 { HoldsNegligible } else { Holds }
    } else if refuted > all - needed {
        if count_parts(&judged, &[OtherWay]) > 0 { OtherWay } else { TooLarge }
    } else if inside == all {
        DirectionOpen
    } else {
        CannotTell
    };
    let because = match &judged[..] {
        [(_, because)] => because.clone(),
        _ => {
            let mut counts = Vec::new();
            for outcome in FindingOutcome::ALL {
                let parts = count_parts(&judged, &[outcome]);
                if parts > 0 {
                    counts.push(format!("{}: {parts}", outcome.name()));
                }
            }
            let asked = if stated.most { "more than half of" } else { "all" };
            let level = if stated.most { format!(", at {:.1} % each", 100.0 * level) } else { String::new() };
            format!("{asked} {all} parts must hold{level} ({})", counts.join("; "))
        }
    };
    Verdict { parts: judged, outcome, because }
}

/// How many parts have one of these outcomes.
fn count_parts(judged: &[(FindingOutcome, String)], outcomes: &[FindingOutcome]) -> usize {
    judged.iter().filter(|(outcome, _)| outcomes.contains(outcome)).count()
}

/// The level at which parts are refuted by Holm's procedure over all parts; `None` if no part is.
fn holm_level(data: &[&PartData], direction: FindingDirection, all: usize) -> Option<f64> {
    let mut reached = None;
    for rejected in 0..all {
        let level = LEVEL / (all - rejected) as f64;
        let refuted = data.iter().filter(|part| part.refutes(direction, level)).count();
        if refuted <= rejected {
            break;
        }
        reached = Some(level);
    }
    reached
}
