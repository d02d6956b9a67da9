//! Locations of the arms of an interleaved trial, from their figures by round.

use stacklab_model::{ArmSchedule, Metric, Value};

/// Share of the rounds cut off at each end before the mean is taken.
const TRIMMED: f64 = 0.2;
/// Beyond any figure, in each metric's unit: it stands for an infinite one, and its inverse for zero.
const BEYOND: f64 = 1e15;

/// The figure of each arm from its figures by round; `None` with too few rounds in which every arm has one.
///
/// A slice whose figure is infinite or zero, because half of its answers or all of its messages never came, is worse
/// than any other. The trimmed mean leaves out as many at each end; an arm with more of them has no finite figure.
pub(super) fn located(metric: Metric, mut columns: Vec<Vec<Option<f64>>>) -> Vec<Option<Value>> {
    let rounds = columns.iter().map(Vec::len).min().unwrap_or(0);
    let complete: Vec<usize> =
        (0..rounds).filter(|round| columns.iter().all(|column| column[*round].is_some())).collect();
    let is_lost = |figure: f64| figure == 0.0 || figure.is_infinite();
    let lost = |column: &Vec<Option<f64>>| {
        complete.iter().filter(|round| column[**round].is_some_and(is_lost)).count()
    };
    let lost: Vec<usize> = columns.iter().map(lost).collect();
    let cut = (complete.len() as f64 * TRIMMED) as usize;
    for figure in columns.iter_mut().flatten().flatten() {
        *figure = figure.clamp(1.0 / BEYOND, BEYOND);
    }
    let kept: Vec<Vec<Option<f64>>> =
        columns.into_iter().zip(&lost).filter(|(_, lost)| **lost <= cut).map(|(column, _)| column).collect();
    let mut found = locations(&kept).unwrap_or_default().into_iter();
    let what =
        if metric == Metric::Rtt { "half of the messages or more had no answer" } else { "nothing arrived" };
    let all = complete.len();
    let figure = |lost: usize| match lost <= cut {
        true => found.next().map(Value::Measured),
        false => (all as u64 >= ArmSchedule::LEAST_ROUNDS)
            .then(|| Value::Missing(format!("{what} in {lost} of {all} slices"))),
    };
    lost.into_iter().map(figure).collect()
}

fn locations(columns: &[Vec<Option<f64>>]) -> Option<Vec<f64>> {
    let rounds = columns.iter().map(Vec::len).min()?;
    let complete: Vec<Vec<f64>> = (0..rounds)
        .filter_map(|round| {
            let row = columns.iter().map(|column| column[round].filter(|figure| *figure > 0.0).map(f64::ln));
            row.collect::<Option<Vec<f64>>>()
        })
        .collect();
    if (complete.len() as u64) < ArmSchedule::LEAST_ROUNDS {
        return None;
    }
    let arms = columns.len();
    let log_ratio =
        |one: usize, other: usize| trimmed_mean(complete.iter().map(|row| row[one] - row[other]).collect());
    let mut effects = vec![0.0; arms];
    for one in 0..arms {
        for other in 0..one {
            let share = log_ratio(one, other) / arms as f64;
            effects[one] += share;
            effects[other] -= share;
        }
    }
    let without = |row: &Vec<f64>| median(row.iter().zip(&effects).map(|(x, effect)| x - effect).collect());
    let level = trimmed_mean(complete.iter().map(without).collect());
    Some(effects.iter().map(|effect| (level + effect).exp()).collect())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let upper = figures.len() / 2;
    (figures[upper] + figures[(figures.len() - 1) / 2]) / 2.0
}

fn trimmed_mean(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let cut = (figures.len() as f64 * TRIMMED) as usize;
    let kept = &figures[cut..figures.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::SplitMix64;

    fn normal(random: &mut u64) -> f64 {
        let mut uniform = || {
            *random = SplitMix64::mix(*random);
            (*random >> 11) as f64 / (1_u64 << 53) as f64
        };
        (-2.0 * (1.0 - uniform()).ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
    }

    /// Mean and variance over trials of the log ratio of the first two of so many arms, of which the second is 1 %
    /// slower; slices have noise of 1 %, and one in twenty is up to half as fast.
    fn log_ratio_of(arms: usize) -> [f64; 2] {
        let mut random = 5;
        let found: Vec<f64> = (0..4000)
            .map(|_| {
                let column = |arm: usize, random: &mut u64| -> Vec<Option<f64>> {
                    let effect = if arm == 1 { 0.99 } else { 1.0 + 0.02 * arm as f64 };
                    let slice = |random: &mut u64| {
                        let slower = if normal(random) > 1.645 { 0.3 * normal(random).abs() } else { 0.0 };
                        effect * (0.01 * normal(random) - slower).exp()
                    };
                    (0..20).map(|_| Some(slice(random))).collect()
                };
                let columns: Vec<_> = (0..arms).map(|arm| column(arm, &mut random)).collect();
                let located = locations(&columns).unwrap();
                (located[1] / located[0]).ln()
            })
            .collect();
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        [mean, found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / found.len() as f64]
    }

    #[test]
    fn disturbed_slices_of_other_arms_do_not_spoil_a_comparison() {
        let [_, of_two] = log_ratio_of(2);
        for arms in [4, 8, 16] {
            let [mean, variance] = log_ratio_of(arms);
            assert!((mean - 0.99_f64.ln()).abs() < 3e-4, "{arms} arms: {mean}");
            // With distances from the round's mean: 1.25 to 1.47 times.
            assert!(variance < 1.1 * of_two, "{arms} arms: {} times", variance / of_two);
        }
    }

    #[test]
    fn a_trimmed_mean_leaves_a_fifth_out_at_each_end() {
        assert_eq!(trimmed_mean(vec![100.0, 1.0, 2.0, 3.0, -50.0]), 2.0);
        assert_eq!(trimmed_mean(vec![1.0, 3.0]), 2.0);
    }
}
