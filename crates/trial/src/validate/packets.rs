//! The rules of packets: that the interfaces counted as many, and as large ones, as were planned.

use crate::path::Path;
use crate::validate::{OtherTraffic, Rule, broken};
use stacklab_model::{
    ArmSchedule, Counters, ETHERNET_HEADER_BYTES, Ends, Family, HostReport, SizeOf, TcpInfo, Transport,
    TrialSpec, add_up, count, wire_size,
};

/// An arm of an interleaved trial: path, spec, and the reports of sender and receiver.
pub type ArmReports<'a> = (&'a Path, &'a TrialSpec, &'a Ends<HostReport>);

/// Tolerance of a ratio of counters: pure acknowledgements, neighbour discovery and group membership share the
/// counters with the trial.
const TOLERANCE: f64 = 0.01;
/// Number of packets of other protocols that a trial may include, however short it is.
const OTHER_PACKETS: f64 = 16.0;
/// Bytes that a packet of a generator's control connection may have more than those of the data, at most.
const CONTROL_BYTES: f64 = 1500.0;

/// Each message must use one packet (or, if it does not fit one, the necessary number of fragments). Other traffic in
/// a packet counter can hide that messages were coalesced, and can look as if messages were split. In that case only
/// the socket's and IP's own counters are used.
pub(super) fn packet_rules(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
    others: OtherTraffic,
) -> Vec<Rule> {
    let left = sender.counters.get("interface.tx_packets");
    let arrived = receiver.counters.get("interface.rx_packets");
    let messages = sender.sent.of_trial();
    if spec.transport == Transport::Tcp {
        let Some((bytes, segments)) = sender.tcp.as_ref().and_then(TcpInfo::sent_segments) else {
            return Vec::new();
        };
        let each = bytes as f64 / segments as f64;
        let planned = f64::from(spec.message_bytes);
        return vec![
            (
                (each / planned - 1.0).abs() <= TOLERANCE,
                format!("a data segment holds {each:.1} bytes, planned is {planned} in each"),
            ),
            // Not TCP_INFO's segment count: it also includes every attempt that the host's own queue refused.
            (
                left as f64 >= messages as f64 * (1.0 - TOLERANCE),
                format!(
                    "{} left in {}: they were coalesced",
                    count(messages, "message"),
                    count(left, "packet")
                ),
            ),
        ];
    }
    let packets = packets_each(spec, path, sender);
    let sent = messages.saturating_mul(packets);
    let cut = sender.counters.get("ip.FragCreates") + sender.counters.get("ip6.FragCreates");
    // Only oversized datagrams of a trial are fragmented. The fragments of two streams are counted together.
    let planned = if packets > 1 { sent } else { 0 };
    let counts_fragments =
        others == OtherTraffic::Present || others == OtherTraffic::SameSender && packets == 1;
    let received = (receiver.received.warmup + receiver.received.measured).saturating_mul(packets);
    vec![
        (
            others != OtherTraffic::None || left as f64 <= sent as f64 * (1.0 + TOLERANCE) + OTHER_PACKETS,
            format!("{} sent and {left} left: they were split", count(sent, "packet")),
        ),
        (
            !counts_fragments || cut as f64 <= planned as f64 * (1.0 + TOLERANCE),
            format!(
                "{} cut into {}, planned are {planned}",
                count(messages, "message"),
                count(cut, "fragment")
            ),
        ),
        // An interface that counted no arrivals keeps no count, such as Windows' loopback: a warning says so.
        (
            arrived == 0 || arrived as f64 >= received as f64 * (1.0 - TOLERANCE),
            format!("{received} packets were received in {arrived}: they were coalesced"),
        ),
    ]
}

/// The packets that IP counted at each end are of the planned family. `path` has the ends' own addresses.
pub(super) fn family_rules(path: &Path, sender: &HostReport, receiver: &HostReport) -> [Rule; 2] {
    let ends = [(sender, path.sender.ip(), "OutRequests"), (receiver, path.receiver.ip(), "InReceives")];
    ends.map(|(report, at, counter)| {
        let [ipv4, ipv6] = ["ip", "ip6"].map(|ip| report.counters.get(&format!("{ip}.{counter}")) as f64);
        let family = Family::of(at);
        let (own, others, other) = match family {
            Family::Ipv4 => (ipv4, ipv6, Family::Ipv6),
            Family::Ipv6 => (ipv6, ipv4, Family::Ipv4),
        };
        let name = report.role;
        (
            others <= own * TOLERANCE + OTHER_PACKETS,
            format!(
                "the {name} counted {others} packets of {other} and {own} of {family}, planned is {family}"
            ),
        )
    })
}

/// Packets of a message on the sender's path.
fn packets_each(spec: &TrialSpec, path: &Path, sender: &HostReport) -> u64 {
    let mtu = sender.endpoint.path_mtu.filter(|_| !path.planned_mtu).unwrap_or(path.path_mtus()[0]);
    wire_size(Family::of(path.sender.ip()), spec.transport, spec.message_bytes, mtu).packets.into()
}

