use super::*;
use crate::fixtures::{ends, host_reports, path, spec};
use crate::path::NatPath;
use crate::validate::packets::headers_each;
use stacklab_model::wifi::{Airtime, ChannelUse, NodeAirtime};
use stacklab_model::{Counters, Direction, Offloads, SocketKind, SocketOptions};

fn validate(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
    others: OtherTraffic,
) -> Vec<String> {
    transfer_rules(spec, path, &Ends { sender: sender.clone(), receiver: receiver.clone() }, others)
}

fn reasons(change: impl FnOnce(&mut TrialSpec, &mut HostReport, &mut HostReport)) -> Vec<String> {
    let mut all = Vec::new();
    let mut change = Some(change);
    // The change is applied to one case. The unchanged cases of both families and transports must be valid.
    for family in Family::ALL {
        for transport in Transport::ALL {
            let mut spec = spec(*family, *transport);
            let (mut sender, mut receiver) = host_reports(&spec);
            let reasons = validate(&spec, &path(*family), &sender, &receiver, OtherTraffic::None);
            assert_eq!(reasons, [""; 0]);
            if *transport == Transport::Tcp
                && let Some(change) = change.take()
            {
                change(&mut spec, &mut sender, &mut receiver);
                all = validate(&spec, &path(*family), &sender, &receiver, OtherTraffic::None);
            }
        }
    }
    all
}

#[test]
fn port_may_change_only_behind_a_stateful_translator() {
    let spec = spec(Family::Ipv4, Transport::Udp);
    let (sender, mut receiver) = host_reports(&spec);
    receiver.endpoint.peer.set_port(receiver.endpoint.peer.port() + 1);
    let reasons = validate(&spec, &translate_path(true), &sender, &receiver, OtherTraffic::None);
    assert_eq!(reasons, [""; 0]);
    let reasons = validate(&spec, &translate_path(false), &sender, &receiver, OtherTraffic::None);
    assert!(reasons[0].starts_with("the sender's flow is "), "{reasons:?}");
}

/// A path of IPv4 through a translator that changes no address.
fn translate_path(renumbers: bool) -> Path {
    let plain = path(Family::Ipv4);
    let nat = NatPath {
        destination: plain.receiver.ip(),
        source: plain.sender.ip(),
        path_mtus: [1500; 2],
        own_mtus: [1500; 2],
        renumbers,
    };
    Path { nat: Some(nat), ..plain }
}

#[test]
fn a_contradiction_of_each_kind_is_found_and_named() {
    let family = reasons(|_, sender, _| sender.endpoint.family = Family::Ipv6);
    assert_eq!(family, ["the sender's socket is ipv6, planned is ipv4"]);
    let mtu = reasons(|_, _, receiver| receiver.endpoint.interface_mtu = 9000);
    assert_eq!(mtu, ["the receiver's interface has MTU 9000, planned is 1500"]);
    let path_mtu = reasons(|_, sender, _| sender.endpoint.path_mtu = Some(1280));
    assert_eq!(path_mtu, ["the sender's path has MTU 1280, planned is 1500"]);
    let spec = spec(Family::Ipv6, Transport::Udp);
    let (mut sender, mut receiver) = host_reports(&spec);
    (sender.endpoint.path_mtu, receiver.endpoint.interface_mtu) = (Some(1280), 9000);
    let as_it_is = Path { planned_mtu: false, ..path(Family::Ipv6) };
    let proved = validate(&spec, &as_it_is, &sender, &receiver, OtherTraffic::None);
    assert_eq!(proved, [""; 0], "nobody planned another");
    let offloads = reasons(|_, sender, _| {
        sender.endpoint.offloads = Offloads { tso: Some(true), ..Offloads::default() };
    });
    assert_eq!(offloads, ["the sender has offloads on that were planned off: tso"]);
    let joined = reasons(|_, sender, _| {
        let tcp = sender.tcp.as_mut().unwrap();
        tcp.bytes_sent = tcp.bytes_sent.map(|bytes| bytes * 2);
    });
    assert_eq!(joined, ["a data segment holds 256.0 bytes, planned is 128 in each"]);
    let glued = reasons(|_, sender, _| {
        sender.counters.0.insert("interface.tx_packets".to_owned(), 30);
    });
    assert_eq!(glued, ["1001 messages left in 30 packets: they were coalesced"]);
    // TCP_INFO counts a segment again each time the host's own full queue refuses it.
    let refused = reasons(|_, sender, _| {
        let tcp = sender.tcp.as_mut().unwrap();
        (tcp.bytes_sent, tcp.data_segs_out) = (Some(1201 * 128), Some(1201));
    });
    assert_eq!(refused, [""; 0]);
    let flow = reasons(|_, _, receiver| receiver.endpoint.peer.set_port(9));
    assert_eq!(flow.len(), 1);
    assert!(flow[0].starts_with("the sender's flow is"), "{flow:?}");
    let silent = reasons(|_, _, receiver| receiver.received.measured = 0);
    assert_eq!(silent, ["no message arrived in the measured window"]);
    let transport = reasons(|_, sender, _| sender.endpoint.transport = Transport::Udp);
    assert_eq!(transport, ["the sender's socket is udp, planned is tcp"]);
}

