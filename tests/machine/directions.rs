//! The same link forward, in reverse and both ways: the sender of each direction, and the rate of each direction.

use crate::support;

use stacklab_model::{
    Direction, Family, Length, LinkConfig, Metric, Pacing, Probe, ProbeSpec, Rate, Role, RunRecord,
    Transport, Value,
};
use std::collections::BTreeMap;
use support::link_rig::LinkRig;
use support::others::allowed;
use support::records::{figure, warns};

/// Goodput of Ethernet at 100 Mbit/s with 512 payload bytes per packet, calculated by hand: 512 of 578 bytes of wire
/// time for UDP over IPv4, 598 for UDP over IPv6, 602 for TCP over IPv4, 622 for TCP over IPv6.
const SIZE: u32 = 512;
const LIMITS: [(Family, Transport, f64); 4] = [
    (Family::Ipv4, Transport::Udp, 88.58),
    (Family::Ipv6, Transport::Udp, 85.62),
    (Family::Ipv4, Transport::Tcp, 85.05),
    (Family::Ipv6, Transport::Tcp, 82.32),
];

/// Maximum number of attempts for each figure. The fastest run of a link counts, because other load on the machine
/// only slows a run down.
const RUNS: usize = 30;

/// How far above its limit a stream may be on a quiet machine, as a share of it. If a TCP receiver does not get its
/// processor when the window opens, it reads earlier data inside the window. This may happen to at most this many
/// figures of one family.
const ABOVE_LIMIT: f64 = 0.01;
const ABOVE: usize = 2;

/// The smallest share of its limit that a stream must reach.
fn least(transport: Transport, what: &str) -> f64 {
    1.0 - match (transport, what.starts_with("both")) {
        (_, false) | (Transport::Udp, true) => allowed(0.02),
        // Each direction also carries the acknowledgements of the other direction's TCP: 90 or 110 bytes of wire time
        // for every two segments. A stream that had to share the link with the other stream would have half.
        (Transport::Tcp, true) => allowed(0.2),
    }
}

fn flood() -> ProbeSpec {
    ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Flood,
        length: Length::Time(400_000_000),
        warmup_ns: 150_000_000,
        interval_ns: 100_000_000,
        metrics: vec![Metric::Throughput],
    }
}

/// Checks that the sides belong to these senders (host 0 or 1), sender first. If only one host sends, each sender's
/// interface must have sent more than it received.
fn check_sides(run: &RunRecord, rig: &LinkRig, senders: &[usize]) {
    let addresses = rig.addresses(run.trial.cell.family);
    let seen: Vec<_> = run.host_reports.iter().map(|side| (side.role, side.endpoint.local.ip())).collect();
    let expected: Vec<_> = senders
        .iter()
        .flat_map(|from| [(Role::Sender, addresses[*from]), (Role::Receiver, addresses[1 - from])])
        .collect();
    assert_eq!(seen, expected, "{}", run.trial);
    let counters = &run.host_reports[0].counters;
    let out = counters.get("interface.tx_bytes");
    let back = counters.get("interface.rx_bytes");
    if senders.len() == 1 {
        assert!(out > 4 * back, "{}: {out} bytes left the sender and {back} came", run.trial);
    } else {
        assert!(out < 2 * back && back < 2 * out, "{}: {out} bytes left and {back} came", run.trial);
    }
}

