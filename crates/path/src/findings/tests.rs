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
    Target {
        host: name.clone(),
        name,
        tls: false,
        port: 80,
        path: "/".to_owned(),
        addresses,
        further: BTreeMap::new(),
        refused: BTreeMap::new(),
    }
}

fn round(metric: PathMetric, four: Result<f64, &str>, six: Result<f64, &str>) -> RoundFigures {
    RoundFigures::from([
        ((metric, Family::Ipv4), four.map_err(str::to_owned)),
        ((metric, Family::Ipv6), six.map_err(str::to_owned)),
    ])
}

/// A host whose rounds have these figures of a metric.
fn host(metric: PathMetric, rounds: impl IntoIterator<Item = (f64, Result<f64, &'static str>)>) -> Rounds {
    let mut host = Rounds::new(target(Ok("2001:db8::1")), RoundFigures::new());
    for (four, six) in rounds {
        host.add(round(metric, Ok(four), six));
    }
    host
}

/// What is found on a metric of the first host.
fn compare_one(metric: PathMetric, hosts: &[Rounds], has_ended: bool) -> ComparedMetric {
    let compared = compare(hosts, 0.05, has_ended).remove(0);
    compared.into_iter().find(|compared| compared.metric == metric).unwrap()
}

fn verdict_on(metric: PathMetric, hosts: &[Rounds], has_ended: bool) -> Verdict {
    compare_one(metric, hosts, has_ended).verdict
}

/// Rounds in which IPv6 has this many times the figure of IPv4.
fn rounds(count: u32, factor: f64) -> impl Iterator<Item = (f64, Result<f64, &'static str>)> {
    (0..count).map(move |place| {
        let base = 1.0 + f64::from(place % 7) / 50.0;
        let noise = 1.0 + f64::from(place % 5) / 500.0;
        (base, Ok(base * factor * noise))
    })
}

fn better_family(family: Family) -> Verdict {
    Verdict::Better(family.to_string())
}

fn judge_rounds(metric: PathMetric, factor: f64) -> Verdict {
    verdict_on(metric, &[host(metric, rounds(20, factor))], false)
}

fn judge_fact(metric: PathMetric, four: f64, six: f64) -> Verdict {
    let host = Rounds::new(target(Ok("2001:db8::1")), round(metric, Ok(four), Ok(six)));
    verdict_on(metric, &[host], true)
}

#[test]
fn pairs_give_verdicts_by_direction() {
    use PathMetric::{Dns, Goodput, Hops, IcmpRtt, PathMtu, TcpConnect};
    assert_eq!(judge_rounds(IcmpRtt, 2.0), better_family(Family::Ipv4));
    assert_eq!(judge_rounds(Goodput, 2.0), better_family(Family::Ipv6));
    assert_eq!(judge_rounds(TcpConnect, 0.996), Verdict::Equivalent);
    assert!(matches!(verdict_on(Dns, &[host(Dns, rounds(1, 1.0))], true), Verdict::Nothing(_)));
    assert_eq!(judge_fact(PathMtu, 1500.0, 1280.0), better_family(Family::Ipv4));
    assert_eq!(judge_fact(Hops, 3.0, 2.0), better_family(Family::Ipv6));
    assert_eq!(judge_fact(Hops, 3.0, 3.0), Verdict::Equivalent);
}

/// A host whose IPv6 is the faster family, and has no answer in the first rounds.
fn fail_rounds(metric: PathMetric, failed: usize, of: u32) -> Rounds {
    let mut figures: Vec<_> = rounds(of, 0.8).collect();
    for (_, six) in figures.iter_mut().take(failed) {
        *six = Err("no answer");
    }
    host(metric, figures)
}

#[test]
fn family_that_fails_is_not_the_faster_one() {
    let metric = PathMetric::IcmpRtt;
    for has_ended in [true, false] {
        let failing = fail_rounds(metric, 3, 10);
        let Verdict::Nothing(reason) = verdict_on(metric, &[failing], has_ended) else {
            panic!("IPv6 lost three rounds of ten");
        };
        assert!(reason.starts_with("ipv6 has no figure in 3 of 10 rounds"), "{reason}");
    }
    // One of twenty counts as the slowest, and is cut off.
    let failing = fail_rounds(metric, 1, 20);
    assert_eq!(verdict_on(metric, &[failing], true), better_family(Family::Ipv6));
}

#[test]
fn few_rounds_are_not_equivalent() {
    let metric = PathMetric::TcpConnect;
    let remark = "alike but for another state in fewer than 21 % of rounds, which 13 do not exclude";
    for (count, verdict, remark) in
        [(13, Verdict::Inconclusive, Some(remark)), (14, Verdict::Equivalent, None)]
    {
        let found = compare_one(metric, &[host(metric, rounds(count, 0.996))], true);
        assert_eq!((found.verdict, found.remark.as_deref()), (verdict, remark));
    }
}

#[test]
fn interrupted_rounds_have_no_final_test() {
    let metric = PathMetric::IcmpRtt;
    let two = host(metric, rounds(2, 2.0));
    assert_eq!(verdict_on(metric, &[two], false), Verdict::Inconclusive);
    let ten = host(metric, rounds(10, 2.0));
    assert_eq!(verdict_on(metric, &[ten], true), better_family(Family::Ipv4));
}

/// The verdict on a host with a weak difference, beside others with none.
fn judge_among(others: usize) -> Verdict {
    // p of this metric alone is 0.1 %, and a host has eight.
    let noise = [0.03, -0.01, 0.05, 0.02, -0.02, 0.04, 0.01, 0.06, -0.03, 0.03];
    let weak = noise.map(|log: f64| (1.0, Ok((log + 0.06).exp())));
    let even = noise.map(|log: f64| (1.0, Ok((10.0 * (log - 0.02)).exp())));
    let mut hosts = vec![host(PathMetric::IcmpRtt, weak)];
    for _ in 0..others {
        hosts.push(host(PathMetric::IcmpRtt, even));
    }
    verdict_on(PathMetric::IcmpRtt, &hosts, true)
}

#[test]
fn hosts_of_a_report_are_one_family() {
    assert_eq!(judge_among(0), better_family(Family::Ipv4));
    assert_eq!(judge_among(20), Verdict::Inconclusive);
}

/// The state of IPv6 at an address, or without one, after a round with these steps.
fn find_state(steps: &[(PathMetric, Result<f64, &str>)], six: Result<&str, &str>) -> FamilyState {
    let mut rounds = Rounds::new(target(six), RoundFigures::new());
    let mut figures = RoundFigures::new();
    for (metric, figure) in steps {
        figures.extend(round(*metric, Ok(1.0), *figure));
    }
    rounds.add(figures);
    assert!(rounds.state(Family::Ipv4).works());
    rounds.state(Family::Ipv6)
}

#[test]
fn each_state_is_told_apart() {
    use PathMetric::{FirstByte, Goodput, TcpConnect};
    let there = Ok("2001:db8::1");
    assert!(find_state(&[(TcpConnect, Ok(1.0)), (FirstByte, Ok(1.0))], there).works());
    let refused = find_state(&[(TcpConnect, Err("refused")), (FirstByte, Err("refused"))], there);
    assert_eq!((refused.kind, refused.reason.as_deref()), (StateKind::Unreachable, Some("refused")));
    let broken = find_state(&[(TcpConnect, Ok(1.0)), (FirstByte, Err("no answer"))], there);
    assert_eq!((broken.kind, broken.reason.as_deref()), (StateKind::Broken, Some("no answer")));
    let absent = find_state(&[(TcpConnect, Err("no AAAA")), (FirstByte, Err("no AAAA"))], Err("no AAAA"));
    assert_eq!((absent.kind, absent.reason.as_deref()), (StateKind::Absent, Some("no AAAA")));
    let why = "no whole answer: it broke off";
    let cut = find_state(&[(TcpConnect, Ok(1.0)), (FirstByte, Ok(1.0)), (Goodput, Err(why))], there);
    assert_eq!((cut.kind, cut.reason.as_deref()), (StateKind::Broken, Some(why)));
}

#[test]
fn only_a_drift_of_the_ratio_is_told_and_only_once() {
    let mut rounds = Rounds::new(target(Ok("2001:db8::1")), RoundFigures::new());
    let mut drifts = Vec::new();
    for place in 0..60 {
        let noise = 1.0 + f64::from(place % 5) * 0.01;
        // Both become slower at 30, and IPv6 alone at 45.
        let both = if place >= 30 { 3.0 } else { 1.0 };
        let six = if place >= 45 { 1.5 } else { 1.0 };
        let figures = round(PathMetric::IcmpRtt, Ok(2.0 * both), Ok(2.0 * both * six * noise));
        drifts.extend(rounds.add(figures).into_iter().map(|(metric, drift)| (place, metric, drift.by > 0.0)));
    }
    assert_eq!(drifts.len(), 1, "{drifts:?}");
    assert!(
        (45..50).contains(&drifts[0].0) && drifts[0].1 == PathMetric::IcmpRtt && drifts[0].2,
        "{drifts:?}"
    );
}
