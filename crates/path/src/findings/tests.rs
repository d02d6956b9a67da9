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

fn round(metric: PathMetric, four: Result<f64, &str>, six: Result<f64, &str>) -> Figures {
    let own = |figure: Result<f64, &str>| figure.map_err(str::to_owned);
    Figures::from([((metric, Family::Ipv4), own(four)), ((metric, Family::Ipv6), own(six))])
}

/// A host whose rounds have these figures of a metric.
fn host(metric: PathMetric, rounds: impl IntoIterator<Item = (f64, Result<f64, &'static str>)>) -> Rounds {
    let mut host = Rounds::new(target(Ok("2001:db8::1")), Figures::new());
    for (four, six) in rounds {
        host.add(round(metric, Ok(four), six));
    }
    host
}

/// What is found on a metric of the first host.
fn compare_one(metric: PathMetric, hosts: &[Rounds], has_ended: bool) -> Compared {
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

#[test]
fn pairs_give_verdicts_by_direction() {
    use PathMetric::{Dns, Goodput, Hops, IcmpRtt, PathMtu, TcpConnect};
    let of = |metric, factor| verdict_on(metric, &[host(metric, rounds(20, factor))], false);
    assert_eq!(of(IcmpRtt, 2.0), better_family(Family::Ipv4));
    assert_eq!(of(Goodput, 2.0), better_family(Family::Ipv6));
    assert_eq!(of(TcpConnect, 0.996), Verdict::Equivalent);
    assert!(matches!(verdict_on(Dns, &[host(Dns, rounds(1, 1.0))], true), Verdict::Nothing(_)));
    let fact = |metric, four, six| {
        let host = Rounds::new(target(Ok("2001:db8::1")), round(metric, Ok(four), Ok(six)));
        verdict_on(metric, &[host], true)
    };
    assert_eq!(fact(PathMtu, 1500.0, 1280.0), better_family(Family::Ipv4));
    assert_eq!(fact(Hops, 3.0, 2.0), better_family(Family::Ipv6));
    assert_eq!(fact(Hops, 3.0, 3.0), Verdict::Equivalent);
}

#[test]
fn family_that_fails_is_not_the_faster_one() {
    let metric = PathMetric::IcmpRtt;
    let failing = |count: usize, of: u32| {
        let fail = move |(place, (four, six))| (four, if place < count { Err("no answer") } else { six });
        host(metric, rounds(of, 0.8).enumerate().map(fail))
    };
    for has_ended in [true, false] {
        let Verdict::Nothing(reason) = verdict_on(metric, &[failing(3, 10)], has_ended) else {
            panic!("IPv6 lost three rounds of ten");
        };
        assert!(reason.starts_with("ipv6 has no figure in 3 of 10 rounds"), "{reason}");
    }
    // One of twenty counts as the slowest, and is cut off.
    assert_eq!(verdict_on(metric, &[failing(1, 20)], true), better_family(Family::Ipv6));
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
    let clear = |count| [host(metric, rounds(count, 2.0))];
    assert_eq!(verdict_on(metric, &clear(2), false), Verdict::Inconclusive);
    assert_eq!(verdict_on(metric, &clear(10), true), better_family(Family::Ipv4));
}

#[test]
fn hosts_of_a_report_are_one_family() {
    // p of this metric alone is 0.1 %, and a host has eight.
    let noise = [0.03, -0.01, 0.05, 0.02, -0.02, 0.04, 0.01, 0.06, -0.03, 0.03];
    let weak = || host(PathMetric::IcmpRtt, noise.map(|log: f64| (1.0, Ok((log + 0.06).exp()))));
    let even = || host(PathMetric::IcmpRtt, noise.map(|log| (1.0, Ok((10.0 * (log - 0.02)).exp()))));
    let among = |others: usize| {
        let hosts: Vec<Rounds> = std::iter::once(weak()).chain((0..others).map(|_| even())).collect();
        verdict_on(PathMetric::IcmpRtt, &hosts, true)
    };
    assert_eq!(among(0), better_family(Family::Ipv4));
    assert_eq!(among(20), Verdict::Inconclusive);
}

#[test]
fn each_state_is_told_apart() {
    let state = |steps: &[(PathMetric, Result<f64, &str>)], six: Result<&str, &str>| {
        let mut rounds = Rounds::new(target(six), Figures::new());
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
    let cut = [
        (TcpConnect, Ok(1.0)),
        (FirstByte, Ok(1.0)),
        (PathMetric::Goodput, Err("no whole answer: it broke off")),
    ];
    assert_eq!(
        why(state(&cut, there)),
        (StateKind::Broken, Some("no whole answer: it broke off".to_owned()))
    );
}

#[test]
fn only_a_drift_of_the_ratio_is_told_and_only_once() {
    let mut rounds = Rounds::new(target(Ok("2001:db8::1")), Figures::new());
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
