//! Validates the reports of both kernels against the plan.

use crate::path::Path;
use crate::results::options;
use crate::transfers::{Transfer, TransferRole};
use stacklab_model::{
    Endpoint, Family, Framing, HostReport, Probe, Role, RunStatus, TcpInfo, Transport, TrialSpec, wire_size,
};

/// Tolerance of a ratio of counters: pure acknowledgements, neighbour discovery and group membership share the
/// counters with the trial.
const TOLERANCE: f64 = 0.01;
/// Number of packets of other protocols that a trial may include, however short it is.
const OTHER_PACKETS: u64 = 16;

/// Validates all transfers of a run, and adds contradictions that are known already.
pub(crate) fn validate_all(
    transfers: &[Transfer],
    host_reports: &[[HostReport; 2]],
    known: Vec<String>,
) -> RunStatus {
    let mut found = Contradictions(known);
    for (transfer, [sent, received]) in transfers.iter().zip(host_reports) {
        let others = match transfers {
            _ if transfer.spec.slicing.is_some_and(|slicing| !slicing.slots) => OtherTraffic::Arms,
            [transfer] if transfer.path.shared => OtherTraffic::Present,
            [_] => OtherTraffic::None,
            _ if transfers.iter().any(|transfer| transfer.role == TransferRole::Load) => {
                OtherTraffic::SameSender
            }
            _ => OtherTraffic::Present,
        };
        if let RunStatus::Invalid(reasons) = validate(&transfer.spec, &transfer.path, sent, received, others)
        {
            found.0.extend(reasons.into_iter().map(|reason| format!("{}{reason}", transfer.prefix())));
        }
    }
    found.into_status()
}

/// Whether the trial has other traffic, which the interfaces count too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherTraffic {
    /// No other traffic.
    None,
    /// A stream in the other direction, or background traffic.
    Present,
    /// Another stream of the trial from the same sender.
    SameSender,
    /// The other arms of an interleaved trial. Their packets are compared with the plan together.
    Arms,
}

