//! Locations of the arms of an interleaved trial, from their figures by round.

use stacklab_model::{ArmSchedule, Metric, Value};

/// Share of the rounds' weight cut off at each end before the mean is taken.
pub(super) const TRIMMED: f64 = 0.2;
/// The same where connections have states that last for several slices: all but the middle tenth.
pub(super) const TRIMMED_OF_TCP_STREAM: f64 = 0.45;
/// Beyond any figure, in each metric's unit: it stands for an infinite one, and its inverse for zero.
const BEYOND: f64 = 1e15;
/// A median of this number of round trips bears some that were held up.
const ENOUGH_ROUND_TRIPS: f64 = 20.0;

/// The figures of all arms in one round, and how much it counts.
struct Round {
    figures: Vec<f64>,
    weight: f64,
}

impl Round {
    fn is_lost(&self, arm: usize) -> bool {
        self.figures[arm] == 0.0 || self.figures[arm].is_infinite()
    }

    /// What stands for the arm's figure where logarithms are taken.
    fn log(&self, arm: usize) -> f64 {
        self.figures[arm].clamp(1.0 / BEYOND, BEYOND).ln()
    }
}

/// The load of each arm of a search from those of the rounds that count, one for each arm in their order. `None` with
/// too few rounds.
pub fn locate_loads(rounds: &[Vec<f64>]) -> Option<Vec<f64>> {
    let arms = rounds.first()?.len();
    let mut columns = Vec::new();
    for arm in 0..arms {
        columns.push(rounds.iter().map(|loads| Some(loads[arm])).collect());
    }
    let located = estimate_arms(Metric::LoadAtLoss, &columns, &vec![1.0; rounds.len()], TRIMMED);
    located.into_iter().map(|value| value?.measured()).collect()
}

/// The figure of each arm from its figures by round; `None` with too few rounds in which every arm has one.
///
/// A round counts by `weights`: the messages of the arm that sent fewest in it. On a busy machine a slice with a few
/// round trips has the median of whatever held them up.
///
/// A slice whose figure is infinite or zero, because half of its answers or all of its messages never came, is worse
/// than any other. The trimmed mean leaves out as many at each end; an arm with more of them has no finite figure.
pub(super) fn estimate_arms(
    metric: Metric,
    columns: &[Vec<Option<f64>>],
    weights: &[f64],
    trimmed: f64,
) -> Vec<Option<Value>> {
    let rounds = complete_rounds(columns, weights);
    if (rounds.len() as u64) < ArmSchedule::MIN_ROUNDS {
        return vec![None; columns.len()];
    }
    let whole: f64 = rounds.iter().map(|round| round.weight).sum();
    let mut values = vec![None; columns.len()];
    let mut kept = Vec::new();
    for (arm, value) in values.iter_mut().enumerate() {
        let lost: Vec<&Round> = rounds.iter().filter(|round| round.is_lost(arm)).collect();
        let lost_weight: f64 = lost.iter().map(|round| round.weight).sum();
        if lost_weight <= TRIMMED * whole {
            kept.push(arm);
        } else {
            let what = match metric {
                Metric::Rtt => "half of the messages or more had no answer",
                _ => "nothing arrived",
            };
            *value = Some(Value::Missing(format!("{what} in {} of {} slices", lost.len(), rounds.len())));
        }
    }
    for (arm, figure) in kept.iter().zip(locations(&rounds, &kept, trimmed)) {
        values[*arm] = Some(Value::Measured(figure));
    }
    values
}

/// The rounds in which every arm has a figure.
fn complete_rounds(columns: &[Vec<Option<f64>>], weights: &[f64]) -> Vec<Round> {
    let mut rounds = Vec::new();
    for (round, weight) in weights.iter().copied().enumerate() {
        let figures: Option<Vec<f64>> =
            columns.iter().map(|column| column.get(round).copied().flatten()).collect();
        if let Some(figures) = figures
            && weight > 0.0
        {
            rounds.push(Round { figures, weight });
        }
    }
    rounds
}

