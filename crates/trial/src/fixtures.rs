//! A path, a spec and two valid host reports, for unit tests.

use crate::path::Path;
use stacklab_model::{
    Cell, Endpoint, Ends, Family, HostReport, Length, Offloads, Pacing, Probe, ProbeSpec, Received, Role,
    ScopedAddr, Sent, SizeOf, TcpInfo, Transport, TrialSpec,
};
use std::net::{IpAddr, SocketAddr};

fn addresses(family: Family) -> [IpAddr; 2] {
    let text = match family {
        Family::Ipv4 => ["198.18.0.1", "198.18.0.2"],
        Family::Ipv6 => ["2001:2::1", "2001:2::2"],
    };
    text.map(|address| address.parse().unwrap())
}

/// A path as planned, for tests of pure functions.
pub(crate) fn path(family: Family) -> Path {
    let [sender, receiver] = addresses(family).map(ScopedAddr::from);
    let mtu = 1500;
    let planned_mtu = true;
    Path {
        sender,
        receiver,
        mtu,
        planned_mtu,
        offloads: false,
        rate: None,
        shared: false,
        nat: None,
        opener: None,
        customers: Vec::new(),
    }
}

/// A stream of 1000 messages of 128 bytes.
pub(crate) fn spec(family: Family, transport: Transport) -> TrialSpec {
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Flood,
        length: Length::Packets(1000),
        warmup_ns: 0,
        interval_ns: 100_000_000,
        metrics: Vec::new(),
    };
    TrialSpec::new(1, &Cell::new(family, transport, SizeOf::Payload, 128), probe)
}

/// Both reports of that stream, as planned.
pub(crate) fn ends(spec: &TrialSpec) -> Ends<HostReport> {
    let (sender, receiver) = host_reports(spec);
    Ends { sender, receiver }
}

/// The same, the sender's first.
pub(crate) fn host_reports(spec: &TrialSpec) -> (HostReport, HostReport) {
    let [from, to] = addresses(spec.family).map(|address| SocketAddr::new(address, 5000));
    let mut sender = build_report(spec, Role::Sender, from, to);
    let mut receiver = build_report(spec, Role::Receiver, to, from);
    let markers = if spec.transport == Transport::Udp { 3 } else { 1 };
    sender.sent = Sent { measured: 1000, markers, bytes: 128_000, last_ns: 1_000_000_000, ..Sent::default() };
    sender.counters.0.insert("interface.tx_packets".to_owned(), 1000 + markers);
    receiver.counters.0.insert("interface.rx_packets".to_owned(), 1000 + markers);
    receiver.received = Received {
        measured: 1000,
        bytes_at_first: 128,
        bytes: 128_000,
        last_ns: 1_000_000_000,
        ..Received::default()
    };
    if spec.transport == Transport::Tcp {
        sender.tcp =
            Some(TcpInfo { bytes_sent: Some(1001 * 128), data_segs_out: Some(1001), ..TcpInfo::default() });
    }
    (sender, receiver)
}

fn build_report(spec: &TrialSpec, role: Role, local: SocketAddr, peer: SocketAddr) -> HostReport {
    let endpoint = Endpoint {
        family: spec.family,
        transport: spec.transport,
        local,
        peer,
        interface: "st0".to_owned(),
        interface_mtu: 1500,
        path_mtu: Some(1500),
        offloads: Offloads { tso: Some(false), ..Offloads::default() },
        congestion_control: None,
        options: Default::default(),
    };
    HostReport { io: Some(spec.io), ..HostReport::new(role, endpoint) }
}
