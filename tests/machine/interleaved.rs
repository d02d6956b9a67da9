//! Interleaved trials: arms in turns of milliseconds, whose differences are those of neighbouring slices.

use crate::support;

use stacklab_model::{
    ArmSchedule, CpuScope, Factor, Family, HostReport, Metric, Probe, Role, RunRecord, Slice, Transport,
};
use stacklab_store::Record;
use std::collections::BTreeMap;
use std::time::Duration;
use support::leftovers::Scene;
use support::others::allowed;
use support::program::{Program, code, require_root, require_tool};
use support::records::{figure, measure, runs, side, trim_mean};
use support::studies::TestStudy;

/// Families interleaved over both transports, as floods, paced streams and echoes.
fn study() -> TestStudy {
    without_schedule().schedule("interleaved")
}

fn without_schedule() -> TestStudy {
    without_comparison().compare_families()
}

fn without_comparison() -> TestStudy {
    TestStudy::new("families in turns")
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[128])
        .stream(&STREAM_METRICS)
        .time("80ms")
        .warmup("10ms")
        .probe("paced", &["one_way_delay", "jitter"])
        .time("60ms")
        .warmup("10ms")
        .echo(&["rtt"])
        .time("60ms")
        .warmup("10ms")
        .blocks(3)
}

const STREAM_METRICS: [&str; 5] =
    ["throughput", "loss", "sender_cpu_per_message", "sender_cpu_system", "memory_sockets"];

/// Each run with the other arm of its trial: of the other family, or of the same cell against itself.
fn pairs(runs: &[RunRecord]) -> Vec<[&RunRecord; 2]> {
    let mut trials: BTreeMap<_, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        let cell = &run.trial.cell;
        let against_itself = !cell.replica.is_empty();
        let trial = (run.trial.block, run.trial.probe, cell.transport, cell.size, against_itself);
        trials.entry(trial).or_default().push(run);
    }
    fn both(mut arms: Vec<&RunRecord>) -> [&RunRecord; 2] {
        arms.sort_by_key(|run| (run.trial.cell.family, run.trial.cell.replica.clone()));
        let [one, other] = arms[..] else { panic!("{} arms of one trial", arms.len()) };
        assert_eq!(one.trial.position.abs_diff(other.trial.position), 1);
        assert!(one.trial.cell.family != other.trial.cell.family || !one.trial.cell.replica.is_empty());
        [one, other]
    }
    trials.into_values().map(both).collect()
}

/// The slices that a metric's figures are taken from.
fn slices(run: &RunRecord) -> &[Slice] {
    let role = if run.trial.probe == Probe::Echo { Role::Sender } else { Role::Receiver };
    &side(run, role).slices
}

/// The figure of each slice: messages per second on a link without a rate, or a delay. What was sent and never came is
/// worse than any.
fn figures(run: &RunRecord) -> Vec<Option<f64>> {
    let none = Slice::default();
    let all = slices(run);
    let mut figures = Vec::new();
    for (place, sent) in side(run, Role::Sender).slices.iter().enumerate() {
        let counted = all.get(place).unwrap_or(&none);
        let is_lost = sent.messages > 0;
        let delay = counted.delay_ns.map(|ns| ns as f64);
        figures.push(match run.trial.probe {
            Probe::Paced => delay,
            Probe::Echo => delay.or(is_lost.then_some(1e15)),
            _ if counted.messages > 0 => counted.arrival_rate(None),
            _ => is_lost.then_some(1e-15),
        });
    }
    figures
}

