//! Two clients, or two settings of one: their runs are paired, and each delay has a verdict by the one rule.
//!
//! Delays are compared by their differences, in milliseconds: a percentage of the fraction of a millisecond that a
//! client on a working network needs would say nothing.

use crate::measurement::Measurement;
use crate::run::{Run, attempt_delay_ms};
use crate::runs::{ScenarioRuns, runs_of};
use crate::scenario::path_scenario;
use serde::Serialize;
use stacklab_analysis::statistics::median;
use stacklab_analysis::{Blocks, Claim, Paired, TwoArms, claims};
use stacklab_model::{ArmFigure, Better, Effect, Family, Scale, Verdict};

/// Smaller differences are equivalent, ms: what a measured delay may be wrong by.
pub(crate) const MARGIN_MS: f64 = 5.0;
const BASELINE: &str = "baseline";
const CANDIDATE: &str = "candidate";

/// Two clients, and the difference of each delay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientComparison {
    /// The first command.
    pub baseline: Measurement,
    /// The command after `--against`.
    pub candidate: Measurement,
    /// The delays.
    pub delays: Vec<DelayDiff>,
}

/// A delay of both clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DelayDiff {
    /// The scenario's name.
    pub scenario: String,
    /// What is compared: `attempt delay`, or `first byte: IPv6 is dropped`.
    pub label: String,
    /// The median of the baseline's runs; absent if none has the delay.
    pub baseline_ms: Option<f64>,
    /// The same of the candidate's.
    pub candidate_ms: Option<f64>,
    /// Candidate minus baseline.
    pub effect: Option<Effect>,
    /// By the rule of all verdicts; `Better` names `baseline` or `candidate`.
    pub verdict: Verdict,
}

impl DelayDiff {
    /// Whether the candidate is slower by more than this share of the baseline's delay (0.05 is 5 %) and by more than
    /// the margin of 5 ms, with its whole interval, or lacks a delay that the baseline has.
    pub fn is_worse(&self, allowed: f64) -> bool {
        let Some(baseline_ms) = self.baseline_ms else { return false };
        if self.candidate_ms.is_none() {
            return true;
        }
        let allowed_ms = (allowed * baseline_ms).max(MARGIN_MS);
        self.verdict == Verdict::Better(BASELINE.to_owned())
            && self.effect.as_ref().is_some_and(|effect| effect.interval95.low > allowed_ms)
    }
}

/// The same delay in the runs of both clients.
struct PairedDelays {
    scenario: String,
    label: String,
    figures: Vec<[Option<f64>; 2]>,
}

impl PairedDelays {
    fn of(scenario: &str, label: String, runs: [&[Run]; 2], figure: fn(&Run) -> Option<f64>) -> Self {
        let [baseline, candidate] = runs;
        let figures =
            baseline.iter().zip(candidate).map(|(one, other)| [figure(one), figure(other)]).collect();
        PairedDelays { scenario: scenario.to_owned(), label, figures }
    }

    fn median(&self, arm: usize) -> Option<f64> {
        median(&self.figures.iter().filter_map(|pair| pair[arm]).collect::<Vec<_>>())
    }

    fn pair(&self) -> Result<Paired, String> {
        let mut blocks = Blocks::default();
        for pair in &self.figures {
            blocks.add(&pair.map(|figure| Some(arm_figure(figure))));
        }
        let arms = TwoArms {
            names: [BASELINE, CANDIDATE],
            scale: Scale::Difference,
            better: Better::Lower,
            counts_events: false,
            blocks: "runs",
        };
        arms.pair(&blocks)
    }
}

fn arm_figure(figure: Option<f64>) -> ArmFigure {
    match figure {
        Some(figure) => ArmFigure::Measured(figure),
        None => ArmFigure::Absent { absent: "it did not come to that".to_owned(), valid: true },
    }
}

