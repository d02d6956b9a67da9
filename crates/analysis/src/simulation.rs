//! Seeded simulations: what the intervals and the stopping rule promise, they keep.

use crate::fixtures::question;
use crate::moments::Moments;
use crate::standing::standing_of;
use crate::{Paired, verdict};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use stacklab_model::{Metric, Scale, Verdict};

/// Normal figures, by Box and Muller.
struct Normal(Pcg64Mcg);

impl Normal {
    fn seeded(seed: u128) -> Self {
        Normal(Pcg64Mcg::new(seed))
    }

    fn next(&mut self, mean: f64, sd: f64) -> f64 {
        let (u, v): (f64, f64) = (self.0.random(), self.0.random());
        mean + sd * (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// A pair within a block: what the block does to both arms cancels in the ratio.
    fn pair(&mut self, ratio: f64, block_sd: f64, run_sd: f64) -> (f64, f64) {
        let block = self.next(100_f64.ln(), block_sd);
        let baseline = (block + self.next(0.0, run_sd)).exp();
        (baseline, (block + ratio.ln() + self.next(0.0, run_sd)).exp())
    }
}

const CASES: usize = 4000;

fn share(hits: usize, cases: usize) -> f64 {
    hits as f64 / cases as f64
}

#[test]
fn the_95_per_cent_interval_of_a_mean_covers_it_in_95_per_cent_of_cases() {
    let mut normal = Normal::seeded(0x5eed_0001);
    for n in [3, 6, 20] {
        let covered = (0..CASES).filter(|_| {
            let figures: Vec<f64> = (0..n).map(|_| normal.next(50.0, 4.0)).collect();
            Moments::of(&figures).unwrap().interval(0.95).contains(50.0)
        });
        let share = share(covered.count(), CASES);
        assert!((0.93..=0.97).contains(&share), "n = {n}: {share}");
    }
}

#[test]
fn the_95_per_cent_interval_of_a_ratio_covers_it_in_95_per_cent_of_cases() {
    let mut normal = Normal::seeded(0x5eed_0002);
    for (n, ratio) in [(3, 0.9), (6, 1.0), (12, 1.3)] {
        let covered = (0..CASES).filter(|_| {
            let pairs: Vec<_> = (0..n).map(|_| normal.pair(ratio, 0.5, 0.05)).collect();
            Paired::of(Scale::Ratio, &pairs).unwrap().interval(0.95).contains(ratio)
        });
        let share = share(covered.count(), CASES);
        assert!((0.93..=0.97).contains(&share), "n = {n}, ratio {ratio}: {share}");
    }
}

/// Looks after each of 6 to 12 blocks and stops as the study does; the verdict is that of the last look.
fn campaign(normal: &mut Normal, ratio: f64, run_sd: f64) -> Verdict {
    let question = question(Metric::Throughput, 0.02);
    let mut pairs: Vec<_> = (0..5).map(|_| normal.pair(ratio, 0.2, run_sd)).collect();
    loop {
        pairs.push(normal.pair(ratio, 0.2, run_sd));
        let paired = Paired::of(Scale::Ratio, &pairs).unwrap();
        let standing = standing_of(&question, &paired, 0.02);
        if standing.narrow || standing.decided || pairs.len() == 12 {
            return verdict(&question, Ok(&paired.effect()));
        }
    }
}

#[test]
fn an_arm_against_itself_is_better_in_at_most_5_per_cent_of_campaigns() {
    let mut normal = Normal::seeded(0x5eed_0003);
    // From so quiet that it is soon equivalent to so noisy that it runs to the cap.
    for run_sd in [0.005, 0.02, 0.05, 0.2] {
        let better =
            (0..CASES).filter(|_| matches!(campaign(&mut normal, 1.0, run_sd), Verdict::Better(_))).count();
        let share = share(better, CASES);
        assert!(share <= 0.05, "run sd {run_sd}: {share}");
    }
}

#[test]
fn a_difference_at_the_margin_is_equivalent_in_at_most_7_per_cent_of_campaigns() {
    let mut normal = Normal::seeded(0x5eed_0004);
    for run_sd in [0.01, 0.02, 0.05] {
        let equivalent =
            (0..CASES).filter(|_| campaign(&mut normal, 1.02, run_sd) == Verdict::Equivalent).count();
        let share = share(equivalent, CASES);
        assert!(share <= 0.07, "run sd {run_sd}: {share}");
    }
}

#[test]
fn a_real_difference_is_found() {
    let mut normal = Normal::seeded(0x5eed_0005);
    let found =
        (0..CASES).filter(|_| campaign(&mut normal, 0.9, 0.02) == Verdict::Better("ipv4".into())).count();
    assert!(share(found, CASES) > 0.99, "{found} of {CASES}");
}
