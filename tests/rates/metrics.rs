//! Metrics that can be checked against arithmetic or against each other, with a stream that fills a link.

use crate::support;

use stacklab_model::{Metric, Role, RunRecord, Value};
use stacklab_store::Record;
use support::others::allowed;
use support::program::{Program, code, require_root};
use support::records::{figure, runs, side};
use support::studies::TestStudy;

fn study() -> TestStudy {
    TestStudy::new("What a full link costs")
        .rate("100 Mbit/s")
        .offloads(false)
        .families()
        .transports(&["tcp"])
        .size_of("payload")
        .sizes(&[1408])
        .stream(&METRICS)
        .time("1s")
        .warmup("200ms")
        .schedule("sequential")
        .blocks(3)
        .set("blocks.target", "2 %")
        .compare_families_within("2 %")
}

const METRICS: [&str; 22] = [
    "throughput",
    "transfer_time_ratio",
    "tcp_efficiency",
    "tcp_srtt",
    "buffer_delay",
    "memory_sockets",
    "cpu_sender",
    "cpu_sender_user",
    "sender_cpu_system",
    "cpu_sender_softirq",
    "cpu_generator_sender",
    "cpu_receiver",
    "cpu_receiver_user",
    "receiver_cpu_system",
    "cpu_receiver_softirq",
    "cpu_generator_receiver",
    "receiver_cpu_per_message",
    "sender_cpu_per_message",
    "cpu_per_gbit_sender",
    "cpu_per_gbit_receiver",
    "fairness",
    "pacing_error",
];

#[test]
fn a_full_link_costs_what_its_parts_cost() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    let outcome = program.run(&["run", "study.toml", "--out", "study.stacklab", "--seed", "1"]);
    let outcome = outcome.expect(code::DONE);
    let path = program.work().join("study.stacklab");
    let runs = runs(&path);
    assert_eq!(runs.len(), 6);
    for run in &runs {
        transfer(run);
        CPU_METRICS.iter().for_each(|metrics| check_cpu(run, metrics));
        missing(run);
    }
    // The figure is measured but may be zero: each processor holds up to 1 MiB that the kernel does not count
    // (stacklab-traffic's memory.rs tests the figure with more memory than that).
    let held: Vec<f64> = runs.iter().map(|run| figure(run, Metric::MemorySockets)).collect();
    println!("sockets held {held:?} KiB");
    assert!(held.iter().all(|kib| *kib < 64.0 * 1024.0), "of a link whose queue holds some MiB: {held:?}");

    let hosts = Record::read(&path).unwrap().hosts().unwrap();
    assert_eq!(hosts.len(), 2);
    for host in &hosts {
        let floor = host.facts.noise.clone().expect("an agent measures its noise floor");
        println!("{}: {floor}", host.name);
        assert_eq!(floor.echoes.len(), 4, "{floor:?}");
        assert!(floor.clock_read_ns > 0 && floor.timer_late.is_some() && floor.arrival_stamp.is_some());
    }
    // One kernel has both hosts, and is measured once.
    assert_eq!(hosts[0].facts.noise, hosts[1].facts.noise);
    let lines = outcome.stdout.lines().filter(|line| line.starts_with("instrument ")).count();
    assert_eq!(lines, 1, "{outcome}");
}

/// RFC 6349's metrics on a link without other traffic, with a stream of nearly full segments.
fn transfer(run: &RunRecord) {
    let [ratio, efficiency, delay] = [Metric::TransferTimeRatio, Metric::TcpEfficiency, Metric::BufferDelay]
        .map(|metric| figure(run, metric));
    println!("{}: ttr {ratio:.4}, efficiency {efficiency:.3} %, buffer delay {delay:.0} %", run.trial);
    // 1408 of at most 1448 (1428) bytes: 0.2 % (0.1 %) above 1. A link is held to its limit within 1 %.
    assert!((1.0 - allowed(0.01)..1.0 + allowed(0.1)).contains(&ratio), "{}: {ratio}", run.trial);
    assert!((99.5..=100.0).contains(&efficiency), "{}: {efficiency}", run.trial);
    let tcp = side(run, Role::Sender).tcp.clone().unwrap();
    let least = tcp.min_rtt_us.unwrap() as f64;
    let mean = tcp.srtt_mean_us.unwrap();
    assert!(least <= mean, "{}: the mean of {mean} us is below the least of {least} us", run.trial);
    assert!((delay - 100.0 * (mean / least - 1.0)).abs() < 1e-6 * delay.abs().max(1.0), "{}", run.trial);
}

