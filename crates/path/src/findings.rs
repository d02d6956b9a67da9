//! What the rounds say: whether each family works, figures, verdicts, and what differs.

use crate::metric::PathMetric;
use crate::probe::Figures;
use crate::target::{NoAddress, Target};
use stacklab_analysis::statistics::{Cusum, Drift, median};
use stacklab_analysis::{Claim, Paired, claims};
use stacklab_model::{Better, Effect, Family, Verdict};
use std::collections::{BTreeMap, VecDeque};

const MOST_ROUNDS: usize = 1_000;

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
pub(crate) struct Compared {
    pub metric: PathMetric,
    pub families: BTreeMap<Family, OfFamily>,
    pub effect: Option<Effect>,
    /// Figures of IPv4 and IPv6 that fit the effect: what people read.
    pub fitted: Option<[f64; 2]>,
    /// By the name of the better family.
    pub verdict: Verdict,
}

pub(crate) struct Rounds {
    pub target: Target,
    facts: Figures,
    rounds: VecDeque<Figures>,
    sums: BTreeMap<PathMetric, Cusum>,
    pub count: u64,
    pub is_planned: bool,
}

impl Rounds {
    pub(crate) fn new(target: Target, facts: Figures, is_planned: bool) -> Self {
        Rounds { target, facts, rounds: VecDeque::new(), sums: BTreeMap::new(), count: 0, is_planned }
    }

    /// Adds a round. Returns the drifts that it completes.
    pub(crate) fn add(&mut self, figures: Figures) -> Vec<(PathMetric, Drift)> {
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
        if self.rounds.len() == MOST_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(figures);
        drifts
    }

    pub(crate) fn last(&self) -> Option<&Figures> {
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
        let without =
            |kind, reason: &str| FamilyState { kind, failed: 0, of: 0, reason: Some(reason.to_owned()) };
        match self.target.address(family) {
            Ok(_) => {}
            Err(NoAddress::Absent(reason)) => return without(StateKind::Absent, reason),
            Err(NoAddress::Unresolved(reason)) => return without(StateKind::Unresolved, reason),
        }
        let connects = self.of(PathMetric::TcpConnect, family);
        let answers = self.of(PathMetric::FirstByte, family);
        // A transfer that broke off had its first byte.
        let goodputs = self.of(PathMetric::Goodput, family);
        let broke_off = |place: usize| {
            goodputs.get(place).and_then(|one| one.as_ref().err()).filter(|why| why.contains("broke off"))
        };
        let last_reason = answers.iter().rev().find_map(|answer| answer.as_ref().err().cloned());
        let reason = || last_reason.clone().unwrap_or_else(|| "nothing was asked".to_owned());
        if connects.iter().all(|connect| connect.is_err()) {
            return without(StateKind::Unreachable, &reason());
        }
        let fails = |place: &usize| answers[*place].is_err() || broke_off(*place).is_some();
        let failed = (0..answers.len()).filter(fails).count();
        let broken = (0..answers.len()).rev().find_map(broke_off).cloned();
        if failed == answers.len() {
            return without(StateKind::Broken, &broken.unwrap_or_else(reason));
        }
        let kind = if failed == 0 { StateKind::Works } else { StateKind::Lossy };
        FamilyState { kind, failed, of: answers.len(), reason: broken.or(last_reason) }
    }

    /// Each metric compared, with this margin (0.05 is 5 %). Rounds whose number was planned are compared
    /// once, at their end; others are looked at again and again.
    pub(crate) fn compare(&self, margin: f64, is_planned: bool) -> Vec<Compared> {
        let pairs = PathMetric::ALL.map(|metric| self.pairs(metric));
        let judged = PathMetric::ALL.into_iter().zip(judge_all(&pairs, margin, is_planned));
        judged.map(|(metric, (found, verdict))| self.compared(metric, found.as_ref(), verdict)).collect()
    }

    fn pairs(&self, metric: PathMetric) -> Vec<(f64, f64)> {
        let rounds = if metric.is_fact() { vec![&self.facts] } else { self.rounds.iter().collect() };
        rounds.into_iter().filter_map(|round| pair(round, metric)).collect()
    }

