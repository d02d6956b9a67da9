//! How much more must be measured for a verdict.

use crate::comparison::distance::{margin_distance, to_distance};
use crate::comparison::family::ENDED;
use crate::statistics::t_quantile;
use stacklab_model::{Effect, Question};

/// Beyond this many blocks more, there is no telling.
const MOST_BLOCKS: f64 = 100_000.0;

/// How many more blocks an open question needs, if estimate and spread stay as they are: until a test at the end of the
/// campaign claims a difference, or that there is none, whichever comes first. A standard error falls as the root of
/// the number of blocks. `None` if no number of blocks decides it.
pub(crate) fn blocks_to_decide(question: &Question, effect: &Effect, comparisons: usize) -> Option<u32> {
    let Effect { scale, pairs, estimate, error, degrees_of_freedom, .. } = effect;
    // As if it were the last claim of a family of which half is claimed.
    let level = ENDED / (comparisons as f64 / 2.0).max(1.0);
    let t = |share: f64| t_quantile(1.0 - share, degrees_of_freedom.max(1.0));
    let distance = to_distance(*scale, *estimate).abs();
    let inside = margin_distance(*scale, question.margin).high - distance;
    let blocks = |half: f64, room: f64| {
        if room > 0.0 { *pairs as f64 * (half / room).powi(2) } else { f64::INFINITY }
    };
    let needed = blocks(t(level / 2.0) * error, distance).min(blocks(t(level) * error, inside));
    let more = needed.ceil() - *pairs as f64;
    (1.0..=MOST_BLOCKS).contains(&more).then_some(more as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::paired::Paired;
    use crate::fixtures::question;
    use stacklab_model::{Metric, Scale};

    fn effect(n: usize, middle: f64, sd: f64) -> Effect {
        let place = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let pairs: Vec<(f64, f64)> = (0..n).map(|i| (1.0, (middle + sd * place(i)).exp())).collect();
        Paired::of(Scale::Ratio, &pairs).unwrap().effect()
    }

    #[test]
    fn a_difference_twice_as_small_takes_four_times_as_many_blocks() {
        let question = question(Metric::Throughput, 0.001);
        let total = |middle: f64| 20 + blocks_to_decide(&question, &effect(20, middle, 0.1), 1).unwrap();
        let [large, small] = [total(0.02), total(0.01)].map(f64::from);
        assert!((small / large - 4.0).abs() < 0.1, "{large} and {small}");
    }

    #[test]
    fn equivalence_is_reached_inside_the_margin_only() {
        let question = question(Metric::Throughput, 0.05);
        assert!(blocks_to_decide(&question, &effect(10, 0.0, 0.2), 1).is_some());
        let at_the_margin = effect(10, 0.0, 0.0);
        assert_eq!(blocks_to_decide(&question, &at_the_margin, 1), None, "it is decided already");
    }
}
