//! Memory does not grow with the length of a run.

use crate::support;

use stacklab_model::Role;
use stacklab_store::Record;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::leftovers::Scene;
use support::program::{Program, code, require_root, signal};
use support::records::side;
use support::studies::TestStudy;

/// A flood of small packets in one family. The series is so fine that a long run exceeds its maximum length.
fn study(family: &str, packets: u64) -> TestStudy {
    TestStudy::new("endurance")
        .family(family)
        .transports(&["udp"])
        .sizes(&[64])
        .stream(&["throughput", "loss", "jitter", "one_way_delay"])
        .packets(u32::try_from(packets).unwrap())
        .warmup("20ms")
        .interval("2ms")
        .blocks(2)
}

const SHORT: u64 = 200_000;
/// Six million messages take about twenty-five seconds; one family has half as many. One byte kept of each is more than
/// [`GROWTH_KIB`].
const LONG: [(&str, u64); 2] = [("ipv6", 6_000_000), ("ipv4", 3_000_000)];

/// How much more memory a long run may take than a short run, and the maximum for any run.
const GROWTH_KIB: u64 = 2 * 1024;
const MAX_KIB: u64 = 64 * 1024;
/// Maximum rows of a series, for every length of run.
const MAX_ROWS: u64 = 4096;

/// Peaks of resident memory in KiB: coordinator, sender, receiver.
type Peaks = [(&'static str, u64); 3];

/// Does one run, and returns the peaks and the rows of its series.
fn peaks(family: &str, packets: u64) -> (Peaks, u64) {
    let program = Program::new();
    program.write("study.toml", study(family, packets).text());
    let scene = Scene::now();
    let start = Instant::now();
    let mut running = program.start(&["run", "study.toml", "--out", "x.stacklab"]);
    // A study has at least two blocks. One is enough here: the second is interrupted at its start.
    let mut coordinator = 0;
    while !running.stderr().contains("block 2/2") {
        assert!(running.is_running(), "it ended early:\n{}", running.stderr());
        assert!(start.elapsed() < Duration::from_secs(240), "{packets} packets take too long");
        coordinator = peak(running.pid()).unwrap_or(coordinator);
        sleep(Duration::from_millis(10));
    }
    coordinator = peak(running.pid()).unwrap_or(coordinator);
    signal(running.pid(), "INT");
    running.end(Duration::from_secs(10)).expect(code::INTERRUPTED);

    let record = Record::read(&program.work().join("x.stacklab")).unwrap();
    let runs = record.runs().unwrap();
    let mut run = runs.into_iter().find(|run| run.trial.block == 0).expect("the first block was measured");
    run.host_reports = record.host_reports(&run.trial).unwrap();
    let [sender, receiver] = [Role::Sender, Role::Receiver].map(|role| side(&run, role));
    let sent = sender.sent.measured;
    let received = receiver.received.measured;
    assert_eq!(sender.endpoint.family.name(), family);
    assert_eq!(sent, packets, "all are sent");
    assert!(received > packets / 10, "hardly any arrived: {received}");
    let rows = receiver.series.len() as u64;
    let [of_sender, of_receiver] =
        [sender, receiver].map(|side| side.peak_rss_kib.expect("an agent reports its peak"));
    let peaks = [("coordinator", coordinator), ("sender", of_sender), ("receiver", of_receiver)];
    println!(
        "{family}, {packets} packets, {received} arrived: KiB {peaks:?}, {rows} rows, {:?}",
        start.elapsed()
    );
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], Duration::from_secs(20));
    (peaks, rows)
}

/// A process's peak of resident memory, KiB; nothing if it has ended.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok())
}

#[test]
fn millions_of_packets_take_no_more_memory_than_a_few() {
    require_root();
    for (family, packets) in LONG {
        let (short, few_rows) = peaks(family, SHORT);
        let (long, rows) = peaks(family, packets);
        for ((process, little), (_, much)) in short.into_iter().zip(long) {
            assert!(little > 0 && much > 0, "{process}: no peak is known");
            assert!(much < MAX_KIB, "{family}: the {process} takes {much} KiB");
            assert!(
                much < little + GROWTH_KIB,
                "{family}: the {process} takes {little} KiB for {SHORT} packets, {much} KiB for {packets}"
            );
        }
        assert!(few_rows > 100, "{few_rows} rows: a series is kept");
        assert!((MAX_ROWS / 4..=MAX_ROWS).contains(&rows), "{rows} rows: as fine as can be, and no finer");
    }
}