/// Compares the delays of two clients, whose runs are pairs in their order.
pub(crate) fn compare_delays(baseline: &Measurement, candidate: &Measurement) -> Vec<DelayDiff> {
    let pairs = list_pairs(baseline, candidate);
    let found: Vec<Result<Paired, String>> = pairs.iter().map(PairedDelays::pair).collect();
    let paired: Vec<Option<&Paired>> = found.iter().map(|found| found.as_ref().ok()).collect();
    let claimed = claims(&paired, MARGIN_MS, true);
    let mut delays = Vec::new();
    for ((pairs, found), claim) in pairs.iter().zip(&found).zip(claimed) {
        delays.push(DelayDiff {
            scenario: pairs.scenario.clone(),
            label: pairs.label.clone(),
            baseline_ms: pairs.median(0),
            candidate_ms: pairs.median(1),
            effect: found.as_ref().ok().map(Paired::effect),
            verdict: decide(found, claim),
        });
    }
    delays
}

/// The attempt delay where the baseline's first family is dropped, and the first byte of each scenario.
fn list_pairs(baseline: &Measurement, candidate: &Measurement) -> Vec<PairedDelays> {
    let first = baseline.summary.first_family.unwrap_or(Family::Ipv6);
    let dropped = path_scenario(first, "drop");
    let runs = [&baseline.scenarios, &candidate.scenarios].map(|scenarios| runs_of(scenarios, &dropped));
    let mut pairs = vec![PairedDelays::of(&dropped, "attempt delay".to_owned(), runs, attempt_delay_ms)];
    for ScenarioRuns { name, label, runs } in &baseline.scenarios {
        let runs = [runs, runs_of(&candidate.scenarios, name)];
        pairs.push(PairedDelays::of(name, format!("first byte: {label}"), runs, first_byte_ms));
    }
    pairs
}

fn first_byte_ms(run: &Run) -> Option<f64> {
    run.first_byte.as_ref().map(|first| first.at_ms)
}

fn decide(found: &Result<Paired, String>, claim: Option<Claim>) -> Verdict {
    match (found, claim) {
        (Err(reason), _) => Verdict::Nothing(reason.clone()),
        (Ok(paired), Some(Claim::Different)) => {
            let better = if paired.estimate() > 0.0 { BASELINE } else { CANDIDATE };
            Verdict::Better(better.to_owned())
        }
        (Ok(_), Some(Claim::Equivalent)) => Verdict::Equivalent,
        (Ok(_), None) => Verdict::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(figures: &[[Option<f64>; 2]]) -> DelayDiff {
        let pairs = PairedDelays { scenario: String::new(), label: String::new(), figures: figures.to_vec() };
        let found = pairs.pair();
        let claim = claims(&[found.as_ref().ok()], MARGIN_MS, true)[0];
        DelayDiff {
            scenario: String::new(),
            label: String::new(),
            baseline_ms: pairs.median(0),
            candidate_ms: pairs.median(1),
            effect: found.as_ref().ok().map(Paired::effect),
            verdict: decide(&found, claim),
        }
    }

    fn repeat(baseline: f64, candidate: Option<f64>) -> Vec<[Option<f64>; 2]> {
        let mut figures = Vec::new();
        for run in 0..20 {
            let noise = f64::from(run % 5) / 10.0;
            figures.push([Some(baseline + noise), candidate.map(|candidate| candidate + 0.3 - noise / 2.0)]);
        }
        figures
    }

    #[test]
    fn a_longer_delay_is_worse_beyond_what_is_allowed() {
        let longer = compare(&repeat(200.0, Some(250.0)));
        assert_eq!(longer.verdict, Verdict::Better(BASELINE.to_owned()));
        assert!(longer.is_worse(0.05) && !longer.is_worse(0.3));
        let shorter = compare(&repeat(250.0, Some(200.0)));
        assert_eq!(shorter.verdict, Verdict::Better(CANDIDATE.to_owned()));
        assert!(!shorter.is_worse(0.0));
    }

    #[test]
    fn a_difference_below_the_margin_is_not_worse() {
        let same = compare(&repeat(1.0, Some(1.0)));
        assert_eq!(same.verdict, Verdict::Equivalent);
        assert!(!same.is_worse(0.0));
        // Three times as long, and less than what a delay may be wrong by.
        assert!(!compare(&repeat(1.0, Some(3.0))).is_worse(0.05));
    }

    #[test]
    fn a_candidate_without_data_is_worse() {
        let failing = compare(&repeat(200.0, None));
        assert!(matches!(failing.verdict, Verdict::Nothing(_)), "{failing:?}");
        assert!(failing.is_worse(0.05));
        let never = compare(&[[None, None]; 5]);
        assert!(!never.is_worse(0.05), "nor had the baseline any");
    }
}