/// Why round trips have no figure, where rounds that were cut short have more weight than is trimmed: a median of a few
/// is that of whatever held them up. `weights` are the round trips of each round.
pub(super) fn explain_too_few_round_trips(weights: &[f64]) -> Option<String> {
    let most = weights.iter().copied().fold(0.0, f64::max).min(ENOUGH_ROUND_TRIPS);
    let few: Vec<f64> = weights.iter().copied().filter(|weight| 2.0 * weight < most).collect();
    let whole: f64 = weights.iter().sum();
    if few.iter().sum::<f64>() <= 2.0 * TRIMMED * whole {
        return None;
    }
    Some(format!(
        "{} of {} rounds have fewer than {} round trips: others kept the processors",
        few.len(),
        weights.len(),
        most / 2.0
    ))
}

/// The locations of these arms, in their order.
fn locations(rounds: &[Round], arms: &[usize], trimmed: f64) -> Vec<f64> {
    let mut effects = vec![0.0; arms.len()];
    for one in 0..arms.len() {
        for other in 0..one {
            let log_ratios =
                rounds.iter().map(|round| (round.log(arms[one]) - round.log(arms[other]), round.weight));
            let share = trimmed_mean(log_ratios.collect(), trimmed) / arms.len() as f64;
            effects[one] += share;
            effects[other] -= share;
        }
    }
    let mut levels = Vec::new();
    for round in rounds {
        let without = arms.iter().zip(&effects).map(|(arm, effect)| round.log(*arm) - effect).collect();
        levels.push((median(without), round.weight));
    }
    let level = trimmed_mean(levels, trimmed);
    effects.iter().map(|effect| (level + effect).exp()).collect()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let Some(last) = figures.len().checked_sub(1) else { return 0.0 };
    (figures[last / 2] + figures[last.div_ceil(2)]) / 2.0
}

