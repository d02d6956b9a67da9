use super::*;
use crate::fixtures::{cell, invalid, link_config, question, run};
use crate::statistics::benjamini_hochberg;
use stacklab_model::{
    Change, CpuScope, Family, Length, LinkConfig, MetricDiff, Pacing, Question, Rate, RunRecord,
    StoppingRule, Topology, Transport, Unpaired, Until,
};

const WITHOUT: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };

fn stream(metrics: &[Metric]) -> Vec<ProbeSpec> {
    vec![ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Flood,
        length: Length::Packets(1),
        warmup_ns: 0,
        interval_ns: 1,
        metrics: metrics.to_vec(),
    }]
}

/// A campaign of some cells and runs.
struct RecordData {
    link_config: LinkConfig,
    cells: Vec<Cell>,
    probes: Vec<ProbeSpec>,
    questions: Vec<Question>,
    runs: Vec<RunRecord>,
    scope: CpuScope,
}

impl RecordData {
    fn of(metric: Metric, figures: &[f64]) -> Self {
        let cell = cell(Family::Ipv4, 128);
        let runs = (0..).zip(figures).map(|(block, figure)| run(block, &cell, metric, *figure)).collect();
        RecordData {
            link_config: WITHOUT,
            cells: vec![cell],
            probes: stream(&[metric]),
            questions: vec![],
            runs,
            scope: CpuScope::Shared,
        }
    }

    fn campaign(&self) -> RecordedCampaign<'_> {
        RecordedCampaign {
            title: "a study",
            version: "0.1.0",
            started_unix_ns: 1,
            seed: 7,
            link_config: &self.link_config,
            topology: &Topology::Link,
            testbed_description: "a link",
            hosts: &[],
            cpu_scope: self.scope,
            cells: &self.cells,
            probes: &self.probes,
            rule: &StoppingRule { min: 2, max: 200, until: Until::Verdict, target: 0.01, budget_ns: None },
            questions: &self.questions,
            stop_reasons: &[],
            settled: &[],
            runs: &self.runs,
            throttled_us: 0,
            is_sampled: false,
            is_resumable: true,
            explanations: &[],
            uncounted: &[],
        }
    }
}

fn compare_record_data(a: &RecordData, b: &RecordData, allowed: Option<f64>) -> RecordDiff {
    between([&a.campaign(), &b.campaign()], ["a.stacklab", "b.stacklab"], &[], allowed).unwrap()
}

#[test]
fn fitted_figures_have_the_ratio_that_is_said() {
    // A disturbed run: the means say that B is higher.
    let found = one(Metric::Rtt, &[1.0, 1.0, 1.1, 1.0], &[0.9, 0.95, 2.5, 0.9, 0.4], None);
    assert!(found.b.mean > found.a.mean, "{found:?}");
    let [a, b] = found.fitted.unwrap();
    let effect = found.effect.unwrap();
    assert!(effect.estimate < 1.0 && (b / a - effect.estimate).abs() < 1e-12, "{a} {b} {effect:?}");
    let found = one(Metric::Loss, &[0.0, 0.1], &[0.2, 0.3, 0.1], None);
    assert_eq!(found.fitted.map(|[a, b]| [a - 0.05, b - 0.2].map(|off| off.abs() < 1e-12)), Some([true; 2]));
}

fn one(metric: Metric, a: &[f64], b: &[f64], allowed: Option<f64>) -> MetricDiff {
    compare_record_data(&RecordData::of(metric, a), &RecordData::of(metric, b), allowed).figures.remove(0)
}

const AROUND: [f64; 8] = [0.99, 1.01, 1.0, 1.005, 0.995, 1.0, 0.99, 1.01];

fn at(middle: f64) -> Vec<f64> {
    AROUND.iter().map(|figure| figure * middle).collect()
}

#[test]
fn ratio_is_of_trimmed_means() {
    // One of five to nine runs is cut at each end, of the logarithms.
    let a = [90.0, 100.0, 111.0, 95.0, 2.0, 97.0, 98.0];
    let b = [150.0, 160.0, 145.0, 900.0, 155.0, 152.0];
    let there = one(Metric::Throughput, &a, &b, None).effect.unwrap();
    let back = one(Metric::Throughput, &b, &a, None).effect.unwrap();
    let [a, b] =
        [&[90.0, 100.0, 95.0, 97.0, 98.0][..], &[150.0, 160.0, 155.0, 152.0]].map(average_geometrically);
    assert!((there.estimate - b / a).abs() < 1e-12, "{there:?}");
    assert_eq!(there.degrees_of_freedom, 3.0);
    assert!((there.estimate * back.estimate - 1.0).abs() < 1e-12);
    assert!((there.interval95.low * back.interval95.high - 1.0).abs() < 1e-12);
    assert!((there.p - back.p).abs() < 1e-12 && there.p < 0.01, "{there:?}");
}