/// Validates one transfer: valid, or invalid with every contradiction.
pub(crate) fn validate(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
    others: OtherTraffic,
) -> RunStatus {
    let mut found = Contradictions::default();
    let [there, back] = path.path_mtus();
    // Then the loss is the figure.
    let may_lose_all = path.is_as_found() && spec.transport == Transport::Udp;
    let ends = [
        ("sender", sender, path.sender.ip(), path.destination(), there),
        ("receiver", receiver, path.receiver.ip(), path.source(), back),
    ];
    for ((name, side, own, other, found_mtu), own_mtu) in ends.into_iter().zip(path.own_mtus()) {
        let planned_family = Family::of(own);
        let Endpoint { family, transport, local, peer, interface_mtu, path_mtu, offloads, .. } =
            &side.endpoint;
        found.check(*family == planned_family, || {
            format!("the {name}'s socket is {family}, planned is {planned_family}")
        });
        found.check(Family::of(local.ip()) == planned_family, || {
            format!("the {name}'s address is {}", local.ip())
        });
        found.check(*transport == spec.transport, || {
            format!("the {name}'s socket is {transport}, planned is {}", spec.transport)
        });
        // Another host that was reached at a translated address.
        let other_end = match path.opener {
            Some(Role::Sender) => name == "receiver",
            Some(Role::Receiver) => name == "sender",
            None => false,
        };
        found.check(local.ip() == own || other_end, || {
            format!("the {name} is on {}, planned is {own}", local.ip())
        });
        found.check(!path.planned_mtu || *interface_mtu == own_mtu, || {
            format!("the {name}'s interface has MTU {interface_mtu}, planned is {own_mtu}")
        });
        // If the opener has closed the connection, Windows does not report its peer.
        let unnamed = spec.probe.probe == Probe::Connect && side.received.measured > 0;
        if peer.port() == 0 {
            found.check(unnamed || may_lose_all, || format!("nothing from {other} reached the {name}"));
        } else {
            found.check(peer.ip() == other || path.is_as_found(), || {
                format!("the {name}'s peer is {}, planned is {other}", peer.ip())
            });
            // The path MTU of a socket without a peer is not a path's. A loopback interface's MTU may exceed the
            // maximum packet size.
            let planned = found_mtu.min(planned_family.largest_packet_bytes());
            found.check(!path.planned_mtu || path_mtu.is_none_or(|mtu| mtu == planned), || {
                format!("the {name}'s path has MTU {}, planned is {planned}", path_mtu.unwrap_or(0))
            });
        }
        found.check(path.offloads || offloads.on().is_empty(), || {
            format!("the {name} has offloads on that were planned off: {}", offloads.on().join(", "))
        });
        found.0.extend(options::contradictions(spec, side));
    }
    let (from, to) = (&sender.endpoint, &receiver.endpoint);
    if to.peer.port() != 0 {
        // For several flows the receiver reports one peer, which may not be the sender's first flow.
        let renumbers = path.nat.is_some_and(|nat| nat.renumbers);
        let same_port = spec.flows > 1 || renumbers || from.local.port() == to.peer.port();
        let same = to.peer.ip() == path.source() && same_port;
        found.check(path.is_as_found() || same && from.peer.port() == to.local.port(), || {
            format!(
                "the sender's flow is {} to {}, the receiver's {} to {}",
                from.local, from.peer, to.peer, to.local
            )
        });
    }
    // Over a slow path, parts of long messages are sent and arrive.
    let is_sent = sender.sent.measured > 0 || sender.sent.bytes > 0;
    found.check(is_sent, || "no message was sent in the measured window".to_owned());
    let has_arrived = receiver.received.measured > 0 || receiver.received.cut_bytes > 0;
    found.check(!is_sent || has_arrived || may_lose_all, || {
        "no message arrived in the measured window".to_owned()
    });
    if spec.framing != Framing::Message && spec.probe.probe != Probe::Connect {
        check_segments(&mut found, spec, path, sender, receiver, others);
    }
    found.into_status()
}

/// Each message must use one packet (or, if it does not fit one, the necessary number of fragments). Other traffic in
/// a packet counter can hide that messages were coalesced, and can look as if messages were split. In that case only
/// the socket's and IP's own counters are used.
fn check_segments(
    found: &mut Contradictions,
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
    others: OtherTraffic,
) {
    let (left, arrived) =
        (sender.counters.get("interface.tx_packets"), receiver.counters.get("interface.rx_packets"));
    match spec.transport {
        Transport::Tcp => {
            let Some((bytes, segments)) = sender.tcp.as_ref().and_then(TcpInfo::sent_segments) else {
                return;
            };
            let each = bytes as f64 / segments as f64;
            let planned = f64::from(spec.message_bytes);
            found.check((each / planned - 1.0).abs() <= TOLERANCE, || {
                format!("a data segment holds {each:.1} bytes, planned is {planned} in each")
            });
            // Not TCP_INFO's segment count: it also includes every attempt that the host's own queue refused.
            let sent = sender.sent.warmup + sender.sent.measured + sender.sent.markers;
            found.check(left as f64 >= sent as f64 * (1.0 - TOLERANCE), || {
                format!("{sent} messages left in {left} packets: they were coalesced")
            });
        }
        Transport::Udp => {
            let family = Family::of(path.sender.ip());
            let mtu = sender.endpoint.path_mtu.filter(|_| !path.planned_mtu).unwrap_or(path.path_mtus()[0]);
            let packets = u64::from(wire_size(family, spec.transport, spec.message_bytes, mtu).packets);
            let messages = sender.sent.warmup + sender.sent.measured + sender.sent.markers;
            let sent = messages.saturating_mul(packets);
            match others {
                OtherTraffic::None => {
                    found
                        .check(left as f64 <= sent as f64 * (1.0 + TOLERANCE) + OTHER_PACKETS as f64, || {
                            format!("{sent} packets were sent and {left} left: they were split")
                        });
                }
                // The fragments of both streams are counted together.
                OtherTraffic::SameSender if packets > 1 => {}
                OtherTraffic::Arms => {}
                // Only oversized datagrams of a trial are fragmented.
                OtherTraffic::Present | OtherTraffic::SameSender => {
                    let cut = sender.counters.get("ip.FragCreates") + sender.counters.get("ip6.FragCreates");
                    let planned = if packets > 1 { sent } else { 0 };
                    found.check(cut as f64 <= planned as f64 * (1.0 + TOLERANCE), || {
                        format!("{messages} messages were cut into {cut} fragments, planned are {planned}")
                    });
                }
            }
            let received = (receiver.received.warmup + receiver.received.measured).saturating_mul(packets);
            // An interface that counted no arrivals keeps no count, such as Windows' loopback: `metrics` warns.
            let counted = arrived > 0;
            found.check(!counted || arrived as f64 >= received as f64 * (1.0 - TOLERANCE), || {
                format!("{received} packets were received in {arrived}: they were coalesced")
            });
        }
    }
}