/// The mean of figures with weights, without this share of the weight at each end. A figure at the edge counts in part.
fn trimmed_mean(mut weighted: Vec<(f64, f64)>, trimmed: f64) -> f64 {
    weighted.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let whole: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let kept_from = trimmed * whole;
    let kept_to = whole - kept_from;
    let mut before = 0.0;
    let mut sum = 0.0;
    for (figure, weight) in weighted {
        let after = before + weight;
        let inside = after.min(kept_to) - before.max(kept_from);
        sum += figure * inside.max(0.0);
        before = after;
    }
    sum / (kept_to - kept_from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::SplitMix64;

    fn normal(random: &mut u64) -> f64 {
        let length = (-2.0 * (1.0 - draw_uniform(random)).ln()).sqrt();
        length * (2.0 * std::f64::consts::PI * draw_uniform(random)).cos()
    }

    fn draw_uniform(random: &mut u64) -> f64 {
        *random = SplitMix64::mix(*random);
        (*random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Mean and variance over trials of the log ratio of the first two of so many arms, of which the second is 1 %
    /// slower; slices have noise of 1 %, and one in twenty is up to half as fast.
    fn log_ratio_of(arms: usize) -> [f64; 2] {
        let mut random = 5;
        let mut found = Vec::new();
        for _ in 0..4000 {
            let columns: Vec<_> = (0..arms).map(|arm| draw_column(arm, &mut random)).collect();
            let all: Vec<usize> = (0..arms).collect();
            let located = locations(&complete_rounds(&columns, &[1.0; 20]), &all, TRIMMED);
            found.push((located[1] / located[0]).ln());
        }
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        [mean, found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / found.len() as f64]
    }

    /// The figures of an arm in 20 rounds.
    fn draw_column(arm: usize, random: &mut u64) -> Vec<Option<f64>> {
        let effect = if arm == 1 { 0.99 } else { 1.0 + 0.02 * arm as f64 };
        let mut column = Vec::new();
        for _ in 0..20 {
            let slower = if normal(random) > 1.645 { 0.3 * normal(random).abs() } else { 0.0 };
            column.push(Some(effect * (0.01 * normal(random) - slower).exp()));
        }
        column
    }

    #[test]
    fn disturbed_slices_of_others_spoil_no_comparison() {
        let [_, of_two] = log_ratio_of(2);
        for arms in [4, 8, 16] {
            let [mean, variance] = log_ratio_of(arms);
            assert!((mean - 0.99_f64.ln()).abs() < 3e-4, "{arms} arms: {mean}");
            // With distances from the round's mean: 1.25 to 1.47 times.
            assert!(variance < 1.1 * of_two, "{arms} arms: {} times", variance / of_two);
        }
    }

    #[test]
    fn trims_by_weight() {
        assert!((trimmed_mean(weigh_alike([100.0, 1.0, 2.0, 3.0, -50.0]), TRIMMED) - 2.0).abs() < 1e-12);
        // Of a weight of 10, 2 are cut at each end: all of -50, half of 1, and a part of 7.
        let weighted = vec![(7.0, 4.0), (1.0, 2.0), (-50.0, 1.0), (2.0, 3.0)];
        assert!((trimmed_mean(weighted, TRIMMED) - (1.0 + 3.0 * 2.0 + 2.0 * 7.0) / 6.0).abs() < 1e-12);
        // The middle tenth is near the median.
        assert!(
            (trimmed_mean(weigh_alike([9.0, 1.0, 2.0, 3.0, -50.0]), TRIMMED_OF_TCP_STREAM) - 2.0).abs()
                < 1e-12
        );
    }

    fn weigh_alike(figures: [f64; 5]) -> Vec<(f64, f64)> {
        figures.map(|figure| (figure, 3.0)).to_vec()
    }

    /// Round trips of two arms of which the second takes 3 % longer, in slices of 25; in a share of the rounds both
    /// arms have the single round trip of 4 ms that another program held up.
    fn busy(share_held_up: f64) -> (Vec<Vec<Option<f64>>>, Vec<f64>) {
        let mut random = 3;
        let mut columns = vec![Vec::new(), Vec::new()];
        let mut weights = Vec::new();
        for round in 0..200 {
            let is_held_up = f64::from(round % 100) < 100.0 * share_held_up;
            for (arm, column) in columns.iter_mut().enumerate() {
                let quiet = [0.020, 0.020 * 1.03][arm] * (0.02 * normal(&mut random)).exp();
                let held_up = 4.0 * (0.5 * normal(&mut random)).exp();
                column.push(Some(if is_held_up { held_up } else { quiet }));
            }
            weights.push(if is_held_up { 1.0 } else { 25.0 });
        }
        (columns, weights)
    }

    #[test]
    fn held_up_round_trips_have_little_weight() {
        for share in [0.0, 0.3, 0.5] {
            let (columns, weights) = busy(share);
            assert_eq!(explain_too_few_round_trips(&weights), None);
            let found = estimate_arms(Metric::Rtt, &columns, &weights, TRIMMED);
            let found: Vec<f64> =
                found.iter().map(|value| value.as_ref().unwrap().measured().unwrap()).collect();
            assert!(
                (found[1] / found[0] - 1.03).abs() < 0.01 && (found[0] / 0.02 - 1.0).abs() < 0.02,
                "{found:?}"
            );
        }
    }

    #[test]
    fn says_when_nothing_helps() {
        let (_, weights) = busy(0.97);
        let reason = "194 of 200 rounds have fewer than 10 round trips: others kept the processors";
        assert_eq!(explain_too_few_round_trips(&weights).as_deref(), Some(reason));
        // All rounds are as short as the path is long.
        assert_eq!(explain_too_few_round_trips(&[2.0; 16]), None);
    }
}
