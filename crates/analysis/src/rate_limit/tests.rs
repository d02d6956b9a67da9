mod airtime;

use super::*;
use crate::comparison::Paired;
use crate::fixtures::{link_config, question};
use stacklab_model::{Mechanism, Rate, Scale, Shared, SizeOf, Transport};

fn with(metric: Metric, transport: Transport, size_of: SizeOf, size: u32) -> Question {
    let mut question = question(metric, 0.02);
    for cell in [&mut question.baseline, &mut question.candidate] {
        cell.transport = transport;
        cell.size_of = size_of;
        cell.size = size;
    }
    question
}

fn explain(
    question: &Question,
    effect: Option<&Effect>,
    means: [Option<f64>; 2],
    link_config: &LinkConfig,
) -> Option<Explained> {
    RateLimit::Link(&Topology::Link, link_config).explain(question, effect, means)
}

fn ratio(question: &Question) -> f64 {
    explain(question, None, [None, None], &link_config(Some(Rate(1_000_000_000)))).unwrap().ratio.unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn packets_of_their_own_follow_the_closed_forms() {
    use Transport::{Tcp, Udp};
    for size in [64, 128, 512, 1408] {
        let p = f64::from(size);
        for metric in [Metric::Throughput, Metric::MessageRate] {
            close(ratio(&with(metric, Udp, SizeOf::Payload, size)), (p + 66.0) / (p + 86.0));
            close(ratio(&with(metric, Tcp, SizeOf::Payload, size)), (p + 90.0) / (p + 110.0));
        }
    }
    // Fragments: both families need two, 895.10 against 925.30 Mbit/s.
    close(ratio(&with(Metric::Throughput, Udp, SizeOf::Write, 1536)), 1660.0 / 1716.0);
}

#[test]
fn joined_tcp_writes_are_full_segments() {
    let expected = 1428.0 / 1448.0;
    for size in [64, 1000, 8192] {
        let question = with(Metric::Throughput, Transport::Tcp, SizeOf::Write, size);
        close(ratio(&question), expected);
        let explained = explain(&question, None, [None, None], &link_config(Some(Rate(1_000_000)))).unwrap();
        assert!(explained.because.contains("joined to full segments"), "{}", explained.because);
    }
}

#[test]
fn a_cells_own_mtu_and_segment_size_count() {
    let mut question = with(Metric::Throughput, Transport::Tcp, SizeOf::Write, 8192);
    question.candidate = question.baseline.clone();
    question.candidate.settings.mtu = Some(9000);
    // IPv4: full segments of 1448 bytes in 1538 of wire, against 8948 in 9038.
    close(ratio(&question), (8948.0 / 9038.0) / (1448.0 / 1538.0));
    question.candidate.settings = Shared::default();
    question.candidate.settings.tuning.mss = Some(512);
    close(ratio(&question), (500.0 / 590.0) / (1448.0 / 1538.0));
}

#[test]
fn tunnel_headers_are_explained_and_shrink_segments() {
    let mut question = with(Metric::Throughput, Transport::Udp, SizeOf::Write, 1408);
    question.baseline.family = stacklab_model::Family::Ipv6;
    question.baseline.settings.mechanism = Some(Mechanism::Native);
    question.candidate.settings.mechanism = Some(Mechanism::SixInFour);
    close(ratio(&question), (1408.0 + 86.0) / (1408.0 + 106.0));
    let explained = explain(&question, None, [None, None], &link_config(Some(Rate(1_000_000)))).unwrap();
    assert_eq!(
        explained.because,
        "ipv6 1408 B in 1514 B of wire by 6in4, against ipv6 1408 B in 1494 B of wire"
    );
    for cell in [&mut question.baseline, &mut question.candidate] {
        cell.transport = Transport::Tcp;
    }
    // Full segments: 1428 bytes against 1408, in a full frame each.
    close(ratio(&question), 1408.0 / 1428.0);
}

#[test]
fn frames_of_one_size_differ_in_payload_not_in_rate() {
    let throughput = with(Metric::Throughput, Transport::Udp, SizeOf::Frame, 512);
    close(ratio(&throughput), (512.0 - 66.0) / (512.0 - 46.0));
    close(ratio(&with(Metric::MessageRate, Transport::Udp, SizeOf::Frame, 512)), 1.0);
}

#[test]
fn residual_is_measured_ratio_over_explained_ratio() {
    let question = with(Metric::Throughput, Transport::Udp, SizeOf::Payload, 128);
    // 659.79 and 598.13 Mbit/s are the limits; both arms at 95 %.
    let effect = Paired::of(Scale::Ratio, &[(626.8, 568.2), (626.8, 568.2)]).unwrap().effect();
    let link_config = link_config(Some(Rate(1_000_000_000)));
    let explained = explain(&question, Some(&effect), [Some(626.8), Some(568.2)], &link_config).unwrap();
    close(explained.ratio.unwrap(), 194.0 / 214.0);
    close(explained.residual.unwrap(), 568.2 / 626.8 * 214.0 / 194.0);
    assert_eq!(explained.because, "ipv6 128 B in 214 B of wire, against ipv4 128 B in 194 B of wire");
}

#[test]
fn link_limit_is_known_without_a_comparison() {
    let cell = with(Metric::Throughput, Transport::Udp, SizeOf::Payload, 128).baseline;
    let gigabit = link_config(Some(Rate(1_000_000_000)));
    close((limit(&cell, Metric::Throughput, &Topology::Link, &gigabit).unwrap() * 100.0).round(), 65979.0);
    assert_eq!(limit(&cell, Metric::Rtt, &Topology::Link, &gigabit), None);
    assert_eq!(limit(&cell, Metric::Throughput, &Topology::Link, &link_config(None)), None);
}

#[test]
fn without_a_link_rate_headers_explain_nothing() {
    let question = with(Metric::MessageRate, Transport::Udp, SizeOf::Payload, 128);
    let explained = explain(&question, None, [Some(1.0), Some(1.0)], &link_config(None)).unwrap();
    assert_eq!((explained.ratio, explained.residual), (None, None));
    assert!(explained.because.starts_with(
        "no rate limit on the link: header sizes cannot explain the difference in message rate"
    ));
}

#[test]
fn on_a_link_that_is_not_full_headers_explain_nothing() {
    let question = with(Metric::Throughput, Transport::Udp, SizeOf::Payload, 128);
    let link_config = link_config(Some(Rate(1_000_000_000)));
    for (baseline, candidate, is_explained) in [(0.91, 0.91, true), (0.5, 0.91, false), (0.91, 0.5, false)] {
        let means = [Some(baseline * 659.79), Some(candidate * 598.13)];
        let found = explain(&question, None, means, &link_config).unwrap();
        assert_eq!(found.ratio.is_some(), is_explained, "{means:?}");
    }
}

#[test]
fn what_does_not_fit_is_said_and_not_computed() {
    let frame = with(Metric::Throughput, Transport::Udp, SizeOf::Frame, 64);
    let explained = explain(&frame, None, [None, None], &link_config(Some(Rate(1_000_000)))).unwrap();
    assert_eq!(explained.because, "a frame of 64 bytes has no room for ipv6 payload");
    let small = LinkConfig { mtu: 40, ..link_config(Some(Rate(1_000_000))) };
    let message = with(Metric::Throughput, Transport::Tcp, SizeOf::Write, 64);
    assert_eq!(explain(&message, None, [None, None], &small).unwrap().ratio, None);
}

#[test]
fn other_metrics_are_not_explained() {
    let question = with(Metric::Rtt, Transport::Udp, SizeOf::Payload, 128);
    assert_eq!(explain(&question, None, [None, None], &link_config(Some(Rate(1_000_000)))), None);
}
