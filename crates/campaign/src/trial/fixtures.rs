//! Reports and figures for tests of pure functions.

use stacklab_model::{
    Buckets, Cell, Compared, DelayPoints, Delays, Drops, Endpoint, Family, HostReport, IntervalRow, Length,
    Metric, Pacing, Point, Probe, ProbeSpec, Received, Role, RunStatus, SizeOf, Transport, Trial, TrialSpec,
    Value,
};
use stacklab_trial::{Figures, Path};
use std::net::{IpAddr, Ipv4Addr};

/// A stream of datagrams over IPv6, on a schedule.
pub(crate) fn trial_and_spec() -> (Trial, TrialSpec) {
    let probe = Probe::Stream;
    let transport = Transport::Udp;
    let cell = Cell::new(Family::Ipv6, transport, SizeOf::Payload, 1400);
    let mut metrics = Vec::new();
    for metric in Metric::ALL {
        if metric.probe() == probe && metric.applies_to(transport) && !metric.is_generator_error() {
            metrics.push(*metric);
        }
    }
    let probe_spec = ProbeSpec {
        probe,
        pacing: Pacing::Schedule(100.0),
        length: Length::Time(10_000_000_000),
        warmup_ns: 0,
        interval_ns: 1_000_000_000,
        metrics,
    };
    let spec = TrialSpec::new(7, &cell, probe_spec);
    (Trial { block: 0, position: 0, cell, probe }, spec)
}

pub(crate) fn path() -> Path {
    let [sender, receiver] = [Ipv4Addr::new(198, 18, 0, 1); 2].map(|address| IpAddr::from(address).into());
    let mtu = 1500;
    let planned_mtu = true;
    let offloads = false;
    let rate = None;
    let shared = false;
    let nat = None;
    Path {
        sender,
        receiver,
        mtu,
        planned_mtu,
        offloads,
        rate,
        shared,
        nat,
        opener: None,
        customers: Vec::new(),
    }
}

/// A stream of datagrams with these reports; each figure is 1.
pub(crate) fn stream_of(host_reports: Vec<HostReport>) -> (TrialSpec, Figures) {
    let (_, spec) = trial_and_spec();
    let values = spec.probe.metrics.iter().map(|metric| (*metric, Value::Measured(1.0))).collect();
    let status = RunStatus::Valid;
    let drops = Drops::default();
    let warnings = Vec::new();
    (spec, Figures { status, values, drops, warnings, host_reports })
}

pub(crate) fn join_reasons(made: Figures) -> String {
    match made.status {
        RunStatus::Invalid(reasons) => reasons.join("; "),
        RunStatus::Valid => "valid".to_owned(),
    }
}

/// A receiver's report over ten seconds from its time 21 s on: delays of 1 ms, measured with a clock that gains.
pub(crate) fn make_receiver_report(offset_ns: i64, gained_ns_per_s: f64) -> HostReport {
    let address = "[2001:2::1]:5000".parse().unwrap();
    let looks = |second: u64| (1_000_000.0 + gained_ns_per_s * (second as f64 + 1.5)) as u64;
    let mut series = Vec::new();
    let mut least_delays = Vec::new();
    for second in 0..10 {
        let start_ns = second * 1_000_000_000;
        let delay_mean_ns = Some(looks(second) as f64);
        series.push(IntervalRow { start_ns, messages: 100, bytes: 100, delay_mean_ns });
        least_delays.push((start_ns + 500_000_000, looks(second)));
    }
    let compared = Some(Compared { offset_ns, bound_ns: 0, skew_ns_per_s: 0 });
    let endpoint = Endpoint {
        family: Family::Ipv6,
        transport: Transport::Udp,
        local: address,
        peer: address,
        interface: "st0".to_owned(),
        interface_mtu: 1500,
        path_mtu: None,
        offloads: Default::default(),
        congestion_control: None,
        options: Default::default(),
    };
    HostReport {
        received: Received {
            measured: 1000,
            first_ns: 21_000_000_000,
            last_ns: 31_000_000_000,
            least_delays,
            ..Received::default()
        },
        delays: Some(Delays {
            buckets: Buckets((0..10).map(|second| (looks(second), 100)).collect()),
            mean_ns: (0..10).map(looks).sum::<u64>() as f64 / 10.0,
            jitter_ns: None,
            jitter_rfc3550_ns: None,
        }),
        delay_points: Some(DelayPoints { compared, ..DelayPoints::between(Point::Call, Point::Kernel) }),
        series,
        ..HostReport::new(Role::Receiver, endpoint)
    }
}