    fn compared(&self, metric: PathMetric, found: Option<&Paired>, verdict: Verdict) -> Compared {
        let of_family = |family: &Family| {
            let all = self.of(metric, *family);
            let figures: Vec<f64> = all.iter().filter_map(|figure| figure.as_ref().ok().copied()).collect();
            let missing = all.iter().rev().find_map(|figure| figure.as_ref().err().cloned());
            (*family, OfFamily { median: median(&figures), count: figures.len(), missing })
        };
        let families: BTreeMap<Family, OfFamily> = Family::ALL.iter().map(of_family).collect();
        let verdict = match (verdict, families.iter().find(|(_, of)| of.count == 0)) {
            (Verdict::Nothing(_), Some((family, of))) => {
                let reason = of.missing.clone().unwrap_or_else(|| "not measured".to_owned());
                Verdict::Nothing(format!("{family}: {reason}"))
            }
            (verdict, _) => verdict,
        };
        let (effect, fitted) = (found.map(Paired::effect), found.map(Paired::arms));
        Compared { metric, families, effect, fitted, verdict }
    }
}

fn pair(figures: &Figures, metric: PathMetric) -> Option<(f64, f64)> {
    let figure = |family| figures.get(&(metric, family))?.as_ref().ok().copied();
    Some((figure(Family::Ipv4)?, figure(Family::Ipv6)?))
}

/// Pairs and verdict of each metric, in the order of [`PathMetric::ALL`]. Facts have one pair, and are
/// compared as they are.
fn judge_all(
    pairs: &[Vec<(f64, f64)>; 8],
    margin: f64,
    is_planned: bool,
) -> impl Iterator<Item = (Option<Paired>, Verdict)> {
    let found: Vec<Result<Paired, Verdict>> = PathMetric::ALL
        .into_iter()
        .zip(pairs)
        .map(|(metric, pairs)| match &pairs[..] {
            _ if !metric.is_fact() => Paired::of(metric.scale(), pairs).map_err(Verdict::Nothing),
            [] => Err(Verdict::Nothing("not measured".to_owned())),
            [(baseline, candidate), ..] if baseline == candidate => Err(Verdict::Equivalent),
            [(baseline, candidate), ..] => Err(better(metric, candidate > baseline)),
        })
        .collect();
    let paired: Vec<Option<&Paired>> = found.iter().map(|paired| paired.as_ref().ok()).collect();
    let claimed = claims(&paired, margin, is_planned);
    PathMetric::ALL.into_iter().zip(found).zip(claimed).map(|((metric, found), claim)| match (found, claim) {
        (Err(verdict), _) => (None, verdict),
        (Ok(paired), claim) => {
            let verdict = match claim {
                Some(Claim::Different) => better(metric, paired.estimate() > 1.0),
                Some(Claim::Equivalent) => Verdict::Equivalent,
                None => Verdict::Inconclusive,
            };
            (Some(paired), verdict)
        }
    })
}

