//! Hand-made findings for the tests: every verdict, both scales, explained ratios, missing values, invalid runs.

use stacklab_model::{
    Cell, CellEstimate, Comparison, Control, CpuScope, Effect, Estimate, ExactArm, ExactCell, ExactCounts,
    ExactPath, ExactProbe, ExactRow, Explained, Explanation, Factor, Family, Findings, Health, Interval,
    LimitedBy, Metric, Probe, Question, Rules, Scale, SizeOf, SocketKind, StackCost, StageCost, StageCosts,
    StopReason, Tests, Tracking, Transport, Verdict, Warning, Why,
};

pub(crate) fn cell(transport: Transport, family: Family, size: u32) -> Cell {
    Cell::new(family, transport, SizeOf::Payload, size)
}

fn around(middle: f64, half_width: f64) -> Interval {
    Interval { low: middle - half_width, high: middle + half_width }
}

pub(crate) fn estimate(mean: f64, half_width: f64) -> Estimate {
    Estimate {
        n: 8,
        mean: Some(mean),
        sd: Some(half_width * 1.196),
        median: Some(mean * 0.999),
        interval: Some(around(mean, half_width)),
        median_interval: Some(around(mean, half_width * 1.25)),
        ..Estimate::default()
    }
}

pub(crate) fn no_estimate(reason: &str) -> Estimate {
    Estimate { missing: Some(reason.to_owned()), ..Estimate::default() }
}

fn effect(scale: Scale, estimate: f64, half_width: f64) -> Effect {
    Effect {
        scale,
        pairs: 8,
        estimate,
        error: half_width / 2.57,
        degrees_of_freedom: 5.0,
        interval90: around(estimate, half_width * 0.8),
        interval95: around(estimate, half_width),
    }
}

/// Tests of a campaign that has ended.
pub(crate) fn tests() -> Tests {
    Tests {
        p: 0.0008,
        equivalence_p: 0.97,
        e: 310.0,
        equivalence_e: 0.0,
        adjusted_p: Some(0.0024),
        adjusted_equivalence_p: Some(1.0),
    }
}

/// ipv6 against ipv4: means, half-widths of the means, effect with its half-width, verdict.
pub(crate) fn compare_families(
    transport: Transport,
    size: u32,
    metric: Metric,
    means: [(f64, f64); 2],
    (estimated, half_width): (f64, f64),
    verdict: Verdict,
) -> Comparison {
    let [baseline, candidate] = [Family::Ipv4, Family::Ipv6].map(|family| cell(transport, family, size));
    let [baseline_estimate, candidate_estimate] = means.map(|(mean, half)| estimate(mean, half));
    let margin = if metric.scale() == Scale::Ratio { 0.02 } else { metric.difference_margin() };
    let effect = effect(metric.scale(), estimated, half_width);
    let is_claim = matches!(verdict, Verdict::Better(_) | Verdict::Equivalent);
    let claimed_interval = is_claim.then(|| around(estimated, half_width * 1.5));
    Comparison {
        question: Question { factor: Factor::Family, metric, baseline, candidate, margin },
        baseline_estimate,
        candidate_estimate,
        tests: Some(tests()),
        fitted: Some(means.map(|(mean, _)| mean)),
        effect: Some(effect),
        explained: None,
        claimed_interval,
        verdict,
        stop_reason: StopReason::Decided,
        more_blocks: None,
        unpaired: None,
        is_bound_wide: false,
        remarks: Vec::new(),
    }
}

fn explain_by_headers(mut comparison: Comparison, ratio: f64) -> Comparison {
    let residual = comparison.effect.as_ref().map(|effect| effect.estimate / ratio);
    comparison.explained = Some(Explained {
        by: LimitedBy::Headers,
        ratio: Some(ratio),
        residual,
        because: "headers".to_owned(),
    });
    comparison
}

fn better(level: &str) -> Verdict {
    Verdict::Better(level.to_owned())
}

/// An undecided comparison whose headers explain nothing.
fn not_full() -> Comparison {
    let means = [(21.5, 1.25), (21.31, 0.8)];
    let because =
        "the link was not full (an arm below 90 % of its goodput limit): another bottleneck set the pace";
    Comparison {
        stop_reason: StopReason::Cap,
        explained: Some(Explained {
            by: LimitedBy::Headers,
            ratio: None,
            residual: None,
            because: because.to_owned(),
        }),
        ..compare_families(
            Transport::Tcp,
            64,
            Metric::Throughput,
            means,
            (0.991, 0.031),
            Verdict::Inconclusive,
        )
    }
}

/// A comparison without a figure of the candidate.
fn without_candidate() -> Comparison {
    let reason = "the stack does not report it";
    let verdict = Verdict::Nothing(format!("ipv6: {reason}"));
    Comparison {
        candidate_estimate: no_estimate(reason),
        effect: None,
        tests: None,
        fitted: None,
        ..compare_families(Transport::Udp, 1408, Metric::Loss, [(0.0, 0.0), (0.0, 0.0)], (0.0, 0.0), verdict)
    }
}

