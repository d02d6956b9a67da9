//! On Wi-Fi.

use super::*;
use stacklab_model::Factor;

fn network() -> WifiConfig {
    let mut network = WifiConfig::default();
    network.settings.aggregation.frames = 8;
    network
}

fn explain(
    question: &Question,
    effect: Option<&Effect>,
    means: [Option<f64>; 2],
    network: &WifiConfig,
) -> Option<Explained> {
    RateLimit::Channel(network).explain(question, effect, means)
}

/// ipv6 against ipv4 over UDP.
fn families(metric: Metric, size: u32) -> Question {
    let mut question = question(metric, 0.02);
    for cell in [&mut question.baseline, &mut question.candidate] {
        cell.size = size;
    }
    question
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
}

#[test]
fn families_differ_by_their_symbols() {
    // The table of docs/wifi.md.
    for (size, expected) in [(128, 1.0), (384, 80.18 / 81.24), (640, 112.99 / 114.25), (1408, 1.0)] {
        for metric in [Metric::Throughput, Metric::MessageRate] {
            let found = explain(&families(metric, size), None, [None, None], &network()).unwrap();
            close(found.ratio.unwrap(), expected);
            assert_eq!(found.by, LimitedBy::Airtime);
        }
    }
}

#[test]
fn a_cells_limit_is_that_of_its_network() {
    let cell = families(Metric::Throughput, 1408).baseline;
    // Half of what one hop carries, by the table of docs/wifi.md.
    close(
        (limit(&cell, Metric::Throughput, &Topology::Wifi(network()), &link_config(None)).unwrap() * 100.0)
            .round(),
        8623.0,
    );
    assert_eq!(limit(&cell, Metric::Loss, &Topology::Wifi(network()), &link_config(None)), None);
    let tcp = Cell { transport: Transport::Tcp, ..cell.clone() };
    assert!(limit(&tcp, Metric::Throughput, &Topology::Wifi(network()), &link_config(None)).unwrap() > 80.0);
    let long = families(Metric::Throughput, 1473).baseline;
    assert_eq!(limit(&long, Metric::Throughput, &Topology::Wifi(network()), &link_config(None)), None);
}

#[test]
fn each_arm_has_its_own_network() {
    let mut question = families(Metric::Throughput, 1408);
    question.factor = Factor::WifiSecurity;
    question.candidate = question.baseline.clone();
    question.candidate.set(Factor::WifiSecurity, "open").unwrap();
    let found = explain(&question, None, [None, None], &network()).unwrap();
    close(found.ratio.unwrap(), 173.79 / 172.46);
    assert!(found.because.contains("of air, against ipv4 1408 B in 130.6 us"), "{}", found.because);
}

#[test]
fn what_is_left_is_the_stacks() {
    let question = families(Metric::Throughput, 384);
    let effect = Paired::of(Scale::Ratio, &[(40.0, 38.0), (40.0, 38.0)]).unwrap().effect();
    let found = explain(&question, Some(&effect), [Some(40.0), Some(38.0)], &network()).unwrap();
    close(found.residual.unwrap(), 0.95 / found.ratio.unwrap());
}

#[test]
fn a_channel_that_is_not_full_explains_nothing() {
    let question = families(Metric::Throughput, 1408);
    let found = explain(&question, None, [Some(70.0), Some(70.0)], &network()).unwrap();
    assert!(found.ratio.is_some());
    let found = explain(&question, None, [Some(70.0), Some(60.0)], &network()).unwrap();
    assert_eq!(found.ratio, None);
    assert!(found.because.starts_with("the channel was not full"), "{}", found.because);
}

#[test]
fn what_has_no_airtime_is_not_explained() {
    assert_eq!(explain(&families(Metric::Rtt, 128), None, [None, None], &network()), None);
    let long = families(Metric::Throughput, 1473);
    assert_eq!(explain(&long, None, [None, None], &network()).unwrap().ratio, None);
    let mut tcp = families(Metric::Throughput, 128);
    for cell in [&mut tcp.baseline, &mut tcp.candidate] {
        cell.transport = Transport::Tcp;
    }
    assert!(explain(&tcp, None, [None, None], &network()).unwrap().ratio.is_some());
}