/// The metrics of a host's CPU time.
struct CpuMetrics {
    role: Role,
    whole: Metric,
    user: Metric,
    kernel: Metric,
    softirq: Metric,
    generator: Metric,
    per_message: Metric,
    per_gbit: Metric,
}

const CPU_METRICS: [CpuMetrics; 2] = [
    CpuMetrics {
        role: Role::Sender,
        whole: Metric::CpuSender,
        user: Metric::CpuSenderUser,
        kernel: Metric::SenderCpuSystem,
        softirq: Metric::CpuSenderSoftirq,
        generator: Metric::CpuGeneratorSender,
        per_message: Metric::SenderCpuPerMessage,
        per_gbit: Metric::CpuPerGbitSender,
    },
    CpuMetrics {
        role: Role::Receiver,
        whole: Metric::CpuReceiver,
        user: Metric::CpuReceiverUser,
        kernel: Metric::ReceiverCpuSystem,
        softirq: Metric::CpuReceiverSoftirq,
        generator: Metric::CpuGeneratorReceiver,
        per_message: Metric::ReceiverCpuPerMessage,
        per_gbit: Metric::CpuPerGbitReceiver,
    },
];

/// The parts of a host's CPU time add up to the whole; the cost per packet and per bit agrees with it.
fn check_cpu(run: &RunRecord, metrics: &CpuMetrics) {
    let role = metrics.role;
    let found = |metric| figure(run, metric);
    let text = format!(
        "{} {role}: {} = {} + {} (softirq {}, generator {})",
        run.trial,
        found(metrics.whole),
        found(metrics.user),
        found(metrics.kernel),
        found(metrics.softirq),
        found(metrics.generator)
    );
    println!("{text}");
    let time = side(run, role).cpu.clone().unwrap();
    let window = time.window_ns as f64;
    let tick = 1e7 * 100.0 / window;
    assert!((found(metrics.whole) - found(metrics.user) - found(metrics.kernel)).abs() <= tick, "{text}");
    assert!(found(metrics.softirq) <= found(metrics.kernel) + tick, "{text}");
    assert!(found(metrics.whole) > 0.0, "{text}");
    // The kernel divides a process's time into user and system time by sampled ticks, and may count so little
    // user time as zero; the sum is exact.
    let own = (time.own_user_ns + time.own_system_ns) as f64 * 100.0 / window;
    assert!(own > 0.0 && found(metrics.generator) <= own, "{text}: the process had {own} in all");
    assert!((found(metrics.generator) - time.own_user_ns as f64 * 100.0 / window).abs() < 1e-9, "{text}");
    // Nanoseconds per packet divided by bits per packet are cores per Gbit/s.
    let bytes = f64::from(run.spec.message_bytes);
    let expected = found(metrics.per_message) / (bytes * 8.0) * 100.0;
    assert!(
        (found(metrics.per_gbit) / expected - 1.0).abs() < 1e-6,
        "{text}: {} {expected}",
        found(metrics.per_gbit)
    );
    // The windows of the CPU time and of the rate are nearly equal: a second of nearly 94 Mbit/s.
    let by_rate = found(metrics.whole) / (found(Metric::Throughput) / 1000.0);
    assert!(
        (found(metrics.per_gbit) / by_rate - 1.0).abs() < allowed(0.05),
        "{text}: {} {by_rate}",
        found(metrics.per_gbit)
    );
}

/// Figures that a flood of one flow cannot have are reported as missing.
fn missing(run: &RunRecord) {
    for metric in [Metric::Fairness, Metric::PacingError] {
        let value = &run.values[&metric];
        assert!(matches!(value, Value::Missing(_)), "{}: {metric} is {value:?}", run.trial);
    }
}