/// The 20 % trimmed mean.
#[test]
fn arms_take_turns_and_compare_neighbouring_slices() {
    require_root();
    let (outcome, runs) = measure(&study().text());
    // Two families, and two arms of one cell, of each transport and probe.
    assert_eq!(runs.len(), 3 * (2 + 2) * 2 * 3);
    for [four, six] in pairs(&runs) {
        let probe = four.trial.probe;
        let transport = four.trial.cell.transport;
        let both = [slices(four), slices(six)];
        assert!(both[0].len() >= 6 && both[1].len() >= 6, "{probe} {transport}: {both:?}");
        // No slice begins before the one before it has ended, and a round is over before the next one begins.
        let mut sent = Vec::new();
        for run in [four, six] {
            let slices = &side(run, Role::Sender).slices;
            sent.extend(slices.iter().map(|slice| (slice.first_ns, slice.last_ns, slice.round)));
        }
        sent.sort_unstable();
        for pair in sent.windows(2) {
            assert!(pair[0].1 <= pair[1].0 && pair[0].2 <= pair[1].2, "{probe} {transport}: {sent:?}");
        }
        // All that was sent in the measured part was sent in a slice.
        for run in [four, six] {
            let HostReport { sent, slices, .. } = side(run, Role::Sender);
            assert_eq!(slices.iter().map(|slice| slice.messages).sum::<u64>(), sent.measured);
        }
        let [of_four, of_six] = [four, six].map(|run| side(run, Role::Sender).slices.iter());
        let mut ratios = Vec::new();
        for ((four, six), (a, b)) in figures(four).into_iter().zip(figures(six)).zip(of_four.zip(of_six)) {
            ratios.extend(
                four.zip(six).map(|(four, six)| ((six / four).ln(), a.messages.min(b.messages) as f64)),
            );
        }
        let metric = match probe {
            Probe::Echo => Metric::Rtt,
            Probe::Paced => Metric::OneWayDelay,
            _ => Metric::Throughput,
        };
        let said = (figure(six, metric) / figure(four, metric)).ln();
        let share = if transport == Transport::Tcp && probe != Probe::Echo { 0.45 } else { 0.2 };
        assert!((said - trim_mean(ratios, share)).abs() < 1e-9, "{probe} {transport}: {said}");
    }
    for run in runs.iter().filter(|run| run.trial.probe == Probe::Stream) {
        assert_eq!(side(run, Role::Sender).cpu.as_ref().unwrap().scope, CpuScope::Threads);
        assert!(figure(run, Metric::SenderCpuPerMessage) > 0.0);
        // Per cent of one core, of a thread; the window ends with the last send call, the slice a little later.
        let system = figure(run, Metric::SenderCpuSystem);
        assert!(system > 0.0 && system < 110.0, "{}: {system} %", run.trial);
        // What is one for the whole host is not told of an arm.
        let memory = &run.values[&Metric::MemorySockets];
        assert!(format!("{memory:?}").contains("share the host's counters"), "{memory:?}");
    }
    // One schedule for both arms, at half the rate of the slower one's flood: none is late for long.
    for [four, six] in pairs(&runs).into_iter().filter(|pair| pair[0].trial.probe == Probe::Paced) {
        let sent = [four, six].map(|run| &side(run, Role::Sender).sent);
        let [of_four, of_six] = sent.map(|sent| sent.measured as f64);
        assert!((of_four / of_six - 1.0).abs() < 0.02, "{}: {of_four} beside {of_six}", four.trial);
        assert!(figure(four, Metric::Jitter) > 0.0 && !four.values.contains_key(&Metric::Throughput));
    }
    assert!(outcome.stdout.contains("CPU scope threads"), "{}", outcome.stdout);
}

#[test]
fn link_of_known_rate_shows_only_the_headers() {
    require_root();
    let study = TestStudy::new("headers in turns")
        .rate("100 Mbit/s")
        .families()
        .transports(&["udp"])
        .sizes(&[128, 1408])
        .stream(&["throughput"])
        .time("400ms")
        .warmup("50ms")
        .schedule("interleaved")
        .blocks(2)
        .compare_families();
    let (_, runs) = measure(&study.text());
    let pairs = pairs(&runs);
    assert_eq!(pairs.len(), 2 * (2 + 1));
    for [four, six] in pairs {
        let cell = &four.trial.cell;
        let headers = wire_bytes(four) / wire_bytes(six);
        let ratio = figure(six, Metric::Throughput) / figure(four, Metric::Throughput);
        println!("{} B: {ratio:.4}, headers alone {headers:.4}", cell.size);
        assert!(
            (ratio / headers - 1.0).abs() < allowed(0.03),
            "{}: {ratio}, headers alone {headers}",
            four.trial
        );
    }
}

/// Bytes of wire time of a datagram: Ethernet's 38 with preamble, gap and FCS, then the IP header, then UDP's.
fn wire_bytes(run: &RunRecord) -> f64 {
    let header = if run.trial.cell.family == Family::Ipv4 { 20.0 } else { 40.0 };
    f64::from(run.trial.cell.size) + 38.0 + header + 8.0
}

/// The mean rate of slices as counted, with what the link's token bucket let through at once, Mbit/s.
fn with_bursts(run: &RunRecord) -> f64 {
    let rates: Vec<f64> = slices(run).iter().filter_map(|slice| slice.arrival_rate(None)).collect();
    rates.iter().sum::<f64>() / rates.len() as f64 * f64::from(run.spec.message_bytes) * 8.0 / 1e6
}