#[test]
fn mapped_addresses_prove_the_family_of_packets() {
    assert_eq!(
        count_ipv6_packets(SocketKind::Ipv4Mapped),
        [
            "the sender counted 1001 packets of ipv6 and 0 of ipv4, planned is ipv4",
            "the receiver counted 1001 packets of ipv6 and 0 of ipv4, planned is ipv4",
        ]
    );
    // A socket of IPv4 sends nothing else.
    assert_eq!(count_ipv6_packets(SocketKind::Native), [""; 0]);
    let other = reasons(|spec, _, receiver| {
        spec.tuning.socket = Some(SocketKind::Native);
        receiver.endpoint.options.socket = Some(SocketKind::Ipv4Mapped);
    });
    assert_eq!(other[1..], ["the receiver's socket is ipv4-mapped, planned is native"]);
    // Behind a translator the receiver has an IPv6 address, which nothing maps.
    let (mut spec, [_, mut receiver]) = tuned();
    spec.tuning.socket = Some(SocketKind::Ipv4Mapped);
    receiver.endpoint.options.socket = Some(SocketKind::Native);
    assert!(receiver.endpoint.local.is_ipv6());
    assert_eq!(broken(option_rules(&spec, &receiver)), [""; 0]);
}

/// The reasons of a trial over IPv4 with sockets of this kind whose hosts counted packets of IPv6.
fn count_ipv6_packets(socket: SocketKind) -> Vec<String> {
    reasons(|spec, sender, receiver| {
        spec.tuning.socket = Some(socket);
        for side in [sender, receiver] {
            side.endpoint.options.socket = Some(socket);
            for counter in ["ip6.OutRequests", "ip6.InReceives"] {
                side.counters.0.insert(counter.to_owned(), 1001);
            }
        }
    })
}

#[test]
fn split_or_joined_datagrams_are_found() {
    let spec = spec(Family::Ipv6, Transport::Udp);
    let path = path(Family::Ipv6);
    let (mut sender, receiver) = host_reports(&spec);
    sender.counters.0.insert("interface.tx_packets".to_owned(), 5000);
    let split = validate(&spec, &path, &sender, &receiver, OtherTraffic::None);
    assert_eq!(split, ["1003 packets sent and 5000 left: they were split"]);
    let (sender, mut receiver) = host_reports(&spec);
    receiver.counters.0.insert("interface.rx_packets".to_owned(), 30);
    let joined = validate(&spec, &path, &sender, &receiver, OtherTraffic::None);
    assert_eq!(joined, ["1000 packets were received in 30: they were coalesced"]);
}

#[test]
fn other_stream_on_the_interfaces_is_no_contradiction() {
    for transport in Transport::ALL {
        let spec = spec(Family::Ipv6, *transport);
        let (mut sender, mut receiver) = host_reports(&spec);
        for side in [&mut sender, &mut receiver] {
            side.counters.0.insert("interface.tx_packets".to_owned(), 5000);
            side.counters.0.insert("interface.rx_packets".to_owned(), 5000);
        }
        let path = path(Family::Ipv6);
        assert_eq!(validate(&spec, &path, &sender, &receiver, OtherTraffic::Present), [""; 0]);
        // Too few is still a contradiction.
        receiver.counters.0.insert("interface.rx_packets".to_owned(), 30);
        sender.counters.0.insert("interface.tx_packets".to_owned(), 30);
        let joined = validate(&spec, &path, &sender, &receiver, OtherTraffic::Present);
        assert!(!joined.is_empty(), "{transport}");
    }
    let spec = spec(Family::Ipv4, Transport::Udp);
    let (mut sender, receiver) = host_reports(&spec);
    sender.counters.0.insert("ip.FragCreates".to_owned(), 2006);
    let split = validate(&spec, &path(Family::Ipv4), &sender, &receiver, OtherTraffic::Present);
    assert_eq!(split, ["1003 messages cut into 2006 fragments, planned are 0"]);
}