/// Whether the datagrams of all arms together left in as many packets as planned: the interfaces count all arms. Arms
/// with separate testbeds are validated one by one.
pub(crate) fn arms(arms: &[ArmReports<'_>]) -> Vec<String> {
    let planned = arms.iter().map(|(path, spec, Ends { sender, .. })| {
        sender.sent.of_trial().saturating_mul(packets_each(spec, path, sender))
    });
    let planned = add_up(planned);
    // The arm that began first and ended last saw all of them.
    let left = arms.iter().map(|(.., ends)| ends.sender.counters.get("interface.tx_packets")).max();
    let left = left.filter(|left| *left > 0 && arms.iter().all(counts_datagrams)).unwrap_or(planned);
    let [least, most] =
        [-1.0, 1.0].map(|side| planned as f64 * (1.0 + side * TOLERANCE) + side * OTHER_PACKETS);
    let counts = format!("the arms together sent {planned} packets and {left} left");
    broken([
        (left as f64 >= least, format!("{counts}: they were coalesced")),
        (left as f64 <= most, format!("{counts}: they were split")),
    ])
}

/// Whether an arm sends datagrams whose packets the interfaces count together with those of the other arms alone.
fn counts_datagrams(arm: &ArmReports<'_>) -> bool {
    let (path, spec, _) = *arm;
    let has_slots = matches!(spec.schedule, ArmSchedule::TimeSlots(_));
    let datagrams = spec.transport == Transport::Udp && spec.size_of != SizeOf::Write;
    datagrams && !has_slots && !path.shared
}

/// What a trial that another program drove breaks, by what the kernels counted: family, payload and packets. What the
/// program reports of itself is not judged here: it is its error.
pub fn generator(spec: &TrialSpec, path: &Path, Ends { sender, receiver }: &Ends<HostReport>) -> Vec<String> {
    let ends = [(sender, path.sender.ip(), "tx", "OutSegs"), (receiver, path.receiver.ip(), "rx", "InSegs")];
    let mtu = path.path_mtus()[0];
    let mut sizes = Vec::new();
    for (report, at, way, segments) in ends {
        let name = report.role;
        let family = Family::of(at);
        let payload = counted_payload(&report.counters, way, spec, family, mtu);
        let is_sent = payload >= f64::from(spec.message_bytes);
        let bytes = report.counters.get(&format!("interface.{way}_bytes")) as f64;
        let packets = report.counters.get(&format!("interface.{way}_packets")) as f64;
        let pieces = f64::from(wire_size(family, spec.transport, spec.message_bytes, mtu).packets);
        let planned = f64::from(spec.message_bytes) / pieces + headers_each(spec, family, mtu);
        let others = report.counters.get(&format!("tcp.{segments}")) as f64 + OTHER_PACKETS;
        let room = planned * TOLERANCE + others * CONTROL_BYTES / packets;
        let found = bytes / packets;
        let [found_ip, planned_ip] = [found, planned].map(|bytes| bytes - f64::from(ETHERNET_HEADER_BYTES));
        sizes.push((is_sent, format!("the {name}'s interface counted {payload:.0} bytes of payload")));
        sizes.push((
            !is_sent || spec.transport == Transport::Tcp || (found - planned).abs() <= room,
            format!(
                "an IP packet of the {name} has {found_ip:.1} bytes, planned are {planned_ip:.1} in each"
            ),
        ));
    }
    broken(family_rules(path, sender, receiver).into_iter().chain(sizes))
}

/// What a run of a program breaks, by what the kernels counted: the family, and that anything was carried at all. What
/// it sends is its own, and it may be few packets.
pub fn program(path: &Path, Ends { sender, receiver }: &Ends<HostReport>) -> Vec<String> {
    let carried = ["rx_bytes", "tx_bytes"].map(|name| sender.counters.get(&format!("interface.{name}")));
    let is_carried = (
        carried.iter().all(|bytes| *bytes > 0),
        "the client's interface carried nothing both ways".to_owned(),
    );
    let ends = [(sender, path.sender.ip()), (receiver, path.receiver.ip())];
    let families = ends.map(|(report, at)| {
        let family = Family::of(at);
        let [ipv4, ipv6] = ["ip", "ip6"].map(|ip| report.counters.get(&format!("{ip}.InReceives")));
        let [own, other] = if family == Family::Ipv4 { [ipv4, ipv6] } else { [ipv6, ipv4] };
        let name = report.role;
        (
            own > other,
            format!("the {name} received {own} packets of {family} and {other} of the other family"),
        )
    });
    broken(family_rules(path, sender, receiver).into_iter().chain(families).chain([is_carried]))
}

/// Payload bytes in the packets that an interface counted (`tx` or `rx`), if all have the headers of the model's
/// packets of a family.
pub fn counted_payload(counters: &Counters, way: &str, spec: &TrialSpec, family: Family, mtu: u32) -> f64 {
    let bytes = counters.get(&format!("interface.{way}_bytes")) as f64;
    let packets = counters.get(&format!("interface.{way}_packets")) as f64;
    bytes - packets * headers_each(spec, family, mtu)
}

/// Mean bytes of headers of a packet, as an interface counts it.
pub(super) fn headers_each(spec: &TrialSpec, family: Family, mtu: u32) -> f64 {
    let wire = wire_size(family, spec.transport, spec.message_bytes, mtu);
    let headers = f64::from(wire.ip_bytes) - f64::from(spec.message_bytes);
    headers / f64::from(wire.packets) + f64::from(ETHERNET_HEADER_BYTES)
}