#[test]
fn shaped_link_carries_no_more_than_headers_leave() {
    require_root();
    for megabits in [100, 500, 1000] {
        let study = TestStudy::new("the rate of a link")
            .rate(&format!("{megabits} Mbit/s"))
            .families()
            .transports(&["udp", "tcp"])
            .size_of("write")
            .sizes(&[1408])
            .stream(&["throughput"])
            .time("250ms")
            .warmup("50ms")
            .schedule("interleaved")
            .blocks(2)
            .compare_families();
        let (_, runs) = measure(&study.text());
        assert_eq!(runs.len(), 2 * (2 + 2) * 2);
        let mut best = BTreeMap::new();
        for run in runs {
            let cell = &run.trial.cell;
            let ip = if cell.family == Family::Ipv4 { 20.0 } else { 40.0 };
            // Ethernet's 38 bytes with preamble, gap and FCS; a TCP segment is full, and its header has timestamps.
            let share = match cell.transport {
                Transport::Udp => 1408.0 / (1408.0 + 8.0 + ip + 38.0),
                Transport::Tcp => (1500.0 - ip - 32.0) / (1500.0 + 38.0),
            };
            let [found, counted] = [figure(&run, Metric::Throughput), with_bursts(&run)]
                .map(|mbit| 100.0 * (mbit / (f64::from(megabits) * share) - 1.0));
            println!("{}: {found:+.2} % above {megabits} Mbit/s, {counted:+.2} % with bursts", run.trial);
            assert!(found < 0.5, "{} at {megabits} Mbit/s: {found} % above the limit", run.trial);
            if cell.transport == Transport::Udp {
                let best = best.entry(cell.family).or_insert(found);
                *best = found.max(*best);
            }
        }
        // A disturbed sender does not fill the link, and a connection need not.
        for (family, best) in best {
            let fills = best > -0.5 || best > -100.0 * allowed(0.005);
            assert!(fills, "{family} at {megabits} Mbit/s: {best} % above the limit");
        }
    }
}

/// Trials whose arms have testbeds of their own: each arm's sender has its time slots.
fn beside_study() -> TestStudy {
    TestStudy::new("testbeds in turns")
        .rate("50 Mbit/s")
        .family("ipv6")
        .transports(&["udp", "tcp"])
        .size_of("write")
        .sizes(&[1408])
        .echo(&["rtt"])
        .time("120ms")
        .warmup("20ms")
        .stream(&["throughput", "loss", "sender_cpu_per_message"])
        .time("300ms")
        .warmup("50ms")
        .schedule("interleaved")
        .blocks(2)
}

/// The arms of each trial whose arms have testbeds of their own.
fn beside(runs: &[RunRecord], arms: usize) -> Vec<Vec<&RunRecord>> {
    let mut trials: BTreeMap<u64, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs.iter().filter(|run| matches!(run.spec.schedule, ArmSchedule::TimeSlots(_))) {
        trials.entry(run.started_unix_ns).or_default().push(run);
    }
    // Two blocks, transports and probes.
    assert_eq!(trials.len(), 2 * 2 * 2);
    for trial in trials.values() {
        assert_eq!(trial.len(), arms);
        let all: Vec<usize> = trial.iter().map(|run| side(run, Role::Sender).slices.len()).collect();
        assert!(all[0] >= 8 && all.iter().all(|count| *count == all[0]), "{all:?} rounds");
    }
    trials.into_values().collect()
}