#[derive(Default)]
struct Contradictions(Vec<String>);

impl Contradictions {
    fn check(&mut self, agrees: bool, otherwise: impl FnOnce() -> String) {
        if !agrees {
            self.0.push(otherwise());
        }
    }

    fn into_status(self) -> RunStatus {
        if self.0.is_empty() { RunStatus::Valid } else { RunStatus::Invalid(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{host_reports, path, spec};
    use crate::path::NatPath;
    use stacklab_model::Offloads;

    fn reasons(change: impl FnOnce(&mut TrialSpec, &mut HostReport, &mut HostReport)) -> Vec<String> {
        let mut all = Vec::new();
        let mut change = Some(change);
        // The change is applied to one case. The unchanged cases of both families and transports must be valid.
        for family in Family::ALL {
            for transport in Transport::ALL {
                let mut spec = spec(*family, *transport);
                let (mut sender, mut receiver) = host_reports(&spec);
                assert_eq!(
                    validate(&spec, &path(*family), &sender, &receiver, OtherTraffic::None),
                    RunStatus::Valid
                );
                if *transport == Transport::Tcp
                    && let Some(change) = change.take()
                {
                    change(&mut spec, &mut sender, &mut receiver);
                    if let RunStatus::Invalid(reasons) =
                        validate(&spec, &path(*family), &sender, &receiver, OtherTraffic::None)
                    {
                        all = reasons;
                    }
                }
            }
        }
        all
    }

    #[test]
    fn a_port_may_be_another_behind_a_translator_with_state_only() {
        let spec = spec(Family::Ipv4, Transport::Udp);
        let (sender, mut receiver) = host_reports(&spec);
        receiver.endpoint.peer.set_port(receiver.endpoint.peer.port() + 1);
        let judged = |renumbers| {
            let plain = path(Family::Ipv4);
            let nat = NatPath {
                destination: plain.receiver.ip(),
                source: plain.sender.ip(),
                path_mtus: [1500; 2],
                own_mtus: [1500; 2],
                renumbers,
            };
            validate(&spec, &Path { nat: Some(nat), ..plain }, &sender, &receiver, OtherTraffic::None)
        };
        assert_eq!(judged(true), RunStatus::Valid);
        let RunStatus::Invalid(reasons) = judged(false) else { panic!("it is another flow") };
        assert!(reasons[0].starts_with("the sender's flow is "), "{reasons:?}");
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
        assert_eq!(proved, RunStatus::Valid, "nobody planned another");
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
    fn split_or_joined_datagrams_are_found() {
        let spec = spec(Family::Ipv6, Transport::Udp);
        let invalid = |change: &dyn Fn(&mut HostReport, &mut HostReport)| {
            let (mut sender, mut receiver) = host_reports(&spec);
            change(&mut sender, &mut receiver);
            match validate(&spec, &path(Family::Ipv6), &sender, &receiver, OtherTraffic::None) {
                RunStatus::Invalid(reasons) => reasons,
                RunStatus::Valid => Vec::new(),
            }
        };
        let split = invalid(&|sender, _| {
            sender.counters.0.insert("interface.tx_packets".to_owned(), 5000);
        });
        assert_eq!(split, ["1003 packets were sent and 5000 left: they were split"]);
        let joined = invalid(&|_, receiver| {
            receiver.counters.0.insert("interface.rx_packets".to_owned(), 30);
        });
        assert_eq!(joined, ["1000 packets were received in 30: they were coalesced"]);
    }

    #[test]
    fn what_another_stream_adds_to_the_interfaces_is_no_contradiction() {
        for transport in Transport::ALL {
            let spec = spec(Family::Ipv6, *transport);
            let (mut sender, mut receiver) = host_reports(&spec);
            for side in [&mut sender, &mut receiver] {
                side.counters.0.insert("interface.tx_packets".to_owned(), 5000);
                side.counters.0.insert("interface.rx_packets".to_owned(), 5000);
            }
            let path = path(Family::Ipv6);
            assert_eq!(validate(&spec, &path, &sender, &receiver, OtherTraffic::Present), RunStatus::Valid);
            // Too few is still a contradiction.
            receiver.counters.0.insert("interface.rx_packets".to_owned(), 30);
            sender.counters.0.insert("interface.tx_packets".to_owned(), 30);
            let joined = validate(&spec, &path, &sender, &receiver, OtherTraffic::Present);
            assert!(matches!(joined, RunStatus::Invalid(_)), "{transport}");
        }
        let spec = spec(Family::Ipv4, Transport::Udp);
        let (mut sender, receiver) = host_reports(&spec);
        sender.counters.0.insert("ip.FragCreates".to_owned(), 2006);
        let split = validate(&spec, &path(Family::Ipv4), &sender, &receiver, OtherTraffic::Present);
        let reason = "1003 messages were cut into 2006 fragments, planned are 0".to_owned();
        assert_eq!(split, RunStatus::Invalid(vec![reason]));
    }

    #[test]
    fn on_a_link_that_is_shared_fragments_tell_whether_datagrams_were_cut() {
        let spec = spec(Family::Ipv4, Transport::Udp);
        let (mut sender, receiver) = host_reports(&spec);
        sender.counters.0.insert("interface.tx_packets".to_owned(), 5000);
        let proved = |shared, sender: &HostReport| {
            let path = Path { shared, ..path(Family::Ipv4) };
            let transfers = crate::transfers::of(&path, &spec, stacklab_model::Direction::Forward);
            validate_all(&transfers, &[[sender.clone(), receiver.clone()]], Vec::new())
        };
        assert!(matches!(proved(false, &sender), RunStatus::Invalid(_)));
        assert_eq!(proved(true, &sender), RunStatus::Valid);
        sender.counters.0.insert("ip.FragCreates".to_owned(), 2006);
        assert!(matches!(proved(true, &sender), RunStatus::Invalid(_)));
    }

    #[test]
    fn a_contradiction_of_the_other_direction_is_said_to_be_its() {
        let spec = spec(Family::Ipv6, Transport::Udp);
        let transfers = crate::transfers::of(&path(Family::Ipv6), &spec, stacklab_model::Direction::Both);
        let (there, mut back) = (host_reports(&spec), host_reports(&spec));
        for side in [&mut back.0, &mut back.1] {
            // The roles are exchanged, and the addresses with them.
            std::mem::swap(&mut side.endpoint.local, &mut side.endpoint.peer);
        }
        let validate = |back: (HostReport, HostReport)| {
            validate_all(&transfers, &[[there.0.clone(), there.1.clone()], [back.0, back.1]], Vec::new())
        };
        assert_eq!(validate(back.clone()), RunStatus::Valid);
        back.0.endpoint.family = Family::Ipv4;
        let reason = "in the other direction, the sender's socket is ipv4, planned is ipv6".to_owned();
        assert_eq!(validate(back), RunStatus::Invalid(vec![reason]));
    }
}