/// The better family, where IPv6 has more than IPv4 or less.
fn better(metric: PathMetric, more: bool) -> Verdict {
    let candidate = more == (metric.better() == Better::Higher);
    Verdict::Better(if candidate { Family::Ipv6 } else { Family::Ipv4 }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(six: Result<&str, &str>) -> Target {
        let addresses = BTreeMap::from([
            (Family::Ipv4, Ok("192.0.2.1".parse().unwrap())),
            (
                Family::Ipv6,
                six.map(|six| six.parse().unwrap()).map_err(|reason| NoAddress::Absent(reason.to_owned())),
            ),
        ]);
        let name = "a.example".to_owned();
        Target { host: name.clone(), name, tls: false, port: 80, path: "/".to_owned(), addresses }
    }

    fn round(metric: PathMetric, four: Result<f64, &str>, six: Result<f64, &str>) -> Figures {
        let own = |figure: Result<f64, &str>| figure.map_err(str::to_owned);
        Figures::from([((metric, Family::Ipv4), own(four)), ((metric, Family::Ipv6), own(six))])
    }

    #[test]
    fn pairs_give_verdicts_by_direction() {
        let judged = |metric: PathMetric, pairs: Vec<(f64, f64)>| {
            let place = PathMetric::ALL.into_iter().position(|other| other == metric).unwrap();
            let mut all = PathMetric::ALL.map(|_| Vec::new());
            all[place] = pairs;
            judge_all(&all, 0.05, false).nth(place).unwrap().1
        };
        let rounds = |factor: f64| -> Vec<(f64, f64)> {
            (0..20)
                .map(|place| {
                    let (base, noise) =
                        (1.0 + f64::from(place % 7) / 50.0, 1.0 + f64::from(place % 5) / 500.0);
                    (base, base * factor * noise)
                })
                .collect()
        };
        assert_eq!(judged(PathMetric::IcmpRtt, rounds(2.0)), Verdict::Better(Family::Ipv4.to_string()));
        assert_eq!(judged(PathMetric::Goodput, rounds(2.0)), Verdict::Better(Family::Ipv6.to_string()));
        let alike = |place: usize| (1.0, 1.0 + [0.002, -0.002, 0.001, -0.001][place % 4]);
        assert_eq!(judged(PathMetric::TcpConnect, (0..20).map(alike).collect()), Verdict::Equivalent);
        assert_eq!(
            judged(PathMetric::PathMtu, vec![(1500.0, 1280.0)]),
            Verdict::Better(Family::Ipv4.to_string())
        );
        assert_eq!(judged(PathMetric::Hops, vec![(3.0, 2.0)]), Verdict::Better(Family::Ipv6.to_string()));
        assert!(matches!(judged(PathMetric::Dns, vec![(1.0, 1.0)]), Verdict::Nothing(_)));
    }

    #[test]
    fn each_state_is_told_apart() {
        let state = |steps: &[(PathMetric, Result<f64, &str>)], six: Result<&str, &str>| {
            let mut rounds = Rounds::new(target(six), Figures::new(), false);
            let mut figures = Figures::new();
            for (metric, figure) in steps {
                figures.extend(round(*metric, Ok(1.0), *figure));
            }
            rounds.add(figures);
            assert!(rounds.state(Family::Ipv4).works());
            rounds.state(Family::Ipv6)
        };
        let why = |state: FamilyState| (state.kind, state.reason);
        use PathMetric::{FirstByte, TcpConnect};
        let there = Ok("2001:db8::1");
        assert!(state(&[(TcpConnect, Ok(1.0)), (FirstByte, Ok(1.0))], there).works());
        let refused = state(&[(TcpConnect, Err("refused")), (FirstByte, Err("refused"))], there);
        assert_eq!(why(refused), (StateKind::Unreachable, Some("refused".to_owned())));
        let broken = state(&[(TcpConnect, Ok(1.0)), (FirstByte, Err("no answer"))], there);
        assert_eq!(why(broken), (StateKind::Broken, Some("no answer".to_owned())));
        let absent = state(&[(TcpConnect, Err("no AAAA")), (FirstByte, Err("no AAAA"))], Err("no AAAA"));
        assert_eq!(why(absent), (StateKind::Absent, Some("no AAAA".to_owned())));
        let cut =
            [(TcpConnect, Ok(1.0)), (FirstByte, Ok(1.0)), (PathMetric::Goodput, Err("the answer broke off"))];
        assert_eq!(why(state(&cut, there)), (StateKind::Broken, Some("the answer broke off".to_owned())));
    }

    #[test]
    fn a_drift_of_the_ratio_is_told_once_and_one_of_both_families_is_none() {
        let mut rounds = Rounds::new(target(Ok("2001:db8::1")), Figures::new(), false);
        let mut drifts = Vec::new();
        for place in 0..60 {
            let noise = 1.0 + f64::from(place % 5) * 0.01;
            // Both become slower at 30, and IPv6 alone at 45.
            let both = if place >= 30 { 3.0 } else { 1.0 };
            let six = if place >= 45 { 1.5 } else { 1.0 };
            let figures = round(PathMetric::IcmpRtt, Ok(2.0 * both), Ok(2.0 * both * six * noise));
            drifts.extend(
                rounds.add(figures).into_iter().map(|(metric, drift)| (place, metric, drift.by > 0.0)),
            );
        }
        assert_eq!(drifts.len(), 1, "{drifts:?}");
        assert!(
            (45..50).contains(&drifts[0].0) && drifts[0].1 == PathMetric::IcmpRtt && drifts[0].2,
            "{drifts:?}"
        );
    }
}
