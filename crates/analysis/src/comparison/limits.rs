//! What a claim needs: the shares of false claims that are allowed, the fewest blocks, and figures fine enough.

use crate::comparison::Paired;
use stacklab_model::Scale;

/// The share of false claims that is allowed while a campaign runs.
pub const RUNNING: f64 = 0.025;
/// The share of false claims that is allowed at the end.
pub const ENDED: f64 = 0.025;
/// The largest share of blocks that one arm may have lost.
pub(crate) const MAX_LOST: f64 = 0.1;
/// This number of pairs shows, with 95 % confidence, that less than a fifth of all blocks is of another kind: what a
/// trimmed mean leaves out at one end. 1 - 0.05^(1/14) is 19 %.
pub const MIN_EQUIVALENT_PAIRS: usize = 14;
/// The same for events, of which a few trials may have nearly all: 5 %.
pub(crate) const MIN_EQUIVALENT_EVENTS: usize = 60;

/// The fewest pairs that may be called equivalent, of figures that count events or others.
pub(crate) fn min_equivalent_pairs(counts_events: bool) -> usize {
    if counts_events { MIN_EQUIVALENT_EVENTS } else { MIN_EQUIVALENT_PAIRS }
}

impl Paired {
    /// The fewest pairs that may be called equivalent.
    pub(crate) fn min_equivalent_pairs(&self) -> usize {
        min_equivalent_pairs(self.counts_events)
    }

    /// Whether tests may claim that the arms are equivalent: there are enough pairs, and figures are fine enough for
    /// this margin.
    pub fn may_be_equivalent(&self, margin: f64) -> bool {
        self.pairs() >= self.min_equivalent_pairs() && !is_too_coarse(self, margin)
    }
}

/// The share of trials that may be of another kind though none of the measured ones was, per cent, with 95 %
/// confidence.
pub(crate) fn unseen_percent(pairs: usize) -> f64 {
    100.0 * (1.0 - 0.05_f64.powf(1.0 / pairs as f64))
}

/// Whether figures come in steps of more than half of the margin, as CPU time counted in ticks does.
pub(crate) fn is_too_coarse(paired: &Paired, margin: f64) -> bool {
    paired.scale == Scale::Ratio && is_coarse_step(paired.step, margin)
}

/// Whether a step is more than half of a margin.
pub(crate) fn is_coarse_step(step: f64, margin: f64) -> bool {
    step > margin.ln_1p() / 2.0
}

/// Whether an arm has lost too many of the blocks: leaving them out would favour it.
pub(crate) fn loses_too_many(lost: usize, blocks: usize) -> bool {
    lost as f64 > MAX_LOST * blocks as f64
}

/// The smallest step between figures, as a logarithm. Figures that are all alike may differ in the digit after their
/// last.
pub(crate) fn smallest_step(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    match sorted.as_slice() {
        [only] => last_digit(*only),
        several => several.windows(2).map(|pair| (pair[1] / pair[0]).ln()).fold(f64::INFINITY, f64::min),
    }
}

/// One in the last digit of a figure, over the figure.
pub(crate) fn last_digit(figure: f64) -> f64 {
    let digits =
        format!("{figure:e}").bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let leading = figure / 10_f64.powf(figure.log10().floor());
    10_f64.powi(1 - digits as i32) / leading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::BLOCKS_WHEN_NARROW;
    use stacklab_model::MIN_PAIRS;

    #[test]
    fn the_document_has_the_rule_once_with_these_numbers() {
        let document = include_str!("../../../../docs/method.md");
        let chapters = document.split("\n## ");
        let rules: Vec<&str> =
            chapters.filter(|chapter| chapter.starts_with("The rule of every verdict")).collect();
        let [rule] = rules.as_slice() else { panic!("one chapter has the rule, not {}", rules.len()) };
        let lines = rule.lines().count();
        assert!(lines <= 120, "the rule has {lines} lines");
        let rule = rule.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert_eq!((RUNNING, ENDED, MAX_LOST), (0.025, 0.025, 0.1));
        for stated in [
            "2.5 % while it measures (`RUNNING`)".to_owned(),
            "2.5 % at its end (`ENDED`)".to_owned(),
            "more than a tenth of the blocks (`MAX_LOST`)".to_owned(),
            format!("for {BLOCKS_WHEN_NARROW} blocks more (`BLOCKS_WHEN_NARROW`)"),
            format!("{MIN_PAIRS} (`MIN_PAIRS`)"),
            format!("{MIN_EQUIVALENT_PAIRS} (`MIN_EQUIVALENT_PAIRS`)"),
            format!("{MIN_EQUIVALENT_EVENTS} (`MIN_EQUIVALENT_EVENTS`"),
        ] {
            assert!(rule.contains(&stated), "docs/method.md does not say: {stated}");
        }
    }

    #[test]
    fn sees_steps_coarser_than_the_margin() {
        let ticks = [(20.0, 20.0), (20.0, 21.0), (20.0, 20.0)];
        assert!(is_too_coarse(&Paired::of(Scale::Ratio, &ticks).unwrap(), 0.01));
        assert!(!is_too_coarse(&Paired::of(Scale::Ratio, &ticks).unwrap(), 0.2));
        assert!(is_too_coarse(&Paired::of(Scale::Ratio, &[(10.0, 10.0); 9]).unwrap(), 0.01));
        assert!(!is_too_coarse(&Paired::of(Scale::Ratio, &[(94.715, 94.715); 9]).unwrap(), 0.01));
    }

    #[test]
    fn few_pairs_are_not_equivalent() {
        for (pairs, counts_events, may_be) in
            [(13, false, false), (14, false, true), (59, true, false), (60, true, true)]
        {
            let paired = Paired::of(Scale::Ratio, &vec![(94.715, 94.716); pairs]).unwrap();
            let paired = Paired { counts_events, ..paired };
            assert_eq!(paired.may_be_equivalent(0.01), may_be, "{pairs}");
        }
    }

    #[test]
    fn unseen_share_falls_with_pairs() {
        assert!(unseen_percent(13) > 20.0);
        assert!(unseen_percent(14) < 20.0);
        assert!(unseen_percent(60) < 5.0);
    }
}
