//! What the rounds say: whether each family works, figures, verdicts, and what differs.

#[cfg(test)]
mod tests;

use crate::metric::PathMetric;
use crate::probe::RoundFigures;
use crate::probe::http::NOT_WHOLE;
use crate::target::{NoAddress, Target};
use stacklab_analysis::statistics::{Cusum, Drift, median};
use stacklab_analysis::{Blocks, Claim, Paired, TwoArms, claims};
use stacklab_model::{ArmFigure, Better, Effect, Family, Verdict};
use std::collections::{BTreeMap, VecDeque};

const MAX_ROUNDS: usize = 1_000;

/// Whether a family works, with its name for programs: without an address, nobody could say whether there is one, no
/// connection could be opened, connections open and no request is answered, some or all requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateKind {
    Absent,
    Unresolved,
    Unreachable,
    Broken,
    Lossy,
    Works,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FamilyState {
    pub kind: StateKind,
    /// Requests without an answer, and all requests.
    pub failed: usize,
    pub of: usize,
    pub reason: Option<String>,
}

impl FamilyState {
    fn without_answers(kind: StateKind, reason: &str) -> Self {
        FamilyState { kind, failed: 0, of: 0, reason: Some(reason.to_owned()) }
    }

    pub(crate) fn name(&self) -> String {
        format!("{:?}", self.kind).to_lowercase()
    }

    /// Whether each request was answered.
    pub(crate) fn works(&self) -> bool {
        self.kind == StateKind::Works
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfFamily {
    pub median: Option<f64>,
    pub count: usize,
    /// Why the last one is missing that is.
    pub missing: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ComparedMetric {
    pub metric: PathMetric,
    pub families: BTreeMap<Family, OfFamily>,
    pub effect: Option<Effect>,
    /// Figures of IPv4 and IPv6 that fit the effect: what people read.
    pub fitted: Option<[f64; 2]>,
    /// By the name of the better family.
    pub verdict: Verdict,
    /// Why families that look alike are not called equivalent.
    pub remark: Option<String>,
}

pub(crate) struct Rounds {
    pub target: Target,
    facts: RoundFigures,
    rounds: VecDeque<RoundFigures>,
    sums: BTreeMap<PathMetric, Cusum>,
    pub count: u64,
}

impl Rounds {
    pub(crate) fn new(target: Target, facts: RoundFigures) -> Self {
        Rounds { target, facts, rounds: VecDeque::new(), sums: BTreeMap::new(), count: 0 }
    }

    /// Adds a round. Returns the drifts that it completes.
    pub(crate) fn add(&mut self, figures: RoundFigures) -> Vec<(PathMetric, Drift)> {
        let mut drifts = Vec::new();
        for metric in PathMetric::ALL {
            if let Some((baseline, candidate)) = pair(&figures, metric)
                && baseline > 0.0
                && candidate > 0.0
                && let Some(drift) = self.sums.entry(metric).or_default().next((candidate / baseline).ln())
            {
                drifts.push((metric, drift));
            }
        }
        self.count += 1;
        if self.rounds.len() == MAX_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(figures);
        drifts
    }

    pub(crate) fn last(&self) -> Option<&RoundFigures> {
        self.rounds.back()
    }

    fn of(&self, metric: PathMetric, family: Family) -> Vec<&Result<f64, String>> {
        let key = (metric, family);
        if metric.is_fact() {
            return self.facts.get(&key).into_iter().collect();
        }
        self.rounds.iter().filter_map(|round| round.get(&key)).collect()
    }

    pub(crate) fn state(&self, family: Family) -> FamilyState {
        match self.target.address(family) {
            Ok(_) => {}
            Err(NoAddress::Absent(reason)) => {
                return FamilyState::without_answers(StateKind::Absent, reason);
            }
            Err(NoAddress::Unresolved(reason)) => {
                return FamilyState::without_answers(StateKind::Unresolved, reason);
            }
        }
        let connects = self.of(PathMetric::TcpConnect, family);
        let answers = self.of(PathMetric::FirstByte, family);
        let goodputs = self.of(PathMetric::Goodput, family);
        let last_reason = answers.iter().rev().find_map(|answer| answer.as_ref().err().cloned());
        let reason = last_reason.clone().unwrap_or_else(|| "nothing was asked".to_owned());
        if connects.iter().all(|connect| connect.is_err()) {
            return FamilyState::without_answers(StateKind::Unreachable, &reason);
        }
        let mut failed = 0;
        let mut broken = None;
        for (place, answer) in answers.iter().enumerate() {
            let break_off = find_break_off(&goodputs, place);
            if answer.is_err() || break_off.is_some() {
                failed += 1;
            }
            if break_off.is_some() {
                broken = break_off.cloned();
            }
        }
        if failed == answers.len() {
            return FamilyState::without_answers(StateKind::Broken, &broken.unwrap_or(reason));
        }
        let kind = if failed == 0 { StateKind::Works } else { StateKind::Lossy };
        FamilyState { kind, failed, of: answers.len(), reason: broken.or(last_reason) }
    }

    /// The pairs of a metric, or the verdict that it has without a test. Facts have one pair, and are compared as they
    /// are.
    fn pair(&self, metric: PathMetric) -> Result<Paired, Verdict> {
        if metric.is_fact() {
            return Err(match pair(&self.facts, metric) {
                None => Verdict::Nothing("not measured".to_owned()),
                Some((baseline, candidate)) if baseline == candidate => Verdict::Equivalent,
                Some((baseline, candidate)) => better(metric, candidate > baseline),
            });
        }
        let mut blocks = Blocks::default();
        for round in &self.rounds {
            blocks.add(&FAMILIES.map(|family| arm_figure(round, metric, family)));
        }
        let names = FAMILIES.map(|family| family.to_string());
        let arms = TwoArms {
            names: [&names[0], &names[1]],
            scale: metric.scale(),
            better: metric.better(),
            counts_events: false,
            blocks: "rounds",
        };
        arms.pair(&blocks).map_err(Verdict::Nothing)
    }

    fn compare_metric(
        &self,
        metric: PathMetric,
        found: Option<&Paired>,
        verdict: Verdict,
        margin: f64,
    ) -> ComparedMetric {
        let mut families = BTreeMap::new();
        for &family in Family::ALL {
            families.insert(family, self.find_median(metric, family));
        }
        let verdict = match (verdict, families.iter().find(|(_, of)| of.count == 0)) {
            (Verdict::Nothing(_), Some((family, of))) => {
                let reason = of.missing.clone().unwrap_or_else(|| "not measured".to_owned());
                Verdict::Nothing(format!("{family}: {reason}"))
            }
            (verdict, _) => verdict,
        };
        let effect = found.map(Paired::effect);
        let fitted = found.map(Paired::arms);
        let open = found.filter(|_| verdict == Verdict::Inconclusive);
        let remark = open.and_then(|paired| paired.explain_open_equivalence(margin, "rounds"));
        ComparedMetric { metric, families, effect, fitted, verdict, remark }
    }

    fn find_median(&self, metric: PathMetric, family: Family) -> OfFamily {
        let all = self.of(metric, family);
        let figures: Vec<f64> = all.iter().filter_map(|figure| figure.as_ref().ok().copied()).collect();
        let missing = all.iter().rev().find_map(|figure| figure.as_ref().err().cloned());
        OfFamily { median: median(&figures), count: figures.len(), missing }
    }
}

/// Why the answer of a round broke off, if it did: a transfer that broke off had its first byte.
fn find_break_off<'a>(goodputs: &[&'a Result<f64, String>], round: usize) -> Option<&'a String> {
    let reason = goodputs.get(round)?.as_ref().err()?;
    reason.starts_with(NOT_WHOLE).then_some(reason)
}

