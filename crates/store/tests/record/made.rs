//! Records that the tests are about.

use stacklab_model::*;
use stacklab_store::{Campaign, HostRow, Record};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) fn campaign() -> Campaign {
    Campaign {
        program_version: "0.1.0".into(),
        created_unix_ns: 5,
        study_name: "a.toml".into(),
        study_text: "title = \"a\"".into(),
        scale: Some("quick".into()),
        settings: vec!["blocks.min=2".into()],
        seed: u64::MAX,
        testbed_description: "two hosts".into(),
        cpu_scope: CpuScope::Shared,
        sample_period_ns: None,
    }
}

pub(crate) fn host() -> HostRow {
    let facts = HostFacts {
        agent_version: "0.1.0".into(),
        os: "Linux".into(),
        kernel: "6".into(),
        machine: "x86_64".into(),
        cpu_model: String::new(),
        cores: 2,
        memory_kib: 1,
        governor: None,
        clock_source: Some("tsc".into()),
        boot_id: None,
        time_namespace: None,
        virtualised: true,
        abilities: BTreeMap::from([("a".into(), "yes".into())]),
        noise: Some(NoiseFloor {
            clock_read_ns: 24,
            clock_read_least_ns: 22,
            clock_step_ns: 1,
            timer_late: Some(Spread { median_ns: 50_000, p99_ns: 90_000 }),
            arrival_stamp: None,
            echoes: vec![EchoFloor {
                transport: Transport::Udp,
                family: Family::Ipv6,
                round_trip: Spread { median_ns: 6_000, p99_ns: 9_000 },
            }],
        }),
        cpu_quota: Some(CpuQuota { quota_us: 50_000, period_us: 100_000 }),
        kept_settings: vec!["accept_dad".into()],
        machine_name: None,
    };
    HostRow { name: "sender".into(), kind: "namespace".into(), since_unix_ns: 3, facts }
}

pub(crate) fn host_report(role: Role) -> HostReport {
    let endpoint = Endpoint {
        family: Family::Ipv6,
        transport: Transport::Tcp,
        local: "[2001:2::1]:5".parse().unwrap(),
        peer: "[2001:2::2]:6".parse().unwrap(),
        interface: "st0".into(),
        interface_mtu: 1500,
        path_mtu: Some(1500),
        offloads: Offloads::default(),
        congestion_control: Some("cubic".into()),
        options: SocketOptions { mss: Some(1428), ..SocketOptions::default() },
    };
    HostReport {
        io: Some(stacklab_model::Io::Send),
        sent: Sent { measured: 3, ..Sent::default() },
        delay_points: Some(DelayPoints::between(Point::Call, Point::Kernel)),
        delays: Some(Delays {
            buckets: Buckets(vec![(10, 2), (20, 1)]),
            mean_ns: 13.25,
            jitter_ns: Some(1.5),
            jitter_rfc3550_ns: None,
        }),
        series: vec![
            IntervalRow { start_ns: 0, messages: 2, bytes: 256, delay_mean_ns: Some(10.0) },
            IntervalRow { start_ns: 100, messages: 0, bytes: 0, delay_mean_ns: None },
        ],
        slices: vec![
            Slice { round: 0, messages: 3, first_ns: 5, last_ns: 9, cpu_ns: Some(7), ..Slice::default() },
            Slice { round: 1, at_first: 1, delay_ns: Some(8), jitter_ns: Some(0.5), ..Slice::default() },
            Slice { round: 2, waited_ns: Some(6), ..Slice::default() },
        ],
        tcp: Some(TcpInfo::default()),
        counters: Counters(BTreeMap::from([("udp.InDatagrams".into(), 7)])),
        socket_memory_kib: Some(64),
        peak_rss_kib: Some(1000),
        ..HostReport::new(role, endpoint)
    }
}

pub(crate) fn run(block: u32, position: u32, status: RunStatus) -> RunRecord {
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Schedule(1000.5),
        length: Length::Packets(3),
        warmup_ns: 1,
        interval_ns: 2,
        metrics: vec![Metric::Throughput],
    };
    let mut cell = Cell::new(Family::Ipv6, Transport::Tcp, SizeOf::Payload, 128);
    let spec = TrialSpec::new(9, &cell, probe);
    cell.replica = "a".into();
    (cell.settings.mtu, cell.settings.tuning.nodelay) = (Some(9000), Some(true));
    RunRecord {
        trial: Trial { block, position, cell, probe: Probe::Stream },
        spec,
        started_unix_ns: 1_800_000_000_000_000_000,
        wall_ns: 250,
        status,
        values: Values::from_iter([
            (Metric::Throughput, Value::Measured(0.1 + 0.2)),
            (Metric::Loss, Value::Missing("tcp".into())),
            (Metric::Jitter, Value::Invalid("clock".into())),
        ]),
        drops: Drops { sender_queue: 1, interface: 2, socket_buffer: 3, network: 4 },
        host_reports: vec![host_report(Role::Sender), host_report(Role::Receiver)],
        warnings: vec![Warning { code: "tick".into(), text: "coarse".into(), advice: "longer".into() }],
    }
}

/// A folder with a record of two runs.
pub(crate) fn record() -> (TempDir, PathBuf) {
    let (folder, path) = without_runs();
    let mut record = Record::open(&path).unwrap();
    record.put_run(&run(0, 0, RunStatus::Valid)).unwrap();
    record.put_run(&run(0, 1, RunStatus::Invalid(vec!["a reason".into()]))).unwrap();
    (folder, path)
}

/// A folder with a record of no run.
pub(crate) fn without_runs() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.stacklab");
    drop(Record::create(&path, &campaign()).unwrap());
    (folder, path)
}