fn average_geometrically(x: &[f64]) -> f64 {
    (x.iter().map(|x| x.ln()).sum::<f64>() / x.len() as f64).exp()
}

#[test]
fn better_and_worse_follow_the_metrics_direction() {
    for (metric, less) in [
        (Metric::Throughput, Change::Worse),
        (Metric::Rtt, Change::Better),
        (Metric::Fairness, Change::Worse),
        (Metric::Loss, Change::Better),
    ] {
        let mut made = [at(1.0), at(0.5)].map(|figures| RecordData::of(metric, &figures));
        for made in &mut made {
            made.probes[0].probe = metric.probe();
        }
        assert_eq!(compare_record_data(&made[0], &made[1], None).figures[0].change, less, "{metric}");
    }
}

#[test]
fn alike_is_equivalent_and_noise_is_inconclusive() {
    assert_eq!(one(Metric::Throughput, &at(100.0), &at(100.2), None).change, Change::Equivalent);
    let noisy = [50.0, 150.0, 80.0, 120.0];
    let found = one(Metric::Throughput, &noisy, &at(100.0), Some(0.05));
    assert_eq!((found.change, found.fails), (Change::Inconclusive, false));
}

#[test]
fn the_margin_is_the_first_studys() {
    let mut a = RecordData::of(Metric::Throughput, &at(100.0));
    let b = RecordData::of(Metric::Throughput, &at(90.0));
    assert_eq!(compare_record_data(&a, &b, None).figures[0].change, Change::Worse);
    a.questions = vec![question(Metric::Rtt, 0.5)];
    let found = compare_record_data(&a, &b, None).figures.remove(0);
    // A sure difference is said, also inside the margin.
    assert_eq!((found.margin, found.change), (0.5, Change::Worse));
    a.questions.push(question(Metric::Throughput, 0.01));
    assert_eq!(compare_record_data(&a, &b, None).figures[0].margin, 0.01);
}

fn fails(metric: Metric, a: &[f64], b: &[f64], allowed: f64) -> bool {
    one(metric, a, b, Some(allowed)).fails
}

#[test]
fn only_a_whole_interval_exceeds_what_is_allowed() {
    use Metric::{CpuSender, Loss, Stalls, Throughput};
    assert!(fails(Throughput, &at(100.0), &at(90.0), 0.05));
    assert!(!fails(Throughput, &at(100.0), &at(90.0), 0.095), "the estimate is beyond, its interval is not");
    assert!(!fails(Throughput, &at(100.0), &at(150.0), 0.05), "better is not worse");
    assert!(fails(CpuSender, &at(100.0), &at(110.0), 0.05));
    // Shares: percentage points, from zero too.
    assert!(fails(Loss, &[0.0; 6], &[0.06, 0.061, 0.062, 0.06, 0.061, 0.06], 0.05));
    assert!(!fails(Loss, &[0.01; 6], &[0.02, 0.021, 0.022, 0.02, 0.021, 0.02], 0.05));
    // Counts: per cent of the first mean, and half an event at least.
    assert!(fails(Stalls, &[10.0; 6], &[11.0; 6], 0.05));
    assert!(!fails(Stalls, &[100.0; 6], &[104.0; 6], 0.05));
    assert!(!fails(Stalls, &[0.0; 6], &[0.4; 6], 0.05));
    assert!(!one(Throughput, &at(100.0), &at(10.0), None).fails, "nothing was said of what is allowed");
}