#[test]
fn each_direction_fills_the_link_and_both_do_together() {
    let rate = Some(Rate(100_000_000));
    let mut rig = LinkRig::of(LinkConfig { rate, mtu: 1500, offloads: false });
    for (family, transport, limit) in LIMITS {
        let mut fastest: BTreeMap<&str, f64> = BTreeMap::new();
        let mut above = 0;
        let mut together = 0;
        for _ in 0..RUNS {
            let [forward, reverse, both] = [Direction::Forward, Direction::Reverse, Direction::Both]
                .map(|direction| rig.run_on_link((family, transport, SIZE), &flood(), direction));
            check_sides(&forward, &rig, &[0]);
            check_sides(&reverse, &rig, &[1]);
            check_sides(&both, &rig, &[0, 1]);
            for run in [&forward, &reverse] {
                let other = &run.values[&Metric::ThroughputReverse];
                assert!(matches!(other, Value::Missing(_)), "{}: {other:?}", run.trial);
            }
            together += u32::from(!warns(&both, "apart"));
            let figures = [
                ("forward", figure(&forward, Metric::Throughput)),
                ("reverse", figure(&reverse, Metric::Throughput)),
                ("both, forward", figure(&both, Metric::Throughput)),
                ("both, reverse", figure(&both, Metric::ThroughputReverse)),
            ];
            for (what, figure) in figures {
                let share = figure / limit;
                println!("{family} {transport} {what}: {figure:.2} Mbit/s, {share:.4} of the limit");
                if share < 1.0 + allowed(ABOVE_LIMIT) {
                    let fastest = fastest.entry(what).or_default();
                    *fastest = fastest.max(share);
                } else {
                    above += 1;
                    assert!(
                        transport == Transport::Tcp && above <= ABOVE,
                        "{family} {transport} {what}: {share:.4}"
                    );
                }
            }
            if together > 0
                && fastest.len() == 4
                && fastest.iter().all(|(what, share)| *share > least(transport, what))
            {
                break;
            }
        }
        assert!(together > 0, "{family} {transport}: no two streams were measured at the same time");
        for (what, share) in fastest {
            assert!(share > least(transport, what), "{family} {transport} {what}: {share:.4}");
        }
    }
}

#[test]
fn an_echo_in_reverse_is_begun_by_the_second_host() {
    let mut rig = LinkRig::of(LinkConfig { rate: None, mtu: 1500, offloads: false });
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied() {
            let probe = ProbeSpec {
                probe: Probe::Echo,
                pacing: Pacing::Lockstep,
                length: Length::Packets(200),
                warmup_ns: 5_000_000,
                interval_ns: 10_000_000,
                metrics: vec![Metric::Rtt],
            };
            let run = rig.run_on_link((family, transport, SIZE), &probe, Direction::Reverse);
            let [forward, back] = rig.addresses(family);
            assert_eq!(run.host_reports[0].endpoint.local.ip(), back);
            assert_eq!(run.host_reports[1].endpoint.local.ip(), forward);
            assert_eq!(run.host_reports[0].received.measured, 200);
            assert!(figure(&run, Metric::Rtt) > 0.0);
        }
    }
}

#[test]
fn round_trip_beside_a_stream_waits_in_its_queue() {
    // At 20 Mbit/s a full packet takes 0.6 ms; the queue holds many.
    let mut rig = LinkRig::of(LinkConfig { rate: Some(Rate(20_000_000)), mtu: 1500, offloads: false });
    for family in Family::ALL.iter().copied() {
        for direction in [Direction::Forward, Direction::Reverse] {
            let tcp = (family, Transport::Tcp, SIZE);
            let idle = rig.run_on_link(tcp, &echo(Probe::Echo, Pacing::Lockstep), direction);
            // A machine that stalls may open a connection too late; not every time.
            let loaded = (0..3)
                .map(|_| rig.run_on_link(tcp, &echo(Probe::EchoUnderLoad, Pacing::Flood), direction))
                .find(|run| !warns(run, "unloaded"));
            let loaded = loaded.expect("the stream did not cover the echo in any of three runs");
            let short = figure(&idle, Metric::Rtt);
            let long = figure(&loaded, Metric::RttUnderLoad);
            let p99 = loaded.values[&Metric::RttUnderLoadP99].measured();
            let load = figure(&loaded, Metric::LoadThroughput);
            println!(
                "{family} {direction}: rtt {short:.3} ms, beside {load:.1} Mbit/s {long:.3} ms, p99 {p99:?}"
            );
            assert!(long > 4.0 * short && long > short + 0.8, "{family} {direction}: {short} and {long} ms");
            assert!(load > 12.0, "{family} {direction}: the stream had {load} of 20 Mbit/s");
        }
    }
}

fn echo(probe: Probe, pacing: Pacing) -> ProbeSpec {
    ProbeSpec {
        probe,
        pacing,
        length: Length::Time(400_000_000),
        warmup_ns: 100_000_000,
        interval_ns: 100_000_000,
        metrics: vec![Metric::Rtt],
    }
}