fn pair(figures: &RoundFigures, metric: PathMetric) -> Option<(f64, f64)> {
    let figure = |family| figures.get(&(metric, family))?.as_ref().ok().copied();
    Some((figure(Family::Ipv4)?, figure(Family::Ipv6)?))
}

/// Baseline and candidate.
const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

fn arm_figure(round: &RoundFigures, metric: PathMetric, family: Family) -> Option<ArmFigure> {
    Some(match round.get(&(metric, family))? {
        Ok(figure) => ArmFigure::Measured(*figure),
        Err(reason) => ArmFigure::Absent { absent: reason.clone(), valid: true },
    })
}

/// Each metric of each host compared, with this margin (0.05 is 5 %). The comparisons of all hosts are one family: of
/// the claims of a whole report at most one in twenty is expected to be false. If a planned number of rounds has
/// ended, they are tested once. Before, and where rounds are looked at again and again, only e-values are claimed.
pub(crate) fn compare(looks: &[Rounds], margin: f64, has_ended: bool) -> Vec<Vec<ComparedMetric>> {
    let mut found: Vec<(PathMetric, Result<Paired, Verdict>)> = Vec::new();
    for look in looks {
        found.extend(PathMetric::ALL.map(|metric| (metric, look.pair(metric))));
    }
    let paired: Vec<Option<&Paired>> = found.iter().map(|(_, paired)| paired.as_ref().ok()).collect();
    let claimed = claims(&paired, margin, has_ended);
    let mut compared = Vec::new();
    let hosts = found.chunks(PathMetric::ALL.len()).zip(claimed.chunks(PathMetric::ALL.len()));
    for (look, (found, claimed)) in looks.iter().zip(hosts) {
        let mut metrics = Vec::new();
        for ((metric, found), claim) in found.iter().zip(claimed) {
            let verdict = verdict(*metric, found, *claim);
            metrics.push(look.compare_metric(*metric, found.as_ref().ok(), verdict, margin));
        }
        compared.push(metrics);
    }
    compared
}

fn verdict(metric: PathMetric, found: &Result<Paired, Verdict>, claim: Option<Claim>) -> Verdict {
    match (found, claim) {
        (Err(verdict), _) => verdict.clone(),
        (Ok(paired), Some(Claim::Different)) => better(metric, paired.estimate() > 1.0),
        (Ok(_), Some(Claim::Equivalent)) => Verdict::Equivalent,
        (Ok(_), None) => Verdict::Inconclusive,
    }
}

/// The better family, where IPv6 has more than IPv4 or less.
fn better(metric: PathMetric, more: bool) -> Verdict {
    let candidate = more == (metric.better() == Better::Higher);
    Verdict::Better(if candidate { Family::Ipv6 } else { Family::Ipv4 }.to_string())
}