#[test]
fn a_figure_fails_only_if_it_is_claimed_to_be_worse() {
    // Of many figures without a difference, some intervals lie beyond anything; none is a claim.
    let noise = at(100.0);
    let mut a = RecordData::of(Metric::Throughput, &noise);
    let mut b = RecordData::of(Metric::Throughput, &at(97.5));
    assert!(compare_record_data(&a, &b, Some(0.001)).figures[0].fails);
    for size in 200..260 {
        let cell = cell(Family::Ipv4, size);
        for data in [&mut a, &mut b] {
            data.cells.push(cell.clone());
            let runs = (0..).zip(&noise);
            data.runs.extend(runs.map(|(block, figure)| run(block, &cell, Metric::Throughput, *figure)));
        }
    }
    let found = compare_record_data(&a, &b, Some(0.001));
    let first = &found.figures[0];
    assert!(first.effect.as_ref().unwrap().interval95.high < 0.999, "{first:?}");
    assert!(first.change != Change::Worse && !first.fails, "{first:?}");
}

#[test]
fn vanished_figure_fails_the_allowed_change() {
    let a = RecordData::of(Metric::Throughput, &at(100.0));
    let mut b = RecordData::of(Metric::Throughput, &at(100.0));
    b.runs = b.runs.into_iter().map(|run| invalid(run, "family is ipv6")).collect();
    let there = compare_record_data(&a, &b, Some(0.05)).figures.remove(0);
    assert_eq!(there.change, Change::Nothing("B: no run is valid: family is ipv6".into()));
    assert!(there.fails && there.effect.is_none());
    assert!(
        !compare_record_data(&b, &a, Some(0.05)).figures[0].fails,
        "what the first one has not cannot be lost"
    );
    let stopped = one(Metric::Throughput, &at(100.0), &[0.0, 100.0], Some(0.05));
    assert!(stopped.fails && matches!(stopped.change, Change::Nothing(_)), "{stopped:?}");
    assert!(!one(Metric::Throughput, &at(100.0), &[100.0], None).fails);
}

#[test]
fn compares_what_both_have_and_names_the_rest() {
    let mut a = RecordData::of(Metric::Throughput, &at(100.0));
    let mut b = RecordData::of(Metric::Throughput, &at(100.0));
    let small = cell(Family::Ipv4, 64);
    let large = cell(Family::Ipv4, 1024);
    a.cells.insert(0, small.clone());
    b.cells.push(large.clone());
    // By a generator's bias nothing is compared.
    a.probes = stream(&[Metric::Loss, Metric::Throughput, Metric::GeneratorTxError]);
    b.probes = stream(&[Metric::Throughput, Metric::Jitter, Metric::GeneratorTxError]);
    let found = compare_record_data(&a, &b, None);
    assert_eq!(found.figures.len(), 1);
    assert_eq!(found.only_a, OnlyInOne { cells: vec![small], metrics: vec![Metric::Loss] });
    assert_eq!(found.only_b, OnlyInOne { cells: vec![large], metrics: vec![Metric::Jitter] });
}

fn compare_by(a: &RecordData, b: &RecordData, metrics: &[Metric]) -> Result<(), NothingInCommon> {
    between([&a.campaign(), &b.campaign()], ["a", "b"], metrics, None).map(drop)
}

#[test]
fn nothing_in_common_is_said() {
    let a = RecordData::of(Metric::Throughput, &at(100.0));
    let mut b = RecordData::of(Metric::Throughput, &at(100.0));
    assert_eq!(compare_by(&a, &b, &[Metric::Throughput]), Ok(()));
    assert_eq!(compare_by(&a, &b, &[Metric::Rtt]), Err(NothingInCommon::Metrics));
    b.probes = stream(&[Metric::Jitter]);
    assert_eq!(compare_by(&a, &b, &[]), Err(NothingInCommon::Metrics));
    b.cells[0].transport = Transport::Tcp;
    assert_eq!(compare_by(&a, &b, &[]), Err(NothingInCommon::Cells));
}

#[test]
fn the_places_are_told_apart() {
    let a = RecordData::of(Metric::CpuSender, &at(100.0));
    let mut b = RecordData::of(Metric::CpuSender, &at(50.0));
    assert_eq!(compare_record_data(&a, &b, None).differences, []);
    b.link_config = link_config(Some(Rate(100_000_000)));
    b.link_config.offloads = true;
    b.scope = CpuScope::Processors;
    b.probes[0].length = Length::Time(2_000_000);
    let found = compare_record_data(&a, &b, None);
    let differences: Vec<[&str; 3]> =
        found.differences.iter().map(|d| [d.what.as_str(), d.a.as_str(), d.b.as_str()]).collect();
    assert_eq!(
        differences,
        [
            ["testbed.rate", "no limit", "100 Mbit/s"],
            ["testbed.offloads", "off", "on"],
            ["CPU scope", "shared", "processors"],
            ["probe.stream.length", "1 message", "2 ms"]
        ]
    );
    // CPU time of all hosts is not the CPU time of one.
    let unlike = Change::Nothing("CPU scope processors is not shared".into());
    assert_eq!(found.figures[0].change, unlike);
}

