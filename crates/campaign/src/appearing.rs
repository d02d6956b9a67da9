//! The differences that appear while a campaign of many comparisons is measured. Nothing is claimed of them yet.

use stacklab_analysis::RunningEvidence;
use stacklab_model::{Cell, Effect, Interval, Metric, Question};
use stacklab_report::difference;

/// Maximum number of comparisons among which the most certain difference is looked for, after each block.
const MAX_SEARCHED: usize = 500;
/// Blocks from which on a difference appears: with fewer, one that is there by chance often does.
const MIN_SHOWN_BLOCKS: usize = 3;

/// The differences that appear so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Appearing {
    /// How many 95 % intervals are on one side of no difference.
    count: usize,
    /// The candidate of the most certain one, its metric and the difference.
    candidate: Cell,
    metric: Metric,
    effect: Effect,
}

impl Appearing {
    /// Looks for them in the evidence of these questions; `None` without any.
    pub(crate) fn find(questions: &[Question], running: &[RunningEvidence]) -> Option<Self> {
        if questions.len() > MAX_SEARCHED {
            return None;
        }
        let mut found: Option<Appearing> = None;
        let mut count = 0;
        for (question, running) in questions.iter().zip(running) {
            let Ok(paired) = running.pair_blocks() else { continue };
            let effect = paired.effect();
            if effect.pairs < MIN_SHOWN_BLOCKS || !appears(&effect) {
                continue;
            }
            count += 1;
            if found.as_ref().is_none_or(|most| certainty(&effect) > certainty(&most.effect)) {
                let candidate = question.candidate.clone();
                found = Some(Appearing { count, candidate, metric: question.metric, effect });
            }
        }
        Some(Appearing { count, ..found? })
    }

    /// `5 appear to differ, most surely IPv6 TCP 128 B: throughput 4.9 ± 0.8 % lower`.
    pub(crate) fn describe(&self) -> String {
        let which = format!("{}: {}", self.candidate.label(), difference(self.metric, &self.effect));
        match self.count {
            1 => format!("1 appears to differ, {which}"),
            n => format!("{n} appear to differ, most surely {which}"),
        }
    }
}

/// How many errors an effect is from none. Exact figures, such as those of headers, have no error, and are certain.
fn certainty(effect: &Effect) -> f64 {
    effect.scale.to_distance(effect.estimate).abs() / effect.error.max(f64::MIN_POSITIVE)
}

/// Whether no difference is outside of an effect's 95 % interval.
fn appears(effect: &Effect) -> bool {
    let Interval { low, high } = effect.interval95;
    effect.scale.to_distance(low) > 0.0 || effect.scale.to_distance(high) < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, Scale, SizeOf, Transport};

    #[test]
    fn most_certain_difference_is_named() {
        let interval = Interval { low: 0.94, high: 0.96 };
        let effect = Effect {
            scale: Scale::Ratio,
            pairs: 5,
            estimate: 0.95,
            error: 0.004,
            degrees_of_freedom: 4.0,
            interval90: interval,
            interval95: interval,
        };
        assert!(appears(&effect));
        assert!(!appears(&Effect { interval95: Interval { low: 0.9, high: 1.1 }, ..effect.clone() }));
        let certain = Effect { error: 0.0, ..effect.clone() };
        assert!(certainty(&certain) > certainty(&effect) && certainty(&certain).is_finite());
        let candidate = Cell::new(Family::Ipv6, Transport::Tcp, SizeOf::Payload, 128);
        let one = Appearing { count: 1, candidate, metric: Metric::Throughput, effect };
        let line = one.describe();
        assert!(line.starts_with("1 appears to differ, IPv6 TCP 128 B: throughput 5.0 ± "), "{line}");
        assert!(line.ends_with(" % lower"), "{line}");
        let line = Appearing { count: 5, ..one }.describe();
        assert!(line.starts_with("5 appear to differ, most surely IPv6 TCP 128 B: "), "{line}");
    }
}
