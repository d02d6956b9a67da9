//! Two arms that no study asks about: the families of a path, and the arms of a published finding.

use crate::comparison::Paired;
use crate::comparison::blocks::Blocks;
use crate::comparison::limits::MAX_LOST;
use stacklab_model::{Better, Scale};

/// What is known of two arms beside their blocks.
#[derive(Debug, Clone, Copy)]
pub struct TwoArms<'a> {
    /// Names of baseline and candidate.
    pub names: [&'a str; 2],
    /// How they are compared.
    pub scale: Scale,
    /// Which figures are better.
    pub better: Better,
    /// Whether figures count events, such as lost messages: equivalence needs more blocks of them.
    pub counts_events: bool,
    /// What several blocks are called.
    pub blocks: &'a str,
}

impl TwoArms<'_> {
    /// The pairs of their blocks, or why they have no verdict: an arm lost its figure in more than a tenth of them.
    ///
    /// Fewer lost blocks count as those with the worst figures of their arm, so that an arm which fails where it would
    /// be slow is not the faster one. Trimmed means cut them off. A difference has no worst figure, so such blocks are
    /// left out, as in a campaign.
    pub fn pair(&self, blocks: &Blocks) -> Result<Paired, String> {
        let lost = blocks.lost;
        let all = blocks.pairs.len() + lost[0] + lost[1];
        for (name, lost) in self.names.iter().zip(lost) {
            if lost as f64 > MAX_LOST * all as f64 {
                let what = self.blocks;
                return Err(format!(
                    "{name} has no figure in {lost} of {all} {what}: leaving them out would favour it"
                ));
            }
        }
        let mut pairs = blocks.pairs.clone();
        if self.scale == Scale::Ratio {
            // Ratios beyond all that can be measured.
            let worst = match self.better {
                Better::Lower => f64::MAX,
                Better::Higher => f64::MIN_POSITIVE,
            };
            pairs.extend(std::iter::repeat_n((worst, 1.0), lost[0]));
            pairs.extend(std::iter::repeat_n((1.0, worst), lost[1]));
        }
        let mut paired = Paired::of(self.scale, &pairs)?;
        paired.lost = lost;
        paired.counts_events = self.counts_events;
        Ok(paired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::ArmFigure;

    fn arms(scale: Scale, better: Better) -> TwoArms<'static> {
        TwoArms { names: ["ipv4", "ipv6"], scale, better, counts_events: false, blocks: "rounds" }
    }

    fn measure(figure: f64) -> Option<ArmFigure> {
        Some(ArmFigure::Measured(figure))
    }

    fn lose(reason: &str) -> Option<ArmFigure> {
        Some(ArmFigure::Absent { absent: reason.to_owned(), valid: true })
    }

    /// Blocks in which the candidate is this many times the baseline, and that one arm lost.
    fn blocks(pairs: usize, ratio: f64, lost: [usize; 2]) -> Blocks {
        let mut blocks = Blocks::default();
        for place in 0..pairs {
            let noise = 1.0 + [0.002, -0.002, 0.001, -0.001, 0.0][place % 5];
            blocks.add(&[measure(10.0), measure(10.0 * ratio * noise)]);
        }
        for _ in 0..lost[0] {
            blocks.add(&[lose("no answer"), measure(10.0 * ratio)]);
        }
        for _ in 0..lost[1] {
            blocks.add(&[measure(10.0), lose("no answer")]);
        }
        blocks
    }

    #[test]
    fn arm_that_lost_more_than_a_tenth_has_no_verdict() {
        for scale in [Scale::Ratio, Scale::Difference] {
            let arms = arms(scale, Better::Lower);
            let reason = arms.pair(&blocks(7, 0.8, [0, 3])).unwrap_err();
            assert!(reason.starts_with("ipv6 has no figure in 3 of 10 rounds"), "{reason}");
            assert!(arms.pair(&blocks(7, 1.25, [3, 0])).unwrap_err().starts_with("ipv4 has no figure"));
            assert!(arms.pair(&blocks(8, 0.8, [1, 1])).is_ok());
        }
    }

    #[test]
    fn lost_block_is_the_worst_of_its_arm() {
        let whole = arms(Scale::Ratio, Better::Lower).pair(&blocks(9, 1.0, [0, 0])).unwrap();
        for (better, lost, is_higher) in [
            (Better::Lower, [0, 1], true),
            (Better::Lower, [1, 0], false),
            (Better::Higher, [0, 1], false),
            (Better::Higher, [1, 0], true),
        ] {
            let found = arms(Scale::Ratio, better).pair(&blocks(9, 1.0, lost)).unwrap();
            assert_eq!((found.pairs(), found.effect().pairs), (10, 10));
            assert_eq!(found.estimate() > whole.estimate(), is_higher, "{better:?}, {lost:?}");
            // One of ten: cut off, so that the figures stay what they are.
            assert!((found.estimate() - 1.0).abs() < 0.002, "{}", found.estimate());
            assert!(found.arms().iter().all(|figure| (9.0..11.0).contains(figure)), "{:?}", found.arms());
        }
    }

    #[test]
    fn blocks_that_neither_arm_has_favour_none() {
        let mut blocks = blocks(8, 0.8, [0, 0]);
        for _ in 0..4 {
            blocks.add(&[lose("no network"), lose("no network")]);
        }
        let found = arms(Scale::Ratio, Better::Lower).pair(&blocks).unwrap();
        assert_eq!((found.pairs(), found.lost), (8, [0, 0]));
    }
}
