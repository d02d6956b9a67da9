use super::*;
use crate::fixtures::{campaign, cell, invalid, link_config, question, run, with_warnings};
use stacklab_model::{
    Cell, CpuQuota, Estimate, Family, Length, LinkConfig, Metric, Pacing, Probe, ProbeSpec, Rate, Transport,
    Verdict,
};

fn probe(probe: Probe, metrics: &[Metric]) -> ProbeSpec {
    ProbeSpec {
        probe,
        pacing: Pacing::Flood,
        length: Length::Packets(1),
        warmup_ns: 0,
        interval_ns: 1,
        metrics: metrics.to_vec(),
    }
}

fn of(link_config: &LinkConfig, cells: &[Cell], questions: &[Question], runs: &[RunRecord]) -> Findings {
    findings(&RecordedCampaign {
        cells,
        probes: &[
            probe(Probe::Stream, &[Metric::Throughput, Metric::Loss]),
            probe(Probe::Connect, &[Metric::ConnectTime]),
        ],
        ..campaign(link_config, questions, runs)
    })
}

#[test]
fn a_campaign_becomes_its_findings() {
    let four = cell(Family::Ipv4, 128);
    let six = cell(Family::Ipv6, 128);
    let link_config = link_config(Some(Rate(1_000_000_000)));
    let mut runs = Vec::new();
    for block in 0..8 {
        runs.push(run(block, &six, Metric::Throughput, 590.0 + f64::from(block)));
        runs.push(run(block, &four, Metric::Throughput, 650.0 + f64::from(block)));
    }
    runs.push(invalid(run(8, &six, Metric::Throughput, 1.0), "family is ipv4"));
    let questions = [question(Metric::Throughput, 0.02), question(Metric::Loss, 0.001)];
    let found = of(&link_config, &[four, six], &questions, &runs);

    assert_eq!((found.blocks, found.valid_runs), (9, 16));
    assert_eq!(found.invalid_runs, [(1, "family is ipv4".to_owned())]);
    // UDP cells: no connection metrics.
    assert_eq!(
        found.cells.iter().map(|cell| (cell.metric, cell.estimate.n)).collect::<Vec<_>>(),
        [(Metric::Throughput, 8), (Metric::Loss, 0), (Metric::Throughput, 8), (Metric::Loss, 0)]
    );
    let [throughput, loss] = &found.comparisons[..] else { panic!("two questions, two answers") };
    assert_eq!(throughput.verdict, Verdict::Better("ipv4".into()));
    assert_eq!(throughput.effect.as_ref().unwrap().pairs, 8);
    assert_eq!(throughput.baseline_estimate.mean, Some(653.5));
    let [baseline, candidate] = throughput.fitted.unwrap();
    assert!((candidate / baseline - throughput.effect.as_ref().unwrap().estimate).abs() < 1e-12);
    let explained = throughput.explained.as_ref().unwrap();
    assert!((explained.ratio.unwrap() - 194.0 / 214.0).abs() < 1e-9);
    assert!((explained.residual.unwrap() - 1.0).abs() < 0.01);
    assert_eq!(loss.verdict, Verdict::Nothing("ipv4: not recorded".into()));
    assert_eq!((loss.stop_reason, &loss.explained), (StopReason::Cap, &None));
}

#[test]
fn runs_that_were_sampled_give_no_verdict() {
    let four = cell(Family::Ipv4, 128);
    let six = cell(Family::Ipv6, 128);
    let runs: Vec<RunRecord> = (0..8)
        .flat_map(|block| {
            let figure = f64::from(block);
            [
                run(block, &six, Metric::Throughput, 590.0 + figure),
                run(block, &four, Metric::Throughput, 650.0 + figure),
            ]
        })
        .collect();
    let link_config = link_config(None);
    let questions = [question(Metric::Throughput, 0.02)];
    let cells = [four, six];
    let [whole, sampled] = [false, true].map(|is_sampled| {
        findings(&RecordedCampaign { cells: &cells, is_sampled, ..campaign(&link_config, &questions, &runs) })
    });
    assert_eq!(whole.comparisons[0].verdict, Verdict::Better("ipv4".into()));
    assert!(matches!(&sampled.comparisons[0].verdict, Verdict::Nothing(why) if why.contains("sampled")));
    assert!(matches!(&sampled.overall[0].verdict, Verdict::Nothing(_)) && sampled.is_sampled);
    assert!(sampled.comparisons[0].effect.is_some());
}

/// The comparison of a campaign that ended so.
fn compare(runs: &[RunRecord], stop_reason: StopReason, settled: Option<Verdict>) -> Comparison {
    let link_config = link_config(None);
    let questions = [question(Metric::Throughput, 0.02)];
    let campaign = campaign(&link_config, &questions, runs);
    let campaign = RecordedCampaign { stop_reasons: &[stop_reason], settled: &[settled], ..campaign };
    findings(&campaign).comparisons.remove(0)
}

#[test]
fn before_the_end_only_settled_claims_are_made() {
    let four = cell(Family::Ipv4, 128);
    let six = cell(Family::Ipv6, 128);
    let runs: Vec<RunRecord> = (0..8)
        .flat_map(|block| {
            [
                run(block, &six, Metric::Throughput, 590.0 + f64::from(block)),
                run(block, &four, Metric::Throughput, 650.0 + f64::from(block)),
            ]
        })
        .collect();
    let better = Verdict::Better("ipv4".into());
    assert_eq!(compare(&runs, StopReason::Unfinished, None).verdict, Verdict::Inconclusive);
    assert_eq!(compare(&runs, StopReason::Unfinished, Some(better.clone())).verdict, better);
    let ended = compare(&runs, StopReason::Cap, None);
    assert_eq!(ended.verdict, better);
    assert!(ended.tests.unwrap().adjusted_p.is_some());
}