#[test]
fn testbeds_beside_each_other_never_send_at_once() {
    require_root();
    require_tool("tayga", "tayga");
    let study = beside_study()
        .topology("routed")
        .mechanisms(&["native", "nat64"])
        .stream(&["throughput", "loss", "sender_cpu_per_message", "link_bytes", "cpu_router1"])
        .compare(Factor::Mechanism, "native", "nat64");
    let (outcome, runs) = measure(&study.text());
    let trials = beside(&runs, 2);
    let mut slices = 0;
    let mut overlaps = Vec::new();
    for trial in &trials {
        let sent = trial.iter().flat_map(|run| side(run, Role::Sender).slices.iter());
        let sent = sent.filter(|slice| slice.messages > 0);
        let mut sent: Vec<_> = sent.map(|slice| (slice.first_ns, slice.last_ns, slice.round)).collect();
        sent.sort_unstable();
        let overlap = sent.windows(2).filter(|pair| pair[1].0 < pair[0].1 || pair[1].2 < pair[0].2);
        overlaps.extend(overlap.map(|pair| (trial[0].trial.to_string(), pair.to_vec())));
        slices += sent.len();
    }
    // A sender that was kept from its slot may send late. One such slice is more than 5 % of a trial.
    assert!(overlaps.len() as f64 <= allowed(0.05) * slices as f64, "of {slices} slices: {overlaps:?}");
    for trial in trials.iter().filter(|trial| trial[0].trial.probe == Probe::Stream) {
        for run in trial {
            // Each testbed's routers count its own packets, and both routers' time is one for all.
            if run.trial.cell.transport == Transport::Udp {
                assert_eq!(figure(run, Metric::LinkBytes), f64::from(1408 + 8 + 40), "{}", run.trial);
            }
            for metric in [Metric::CpuRouter1, Metric::SenderCpuPerMessage] {
                assert!(run.values[&metric].measured().is_none(), "{}: {metric}", run.trial);
            }
        }
        let [one, other] = [0, 1].map(|arm| figure(trial[arm], Metric::Throughput));
        // The headers on the middle link are the same.
        assert!((one / other - 1.0).abs() < allowed(0.05), "{}: {one}, {other} Mbit/s", trial[0].trial);
    }
    assert!(outcome.stdout.contains("A/A check, one arm against itself"), "{outcome}");
}

#[test]
fn guests_and_a_namespace_take_turns_by_own_clocks() {
    require_root();
    let study = beside_study().systems(&["namespace", "linux-6.1", "gvisor"]).compare(
        Factor::Os,
        "namespace",
        "linux-6.1",
    );
    let (_, runs) = measure(&study.text());
    for trial in beside(&runs, 3) {
        let strays = trial.iter().map(|run| side(run, Role::Receiver).received.strays);
        assert_eq!(strays.sum::<u64>(), 0, "{}", trial[0].trial);
        let first = &trial[0].trial;
        if first.probe == Probe::Stream && first.cell.transport == Transport::Udp {
            let figures: Vec<f64> = trial.iter().map(|run| figure(run, Metric::Throughput)).collect();
            let most = figures.iter().copied().fold(0.0, f64::max);
            let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(most / least - 1.0 < allowed(0.2), "{first}: {figures:?} Mbit/s");
        }
    }
}

#[test]
fn killed_campaign_has_all_arms_of_a_trial_or_none() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().blocks(40).text());
    let path = program.work().join("x.stacklab");
    let scene = Scene::now();
    let mut running = program.start(&["run", "study.toml", "--out", "x.stacklab", "--seed", "3"]);
    let waited = std::time::Instant::now();
    while Record::read(&path).and_then(|record| record.run_count()).unwrap_or(0) < 6 {
        assert!(waited.elapsed() < Duration::from_secs(60), "no run in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.kill();
    drop(running);
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], Duration::from_secs(2));
    let kept = runs(&path);
    assert_eq!(kept.len() % 2, 0, "{} runs", kept.len());
    assert_eq!(pairs(&kept).len(), kept.len() / 2);
    assert!(!kept.is_empty());
}

#[test]
fn arms_interleave_unless_a_figure_needs_its_own_host() {
    let program = Program::new();
    let paced_rate = "probe.paced.message_rate";
    let unsaid = without_schedule().set(paced_rate, 1000);
    let counts_less = unsaid.clone().stream(&STREAM_METRICS[..4]);
    for (study, arms) in
        [(counts_less, "interleaved"), (unsaid, "sequential"), (study().set(paced_rate, 1000), "interleaved")]
    {
        program.write("study.toml", study.text());
        let plan = program.run(&["plan", "study.toml"]).expect(code::DONE).stdout;
        assert!(plan.contains(&format!("Arms        {arms}\n")), "{plan}");
    }
}

#[test]
fn what_cannot_be_interleaved_is_refused_at_its_place() {
    let program = Program::new();
    let guests = without_comparison().schedule("interleaved").systems(&["namespace", "uml"]);
    for (study, place) in [
        (study().schedule("sequential"), "a share of the flood rate"),
        (study().stream(&STREAM_METRICS).packets(1000), "probe.stream ends after 1000 messages"),
        (without_schedule().set("blocks.slice", "5ms"), "`blocks.slice` is set"),
        (guests.compare(Factor::Os, "namespace", "uml"), "differ in os, and uml sleeps between its turns"),
        (study().set("blocks.slice", "15ms"), "a slice of 15 ms leaves probe.echo fewer than 5"),
        (study().schedule("intermixed"), "interleaved"),
    ] {
        program.write("study.toml", study.text());
        program.run(&["plan", "study.toml"]).expect(code::REQUEST).says(&[place]);
    }
}