/// A comparison of which some runs of the baseline have no figure.
fn partly_missing() -> Comparison {
    let means = [(0.0451, 0.0012), (0.0476, 0.0009)];
    let mut partly =
        compare_families(Transport::Udp, 128, Metric::Rtt, means, (1.0554, 0.021), better("ipv4"));
    partly.baseline_estimate.missing = Some("no arrivals".to_owned());
    partly
}

/// A comparison of each kind.
fn comparisons() -> Vec<Comparison> {
    use Metric::{CpuReceiver, Loss, Throughput};
    use Transport::{Tcp, Udp};
    let slower = compare_families(
        Tcp,
        128,
        Throughput,
        [(57.31, 0.05), (52.48, 0.04)],
        (0.9157, 0.0004),
        better("ipv4"),
    );
    let alike = compare_families(
        Tcp,
        1408,
        Throughput,
        [(92.81, 0.02), (91.59, 0.03)],
        (0.98686, 0.0005),
        Verdict::Equivalent,
    );
    vec![
        explain_by_headers(slower, 218.0 / 238.0),
        not_full(),
        explain_by_headers(alike, 1498.0 / 1518.0),
        partly_missing(),
        compare_families(Udp, 128, Loss, [(0.0, 0.0), (0.0215, 0.0031)], (0.0215, 0.0031), better("ipv4")),
        without_candidate(),
        compare_families(
            Udp,
            128,
            CpuReceiver,
            [(61.2, 4.4), (64.9, 5.1)],
            (1.0604, 0.0911),
            Verdict::Inconclusive,
        ),
    ]
}

/// The cells of these comparisons, and one that is in none.
pub(super) fn cells_of(comparisons: &[Comparison]) -> Vec<CellEstimate> {
    let mut cells: Vec<CellEstimate> = Vec::new();
    for comparison in comparisons {
        let question = &comparison.question;
        for (cell, estimate) in [
            (&question.baseline, &comparison.baseline_estimate),
            (&question.candidate, &comparison.candidate_estimate),
        ] {
            cells.push(CellEstimate {
                cell: cell.clone(),
                metric: question.metric,
                estimate: estimate.clone(),
            });
        }
    }
    cells.push(CellEstimate {
        cell: cell(Transport::Tcp, Family::Ipv6, 128),
        metric: Metric::Retransmits,
        estimate: estimate(2.5, 1.5),
    });
    cells
}

fn tick(text: &str) -> Warning {
    Warning { code: "tick".to_owned(), text: text.to_owned(), advice: "measure for longer".to_owned() }
}

/// A small campaign with an example of everything.
pub(crate) fn findings() -> Findings {
    let comparisons = comparisons();
    Findings {
        title: "IPv4 beside IPv6".to_owned(),
        record_name: None,
        is_resumable: false,
        version: "0.1.0".to_owned(),
        started_unix_ns: 1_700_000_000_123_456_789,
        seed: 42,
        blocks: 8,
        measured_ns: 24_000_000_000,
        valid_runs: 110,
        invalid_runs: vec![(2, "planned MTU 1500, observed 1280".to_owned())],
        testbed_description: "two namespaces on this kernel, one link of 100 Mbit/s, MTU 1500, offloads off"
            .to_owned(),
        hosts: vec![
            "left: Linux 6.12.0 x86_64, Example 9000, 2 cores, 4.0 GiB, clock tsc, virtualised".to_owned(),
        ],
        instruments: vec![
            "left: clock read 24 ns, timer late 58.3 us, loopback echo 6.1 us (udp ipv4), 6.5 us (udp ipv6), \
             8.2 us (tcp ipv4), 8.4 us (tcp ipv6)"
                .to_owned(),
        ],
        constraints: Vec::new(),
        cpu_scope: CpuScope::Shared,
        cells: cells_of(&comparisons),
        comparisons,
        overall: vec![],
        same_arm: vec![],
        carry_over: Vec::new(),
        frame_loss: None,
        loss_by_load: Vec::new(),
        rfc8219: None,
        arm_order: vec![],
        warnings: vec![
            (3, tick("the window had 9 ticks of the CPU clock")),
            (1, tick("the window had 7 ticks")),
        ],
        is_sampled: false,
        explanations: vec![],
        uncounted: vec![],
    }
}

/// ipv4 against itself: the figure of the arms, and the difference with its half-width.
pub(crate) fn control(
    transport: Transport,
    size: u32,
    metric: Metric,
    figure: f64,
    (estimated, half_width): (f64, f64),
) -> Control {
    let difference = effect(metric.scale(), estimated, half_width);
    let other = if metric.scale() == Scale::Ratio { figure * estimated } else { figure + estimated };
    Control {
        metric,
        transport,
        cell: cell(transport, Family::Ipv4, size),
        estimates: [figure, other].map(|mean| estimate(mean, 0.01 * mean)),
        fitted: [figure, other],
        effect: difference,
        p: 0.6,
    }
}