#[test]
fn on_a_shared_link_fragments_tell_of_cut_datagrams() {
    let spec = spec(Family::Ipv4, Transport::Udp);
    let mut ends = ends(&spec);
    ends.sender.counters.0.insert("interface.tx_packets".to_owned(), 5000);
    assert!(!validate_on_link(false, &spec, &ends).is_empty());
    assert_eq!(validate_on_link(true, &spec, &ends), [""; 0]);
    ends.sender.counters.0.insert("ip.FragCreates".to_owned(), 2006);
    assert!(!validate_on_link(true, &spec, &ends).is_empty());
}

fn validate_on_link(shared: bool, spec: &TrialSpec, ends: &Ends<HostReport>) -> Vec<String> {
    let path = Path { shared, ..path(spec.family) };
    let forward = crate::transfers::of(&path, spec, Direction::Forward);
    transfers(&forward, std::slice::from_ref(ends), &Limits::NONE)
}

#[test]
fn contradiction_of_the_other_direction_is_named_so() {
    let spec = spec(Family::Ipv6, Transport::Udp);
    let both = crate::transfers::of(&path(Family::Ipv6), &spec, Direction::Both);
    let there = ends(&spec);
    let mut back = ends(&spec);
    for side in &mut back {
        // The roles are exchanged, and the addresses with them.
        std::mem::swap(&mut side.endpoint.local, &mut side.endpoint.peer);
    }
    assert_eq!(transfers(&both, &[there.clone(), back.clone()], &Limits::NONE), [""; 0]);
    back.sender.endpoint.family = Family::Ipv4;
    let reasons = transfers(&both, &[there, back], &Limits::NONE);
    assert_eq!(reasons, ["in the other direction, the sender's socket is ipv4, planned is ipv6"]);
}

/// A stream with every option set, and both of its sides as they should be.
fn tuned() -> (TrialSpec, [HostReport; 2]) {
    let mut spec = spec(Family::Ipv6, Transport::Tcp);
    *spec.tuning = Tuning {
        socket: Some(SocketKind::Native),
        send_buffer: Some(100_000),
        receive_buffer: None,
        mss: Some(1200),
        nodelay: Some(false),
        congestion_control: Some("reno".into()),
        dscp: Some(46),
        flow_label: Some(7),
        busy_poll_us: Some(50),
        kernel_pacing: None,
    };
    let host_reports = host_reports(&spec);
    let mut host_reports = [host_reports.0, host_reports.1];
    for side in &mut host_reports {
        side.endpoint.congestion_control = Some("reno".into());
        side.endpoint.options = SocketOptions {
            socket: Some(SocketKind::Native),
            send_buffer: Some(200_000),
            receive_buffer: Some(131_072),
            mss: Some(1188),
            nodelay: Some(false),
            dscp: Some(46),
            flow_label: Some(7),
            busy_poll_us: Some(50),
            max_pacing_rate: None,
        };
    }
    (spec, host_reports)
}

#[test]
fn sockets_as_planned_contradict_nothing() {
    let (spec, [sender, receiver]) = tuned();
    assert_eq!(broken(option_rules(&spec, &sender)), [""; 0]);
    assert_eq!(broken(option_rules(&spec, &receiver)), [""; 0]);
}

#[test]
fn each_option_that_did_not_take_effect_is_named() {
    let dscp = change_sender(|e| e.options.dscp = Some(0));
    assert_eq!(dscp, "the sender's DSCP is 0, planned is 46");
    let nodelay = change_sender(|e| e.options.nodelay = Some(true));
    assert_eq!(nodelay, "the sender's TCP_NODELAY is true, planned is false");
    let label = change_sender(|e| e.options.flow_label = None);
    assert_eq!(label, "the sender's flow label is unknown, planned is 7");
    let polling = change_sender(|e| e.options.busy_poll_us = Some(0));
    assert_eq!(polling, "the sender's busy polling is 0, planned is 50");
    let control = change_sender(|e| e.congestion_control = Some("cubic".into()));
    assert_eq!(control, "the sender's congestion control is cubic, planned is reno");
    for mss in [1187, 1201] {
        let segments = change_sender(|e| e.options.mss = Some(mss));
        assert_eq!(segments, format!("the sender's segments hold {mss} bytes, planned is an MSS of 1200"));
    }
}