#[test]
fn a_tcp_cell_has_connection_metrics() {
    let tcp = Cell { transport: Transport::Tcp, ..cell(Family::Ipv6, 128) };
    let found =
        of(&link_config(None), std::slice::from_ref(&tcp), &[], &[run(0, &tcp, Metric::ConnectTime, 0.2)]);
    let times: Vec<&Estimate> =
        found.cells.iter().filter(|c| c.metric == Metric::ConnectTime).map(|c| &c.estimate).collect();
    assert_eq!(times.len(), 1);
    assert_eq!(times[0].mean, Some(0.2));
}

#[test]
fn a_campaign_without_runs_finds_nothing_and_says_so() {
    let cells = [cell(Family::Ipv4, 128), cell(Family::Ipv6, 128)];
    let found = of(&link_config(None), &cells, &[question(Metric::Throughput, 0.02)], &[]);
    assert_eq!((found.blocks, found.valid_runs), (0, 0));
    assert_eq!(found.comparisons[0].verdict, Verdict::Nothing("ipv4: not measured".into()));
    assert_eq!(found.comparisons[0].explained.as_ref().unwrap().ratio, None);
}

#[test]
fn invalid_runs_and_warnings_are_counted_by_frequency() {
    let cell = cell(Family::Ipv4, 128);
    let [first, second, third] = [0, 1, 2].map(|block| run(block, &cell, Metric::Loss, 0.0));
    let runs = [
        invalid(with_warnings(first, &["tick", "tick"]), "b"),
        invalid(with_warnings(second, &["load", "tick"]), "a"),
        invalid(third, "b"),
    ];
    let found = of(&link_config(None), &[], &[], &runs);
    assert_eq!(found.invalid_runs, [(2, "b".to_owned()), (1, "a".to_owned())]);
    let said: Vec<_> = found.warnings.iter().map(|(n, w)| (*n, w.code.as_str())).collect();
    assert_eq!(said, [(2, "tick"), (1, "load")]);
}

#[test]
fn the_order_of_the_runs_does_not_matter() {
    let cells = [cell(Family::Ipv4, 128), cell(Family::Ipv6, 128)];
    let mut runs: Vec<RunRecord> = (0..20)
        .map(|i| run(i / 2, &cells[i as usize % 2], Metric::Throughput, 100.0 + f64::from(i) * 0.37))
        .collect();
    let questions = [question(Metric::Throughput, 0.02)];
    let before = of(&link_config(None), &cells, &questions, &runs);
    runs.reverse();
    assert_eq!(of(&link_config(None), &cells, &questions, &runs), before);
}

#[test]
fn a_host_is_told_in_a_sentence() {
    let facts = HostFacts {
        agent_version: "0.1.0".into(),
        os: "Linux".into(),
        kernel: "6.12.0".into(),
        machine: "x86_64".into(),
        cpu_model: "Example 9000".into(),
        cores: 2,
        memory_kib: 4 << 20,
        governor: None,
        clock_source: Some("tsc".into()),
        boot_id: None,
        time_namespace: None,
        virtualised: true,
        abilities: BTreeMap::new(),
        noise: None,
        cpu_quota: None,
        kept_settings: Vec::new(),
        machine_name: None,
    };
    assert_eq!(
        host_sentence("left", &facts),
        "left: Linux 6.12.0 x86_64, Example 9000, 2 cores, 4.0 GiB, clock tsc, virtualised"
    );
}

#[test]
fn quota_and_kept_settings_are_constraints() {
    let facts = HostFacts {
        cores: 2,
        cpu_quota: Some(CpuQuota { quota_us: 100_000, period_us: 100_000 }),
        kept_settings: vec!["accept_dad".to_owned(), "accept_ra".to_owned()],
        ..HostFacts::default()
    };
    let hosts = [("sender".to_owned(), facts), ("elsewhere".to_owned(), HostFacts::default())];
    let link_config = link_config(None);
    let found = findings(&RecordedCampaign {
        hosts: &hosts,
        throttled_us: 15_800_000,
        ..campaign(&link_config, &[], &[])
    });
    assert_eq!(
        found.constraints,
        [
            "sender: this container may use 1.0 of 2 processors and was held back 15.8 s while measuring; raise its \
             quota for narrower intervals",
            "sender: settings that could not be made in this container: accept_dad, accept_ra; the kernel's \
             defaults were kept",
        ]
    );
}

#[test]
fn every_question_of_a_large_campaign_is_answered() {
    let cells: Vec<Cell> =
        (0..100).flat_map(|i| [Family::Ipv4, Family::Ipv6].map(|family| cell(family, 100 + i))).collect();
    let mut runs = Vec::new();
    for block in 0..50 {
        for cell in &cells {
            let wanders = 0.01 * f64::from((block + cell.size) % 3);
            runs.push(run(block, cell, Metric::Throughput, 100.0 + wanders));
        }
    }
    let questions: Vec<Question> = cells
        .chunks(2)
        .map(|pair| Question {
            baseline: pair[0].clone(),
            candidate: pair[1].clone(),
            ..question(Metric::Throughput, 0.02)
        })
        .collect();
    let found = of(&link_config(None), &cells, &questions, &runs);
    assert_eq!(found.comparisons.len(), questions.len());
    assert!(found.comparisons.iter().all(|c| c.verdict == Verdict::Equivalent));
}