/// The same campaign, interleaved: ipv4 was also measured against itself.
pub(crate) fn with_controls() -> Findings {
    let same_arm = vec![
        control(Transport::Tcp, 64, Metric::Throughput, 21.5, (1.001, 0.0062)),
        control(Transport::Udp, 128, Metric::Rtt, 0.0451, (0.998, 0.0041)),
        control(Transport::Udp, 128, Metric::Loss, 0.0, (0.0, 0.0)),
    ];
    Findings { same_arm, ..findings() }
}

/// The same campaign, asking for no comparison.
pub(crate) fn without_comparisons() -> Findings {
    Findings { comparisons: Vec::new(), ..findings() }
}

/// Stage costs of ipv6 against ipv4 over udp: route lookup costs 74 ns more.
pub(crate) fn costs() -> StageCosts {
    StageCosts {
        cell: "stream udp 128 B payload".to_owned(),
        arms: ["ipv4", "ipv6"].map(str::to_owned),
        stages: vec![
            cost("route lookup", [326.0, 400.0], 6.0, Some(1e-9)),
            cost("ip output", [180.0, 220.0], 8.0, Some(0.001)),
            cost("copy", [300.0, 297.0], 5.0, Some(1.0)),
        ],
        unmapped: cost("unmapped", [2.0, 2.0], 0.5, None),
        not_sampled: cost("not sampled", [92.0, 103.0], 9.0, None),
        threads: cost("threads", [880.0, 1000.0], 4.0, None),
        outside: cost("outside them", [20.0, 22.0], 1.0, None),
        busy: cost("busy", [900.0, 1022.0], 4.0, None),
        functions: vec![cost("fib6_table_lookup", [0.0, 120.0], 4.0, Some(1e-9))],
        stacks: vec![
            stack(&["entry", "udp_sendmsg", "fib_table_lookup"], [3260, 0], [326.0, 0.0]),
            stack(&["entry", "udpv6_sendmsg", "fib6_table_lookup"], [0, 4000], [0.0, 400.0]),
            stack(&["user (stacklab)"], [4820, 5190], [482.0, 519.0]),
        ],
        health: Health {
            event: Default::default(),
            trials: 30,
            t95: 2.045,
            lock_ratio: 1.01,
            coverage: Some(0.9),
            overhead: 0.12,
            unmapped: 0.002,
            other_load: 0.03,
            samples: 17_270,
            messages: 20_000,
            lost: 0,
            throttled: 0,
            unmapped_functions: vec![],
        },
    }
}

fn cost(name: &str, ns: [f64; 2], error_ns: f64, adjusted_p: Option<f64>) -> StageCost {
    StageCost { name: name.to_owned(), ns, difference_ns: ns[1] - ns[0], error_ns, adjusted_p }
}

fn stack(functions: &[&str], samples: [u64; 2], ns: [f64; 2]) -> StackCost {
    StackCost { functions: functions.iter().copied().map(str::to_owned).collect(), samples, ns }
}

/// An explanation with these costs, and one without, for it was not made.
pub(crate) fn explanations() -> Vec<Explanation> {
    vec![
        explanation(128, Why::Costs(Box::new(costs()))),
        explanation(1408, Why::Unknown("the time for it was over".to_owned())),
    ]
}

fn explanation(size: u32, why: Why) -> Explanation {
    Explanation {
        probe: Probe::Stream,
        factor: Factor::Family,
        baseline: cell(Transport::Udp, Family::Ipv4, size),
        candidate: cell(Transport::Udp, Family::Ipv6, size),
        why,
        exact: None,
        programs: None,
    }
}

/// Counts of a pair.
pub(crate) fn exact_counts() -> ExactCounts {
    let arms = [Family::Ipv4, Family::Ipv6].map(|family| ExactArm {
        family,
        path: ExactPath::Loopback,
        size: 128,
        rules: 0,
        routes: 0,
        conntrack: Tracking::Off,
        firewall: Rules::default(),
        socket: SocketKind::Native,
    });
    let cell = ExactCell {
        probe: ExactProbe::Udp,
        arms,
        messages: 10_000,
        total: [30_000_123, 40_000_456],
        rounds: vec![[30_000_123, 40_000_456]],
        stages: vec![
            exact_row("ip output", None, [20_000_000, 30_000_330]),
            exact_row("copy", None, [10_000_000, 10_000_000]),
            exact_row("interrupt", None, [123, 126]),
        ],
        functions: vec![exact_row("ip_output / ip6_output", Some("ip output"), [20_000_000, 30_000_330])],
    };
    ExactCounts { qemu: "7.2.22".to_owned(), kernel: "6.1.0".to_owned(), cells: vec![cell] }
}

fn exact_row(name: &str, stage: Option<&str>, instructions: [u64; 2]) -> ExactRow {
    ExactRow { name: name.to_owned(), stage: stage.map(str::to_owned), instructions }
}