#[test]
fn losses_at_other_loads_are_not_compared() {
    let [a, b] = [0.1, 0.2].map(|loss| RecordData::of(Metric::FrameLossRate, &at(loss)));
    let found = compare_record_data(&a, &b, Some(0.05)).figures.remove(0);
    let unlike = Change::Nothing("its load is that of each record's own fastest arm".into());
    assert_eq!((found.change, found.fails), (unlike, false));
}

#[test]
fn p_is_adjusted_for_all_figures() {
    let mut a = RecordData::of(Metric::Throughput, &[]);
    a.cells = (0..10).map(|i| cell(Family::Ipv4, 100 + i)).collect();
    let mut b = RecordData::of(Metric::Throughput, &[]);
    b.cells = a.cells.clone();
    let wander = [3.0, 2.6, 2.8, 3.3, 3.1, 2.9];
    for (place, cell) in a.cells.iter().enumerate() {
        for block in 0..6 {
            let figure = wander[(place + block) % 6];
            a.runs.push(run(block as u32, cell, Metric::Throughput, figure));
            b.runs.push(run(block as u32, cell, Metric::Throughput, figure * (1.0 + 0.5 * place as f64)));
        }
    }
    let found = compare_record_data(&a, &b, None).figures;
    let effects: Vec<&Unpaired> = found.iter().map(|figure| figure.effect.as_ref().unwrap()).collect();
    let adjusted = benjamini_hochberg(&effects.iter().map(|e| e.p).collect::<Vec<_>>());
    assert_eq!(effects.iter().map(|e| e.adjusted_p).collect::<Vec<_>>(), adjusted);
    assert!(
        found.iter().all(|figure| (figure.change == Change::Better)
            == (figure.effect.as_ref().unwrap().adjusted_p <= 0.025))
    );
    assert!(effects.iter().any(|effect| effect.adjusted_p > effect.p));
    // What is claimed has a range, wider than the interval of one figure alone.
    let claimed = effects.iter().filter(|effect| effect.adjusted_p <= 0.025);
    let mut claims = 0;
    for effect in claimed {
        let range = effect.claimed_interval.expect("claims have ranges");
        assert!(effect.interval95.is_within(&range) && range.low > 1.0, "{effect:?}");
        claims += 1;
    }
    assert!(claims > 0);
    assert_eq!(effects.iter().filter(|effect| effect.claimed_interval.is_some()).count(), claims);
}

fn host(kernel: &str) -> HostFacts {
    HostFacts {
        agent_version: "0.1.0".into(),
        os: "Linux".into(),
        kernel: kernel.into(),
        machine: "x86_64".into(),
        cpu_model: "Example 9000".into(),
        cores: 2,
        memory_kib: 4 << 20,
        governor: None,
        clock_source: Some("tsc".into()),
        boot_id: Some(kernel.into()),
        time_namespace: None,
        virtualised: true,
        abilities: Default::default(),
        noise: None,
        cpu_quota: None,
        kept_settings: Vec::new(),
        machine_name: None,
    }
}

fn read_kernel(facts: &HostFacts) -> String {
    facts.kernel.clone()
}

#[test]
fn hosts_that_agree_are_told_once_and_others_by_name() {
    let mut hosts = [("left".to_owned(), host("6.1")), ("right".to_owned(), host("6.1"))];
    assert_eq!(by_host(&hosts, read_kernel), "6.1");
    hosts[1].1 = host("6.12");
    assert_eq!(by_host(&hosts, read_kernel), "left: 6.1, right: 6.12");
    assert_eq!(by_host(&[], read_kernel), "unknown");
}

#[test]
fn a_probes_ways_are_told_with_their_units() {
    assert_eq!(
        (
            Pacing::Schedule(500.0).to_string(),
            Length::Packets(10).to_string(),
            Length::Time(2_000_000).to_string()
        ),
        ("500 messages/s".to_owned(), "10 messages".to_owned(), "2 ms".to_owned())
    );
}