/// What the options of a sender contradict whose socket was changed.
fn change_sender(change: impl FnOnce(&mut Endpoint)) -> String {
    let (spec, [mut sender, _]) = tuned();
    change(&mut sender.endpoint);
    broken(option_rules(&spec, &sender)).join("; ")
}

/// A host that counted these packets of messages of 1000 bytes, and their bytes.
fn counting(mut report: HostReport, family: &str, packets: u64, each: u64) -> HostReport {
    let names = [
        (format!("{family}.OutRequests"), packets),
        (format!("{family}.InReceives"), packets),
        ("interface.tx_packets".to_owned(), packets),
        ("interface.rx_packets".to_owned(), packets),
        ("interface.tx_bytes".to_owned(), packets * each),
        ("interface.rx_bytes".to_owned(), packets * each),
    ];
    report.counters = Counters(names.into());
    report
}

#[test]
fn family_size_and_packets_are_compared_with_the_plan() {
    for (planned, own, other) in [(Family::Ipv4, "ip", "ip6"), (Family::Ipv6, "ip6", "ip")] {
        let spec = TrialSpec { message_bytes: 1000, ..spec(planned, Transport::Udp) };
        let each = 1000 + headers_each(&spec, planned, 1500) as u64;
        assert_eq!(judge_counts(&spec, own, 5000, each), [""; 0]);
        let wrong = judge_counts(&spec, other, 5000, each);
        assert!(wrong.len() == 2 && wrong[0].contains("5000 packets of"), "{wrong:?}");
        let wrong = judge_counts(&spec, own, 5000, each + 20);
        assert!(wrong.len() == 2 && wrong[0].starts_with("an IP packet of the sender has"), "{wrong:?}");
        let wrong = judge_counts(&spec, own, 0, each);
        assert!(wrong[0].ends_with("counted 0 bytes of payload"), "{wrong:?}");
    }
}

fn judge_counts(spec: &TrialSpec, family: &str, packets: u64, each: u64) -> Vec<String> {
    let (sender, receiver) = host_reports(spec);
    let sender = counting(sender, family, packets, each);
    let receiver = counting(receiver, family, packets, each);
    generator(spec, &path(spec.family), &Ends { sender, receiver })
}

#[test]
fn payload_is_what_headers_leave_of_interface_bytes() {
    for (family, transport, each) in [
        (Family::Ipv4, Transport::Udp, 14_u32 + 20 + 8),
        (Family::Ipv6, Transport::Udp, 14 + 40 + 8),
        (Family::Ipv6, Transport::Tcp, 14 + 40 + 32),
    ] {
        let spec = TrialSpec { message_bytes: 1000, ..spec(family, transport) };
        assert_eq!(headers_each(&spec, family, 1500), f64::from(each));
        let counters = Counters(
            [("interface.tx_bytes", u64::from(7 * (1000 + each))), ("interface.tx_packets", 7)]
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
        );
        assert_eq!(counted_payload(&counters, "tx", &spec, family, 1500), 7000.0);
    }
    // Two fragments: one has UDP's header.
    let spec = TrialSpec { message_bytes: 2000, ..spec(Family::Ipv4, Transport::Udp) };
    assert_eq!(headers_each(&spec, Family::Ipv4, 1500), f64::from(14 + 20) + 4.0);
    assert_eq!(path(Family::Ipv4).path_mtus(), [1500, 1500]);
}

#[test]
fn each_other_station_has_a_part_of_the_channel() {
    assert!(judge_station(TURN_NS, 0)[0].starts_with("station 2,"));
    assert_eq!(judge_station(TURN_NS, 1), [""; 0]);
    assert_eq!(judge_station(TURN_NS - 1, 0), [""; 0]);
}

/// What the last of five nodes contradicts, that was heard this often.
fn judge_station(idle_ns: u64, transmissions: u64) -> Vec<String> {
    let counts = [9, 9, 0, 5, transmissions];
    let nodes = counts.map(|transmissions| NodeAirtime { transmissions, ..NodeAirtime::default() }).into();
    let airtime = Airtime { idle_ns, ..Airtime::default() };
    let channel = Some(ChannelUse { airtime, nodes, intervals: Vec::new() });
    stations(&HostReport { channel, ..host_reports(&spec(Family::Ipv4, Transport::Udp)).1 })
}
