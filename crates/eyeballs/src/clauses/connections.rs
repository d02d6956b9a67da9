//! The clauses about connection attempts.

use crate::clauses::{ClauseVerdict, NOT_RUN, ReasonedVerdict};
use crate::run::Run;
use crate::runs::{Delay, format_delay};
use crate::scenario::family_label;
use stacklab_model::{Family, count};

/// Limits of the connection attempt delay, ms (RFC 8305, section 8).
const MIN_DELAY_MS: f64 = 100.0;
const MAX_DELAY_MS: f64 = 2_000.0;
/// The delay that it must not fall below.
const LOWEST_DELAY_MS: f64 = 10.0;

pub(super) fn judge_first(runs: &[Run], first: Option<Family>) -> ReasonedVerdict {
    match first {
        Some(family) => {
            ReasonedVerdict::of(family == Family::Ipv6, format!("{} first", family_label(family)))
        }
        None if runs.iter().all(|run| run.attempts.is_empty()) => {
            ReasonedVerdict::not_shown("no TCP connection was tried")
        }
        None => ReasonedVerdict(ClauseVerdict::No, "the first family differs between runs".to_owned()),
    }
}

/// Whether the other family is tried before the second address of the first.
pub(super) fn judge_order(runs: &[Run]) -> ReasonedVerdict {
    if runs.is_empty() {
        return ReasonedVerdict::not_shown(NOT_RUN);
    }
    let mut alternating = 0;
    let mut tried = 0;
    for run in runs {
        let [first, second, ..] = &run.attempts[..] else { continue };
        tried += 1;
        alternating += usize::from(first.family != second.family);
    }
    match (tried, alternating) {
        (0, _) => ReasonedVerdict::not_shown("one address was tried"),
        (_, 0) => ReasonedVerdict(ClauseVerdict::No, "the second attempt is of the same family".to_owned()),
        _ => ReasonedVerdict::of(
            alternating == tried,
            format!("the other family second in {alternating} of {}", count(tried, "run")),
        ),
    }
}

pub(super) fn judge_delay(delay: &Delay) -> ReasonedVerdict {
    let Delay { low_ms: Some(low), high_ms: Some(high), .. } = *delay else {
        return match delay.of {
            0 => ReasonedVerdict::not_shown(NOT_RUN),
            _ => ReasonedVerdict(
                ClauseVerdict::No,
                "the other family is not tried within the limit".to_owned(),
            ),
        };
    };
    let text = format_delay(delay);
    let is_right = low >= MIN_DELAY_MS && high <= MAX_DELAY_MS && delay.runs == delay.of;
    let remark = match (low, high) {
        (..LOWEST_DELAY_MS, _) => ": at the same time, less than 10 ms",
        (..MIN_DELAY_MS, _) => ": more than 10 ms, less than is recommended",
        (_, MAX_DELAY_MS..) => ": longer than is recommended",
        _ => "",
    };
    ReasonedVerdict::of(is_right, format!("{text}{remark}"))
}

pub(super) fn judge_success(runs: &[Run]) -> ReasonedVerdict {
    if runs.is_empty() {
        return ReasonedVerdict::not_shown(NOT_RUN);
    }
    let connected = runs.iter().filter(|run| run.first_byte.is_some()).count();
    ReasonedVerdict::of(
        connected == runs.len(),
        format!("data in {connected} of {}", count(runs.len(), "run")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::run;
    use Family::{Ipv4, Ipv6};

    fn delay(figures: &[Option<f64>]) -> ReasonedVerdict {
        judge_delay(&Delay::of(figures))
    }

    #[test]
    fn a_delay_is_judged_by_its_limits() {
        assert_eq!(delay(&[Some(250.0), Some(251.0)]).0, ClauseVerdict::Yes);
        assert_eq!(delay(&[Some(250.0), None]).0, ClauseVerdict::No);
        assert_eq!(delay(&[None]).0, ClauseVerdict::No);
        assert_eq!(delay(&[]).0, ClauseVerdict::NotShown);
        let ReasonedVerdict(verdict, text) = delay(&[Some(3_000.0)]);
        assert!(verdict == ClauseVerdict::No && text.contains("longer"), "{text}");
        let ReasonedVerdict(verdict, text) = delay(&[Some(50.0)]);
        assert!(verdict == ClauseVerdict::No && text.contains("more than 10 ms"), "{text}");
        assert!(delay(&[Some(1.0)]).1.contains("at the same time"));
    }

    #[test]
    fn knows_the_order_of_families() {
        let alternating = run(&[(Ipv6, 1.0), (Ipv4, 251.0), (Ipv6, 501.0)], Some(Ipv4));
        let same = run(&[(Ipv6, 1.0), (Ipv6, 251.0)], Some(Ipv6));
        assert_eq!(judge_order(std::slice::from_ref(&alternating)).0, ClauseVerdict::Yes);
        assert_eq!(judge_order(&[alternating, same]).0, ClauseVerdict::No);
        assert_eq!(judge_order(&[run(&[(Ipv6, 1.0)], None)]).0, ClauseVerdict::NotShown);
    }
}
