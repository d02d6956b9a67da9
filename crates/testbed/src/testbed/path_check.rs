//! Checks that a routed testbed carries packets as its mechanism should: sends a datagram end to end, captures it on
//! the middle link, and discovers the path MTU at both ends.

use crate::kernel::netlink::{index, packets};
use crate::kernel::sys::{Capture, bind_at_device, path_mtu, set_discovery};
use crate::mechanism::layers::are_of;
use crate::mechanism::publish::PORTS;
use crate::path_ends::{ends_of, path_mtus};
use crate::{
    Attempt, CustomerId, Fault, Host, INTERFACE, Layer, MIDDLE, Node, PathEnds, TestbedError, layers,
};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The result of a path check for one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCheck {
    /// The customer that sends, if there are several.
    #[serde(default = "CustomerId::first", skip_serializing_if = "CustomerId::is_first")]
    pub customer: CustomerId,
    /// The sender's family.
    pub family: Family,
    /// The headers of a packet on the middle link, outermost first.
    pub headers: Vec<String>,
    /// The frame that was captured there.
    pub frame: Vec<u8>,
    /// The path MTU that each end discovered towards the other, or was given, bytes; the sender's first.
    pub path_mtus: [u32; 2],
    /// Whether a larger packet vanished, and no router answered it. The testbed then sets the path MTU.
    pub black_hole: bool,
}

/// Timeout for packets to arrive. A tunnel is set up by its first packets.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(4);
pub(crate) const AGAIN: Duration = Duration::from_millis(50);
/// The payload of the check's datagrams, and their destination port.
const WORD: &[u8] = b"stacklab: is this carried?";
pub(crate) const PORT: u16 = 47808;

/// The destination port of a mechanism's datagrams: programs carry those to their own ports alone.
fn choose_port(mechanism: Mechanism) -> u16 {
    match mechanism.publisher() {
        Some(publisher) if publisher.has_ports() => *PORTS.start(),
        _ => PORT,
    }
}

pub(crate) fn refuse_family(mechanism: Mechanism, family: Family, reason: String) -> TestbedError {
    TestbedError(format!("{mechanism} does not carry {family}: {reason}"))
}

/// Sends datagrams until one has arrived, examines its capture from the middle link, and discovers both path MTUs.
pub(crate) fn check_path(
    path: &CheckedPath<'_>,
    mechanism: Mechanism,
    family: Family,
    ends: &PathEnds,
    mtu: u32,
) -> Result<PathCheck, TestbedError> {
    let CheckedPath { hosts, customer } = path;
    let [_, router1, ..] = hosts;
    let mut capture =
        router1.inside(|| Capture::open(index(MIDDLE)?).attempt(format!("listen to {MIDDLE}")))?;
    let flow = ConnectedSockets::open(path, mechanism, family, ends)?;
    let (headers, frame) = find_matching_packet(&mut capture, mechanism, family)
        .map_err(|reason| refuse_family(mechanism, family, reason))?;
    let path_mtus = path_mtus(mechanism, family, mtu).expect("the family is carried");
    let black_hole = !mechanism.reports_path_mtu()
        && hosts[0].inside(|| vanishes(&flow.sender, mtu).attempt("send a packet that is too large"))?;
    flow.find_both(path_mtus)?;
    let headers = headers.iter().map(Layer::to_string).collect();
    Ok(PathCheck { customer: *customer, family, headers, frame, path_mtus, black_hole })
}

/// The path of a customer: its four hosts.
pub(crate) struct CheckedPath<'a> {
    pub hosts: [&'a Host; 4],
    pub customer: CustomerId,
}

/// Connected sockets, one at each end, to the peer address as translated for that end.
pub(crate) struct ConnectedSockets {
    mechanism: Mechanism,
    family: Family,
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl ConnectedSockets {
    pub(crate) fn open(
        path: &CheckedPath<'_>,
        mechanism: Mechanism,
        family: Family,
        ends: &PathEnds,
    ) -> Result<Self, TestbedError> {
        let failed = |reason: String| refuse_family(mechanism, family, reason);
        let [from, _, _, at] = path.hosts;
        let sender = from.inside(|| socket(ends.sender, 0, Some(path.customer.uplink())))?;
        let port = choose_port(mechanism);
        let receiver = at.inside(|| socket(ends.receiver, port, None))?;
        let destination = SocketAddr::new(ends.destination, port);
        from.inside(|| connect(&sender, destination))?;
        let before = count(path)?;
        let start = Instant::now();
        let source = loop {
            // A broken path is reported below, together with the hop.
            let said = sender.send(WORD).err();
            let mut room = [0; 256];
            match receiver.recv_from(&mut room) {
                Ok((length, source)) if room[..length] == *WORD => break source,
                _ if start.elapsed() > TIMEOUT => {
                    let hop = name_last_hop(&before, &count(path)?);
                    let said =
                        said.map_or_else(String::new, |error| format!(" (sender's socket error: {error})"));
                    let reason = format!("nothing arrived within {} s: {hop}{said}", TIMEOUT.as_secs());
                    return Err(failed(reason));
                }
                _ => {}
            }
        };
        path.customer.check_source(source, mechanism, family).map_err(failed)?;
        at.inside(|| connect(&receiver, source))?;
        Ok(ConnectedSockets { mechanism, family, sender, receiver })
    }

    /// Sends this many datagrams in each direction, one at a time. Returns how many arrived.
    pub(crate) fn exchange(&self, count: u64) -> u64 {
        let mut arrived = 0;
        for _ in 0..count {
            for [from, at] in [[&self.sender, &self.receiver], [&self.receiver, &self.sender]] {
                let is_sent = from.send(WORD).is_ok();
                arrived += u64::from(is_sent && at.recv(&mut [0; 256]).is_ok());
            }
        }
        arrived
    }

    fn find_both(&self, path_mtus: [u32; 2]) -> Result<(), TestbedError> {
        let ways =
            [(Node::Sender, &self.sender, &self.receiver), (Node::Receiver, &self.receiver, &self.sender)];
        for ((node, from, at), expected) in ways.into_iter().zip(path_mtus) {
            discover(from, at, expected).map_err(|reason| {
                refuse_family(self.mechanism, self.family, format!("from the {node}, {reason}"))
            })?;
        }
        Ok(())
    }
}

/// Discovers the path MTU at both ends again in a way that the kernel accepts as an update.
pub(crate) fn refresh_path_mtus(
    path: &CheckedPath<'_>,
    mechanism: Mechanism,
    check: &PathCheck,
    mtus: [u32; 2],
) -> Result<(), TestbedError> {
    let family = check.family;
    let ends = ends_of(path.customer, mechanism, family).expect("the family is carried");
    let flow = ConnectedSockets::open(path, mechanism, family, &ends)?;
    let [sender, _, _, receiver] = path.hosts;
    for ((host, socket), mtu) in [(sender, &flow.sender), (receiver, &flow.receiver)].into_iter().zip(mtus) {
        // The packet is as large as the host's own link allows, regardless of the known path MTU. It causes a "too
        // big" answer.
        host.inside(|| probe(socket, mtu).attempt("ask for the path MTU"))?;
    }
    flow.find_both(check.path_mtus)
}

fn probe(socket: &UdpSocket, mtu: u32) -> io::Result<()> {
    set_discovery(socket, libc::IP_PMTUDISC_PROBE)?;
    let room = vec![0; mtu.saturating_sub(headers(socket)) as usize];
    // This call may report the answer to an earlier packet. The kernel accepts both answers as updates.
    let _ = socket.send(&room);
    std::thread::sleep(AGAIN);
    Ok(())
}

/// Whether nobody answers a packet as large as the middle link's MTU, which the mechanism's headers make too large.
fn vanishes(socket: &UdpSocket, mtu: u32) -> io::Result<bool> {
    probe(socket, mtu)?;
    // The answer to the first packet is the error of the next call.
    Ok(socket.send(WORD).map_or_else(|error| error.raw_os_error() != Some(libc::EMSGSIZE), |_| true))
}

pub(crate) fn socket(own: IpAddr, port: u16, device: Option<&str>) -> Result<UdpSocket, Fault> {
    let own = SocketAddr::new(own, port);
    let socket = bind_at_device(own, device).attempt(format!("take a port of {}", own.ip()))?;
    socket.set_read_timeout(Some(AGAIN)).attempt("wait for packets")?;
    Ok(socket)
}

pub(crate) fn connect(socket: &UdpSocket, other: SocketAddr) -> Result<(), Fault> {
    socket.connect(other).attempt(format!("send to {other}"))
}

/// The header bytes of a datagram sent from this socket.
fn headers(socket: &UdpSocket) -> u32 {
    let is_six = socket.local_addr().is_ok_and(|address| address.is_ipv6());
    if is_six { 48 } else { 28 }
}

/// The first captured packet that matches the mechanism. On failure, the packets that were captured instead.
fn find_matching_packet(
    capture: &mut Capture,
    mechanism: Mechanism,
    family: Family,
) -> Result<(Vec<Layer>, Vec<u8>), String> {
    let mut others: Vec<String> = Vec::new();
    while let Some(frame) =
        capture.next(AGAIN).map_err(|error| format!("cannot listen to {MIDDLE}: {error}"))?
    {
        let found = layers(&frame);
        if are_of(mechanism, family, &found) {
            return Ok((found, frame));
        }
        let text: Vec<String> = found.iter().map(Layer::to_string).collect();
        others.push(text.join(" / "));
        others.dedup();
    }
    Err(format!("packets on the middle link are of another kind: {}", others.join("; ")))
}

/// Sends packets as large as the known path MTU until one has arrived and the path MTU is the expected one.
fn discover(socket: &UdpSocket, at: &UdpSocket, expected: u32) -> Result<(), String> {
    set_discovery(socket, libc::IP_PMTUDISC_DO)
        .map_err(|error| format!("cannot set don't-fragment: {error}"))?;
    let start = Instant::now();
    let mut known = 0;
    while start.elapsed() < TIMEOUT {
        known = path_mtu(socket).map_err(|error| format!("the path MTU cannot be read: {error}"))?;
        let room = vec![0; known.saturating_sub(headers(socket)) as usize];
        match socket.send(&room) {
            // These are the socket errors after a "too big" answer and after a "port unreachable" answer.
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(format!("packets of {known} bytes cannot be sent: {error}")),
            Ok(_) => {}
        }
        let mut came = vec![0; room.len() + 1];
        let arrived = loop {
            match at.recv(&mut came) {
                Ok(length) if length == room.len() => break true,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        if arrived && path_mtu(socket).is_ok_and(|mtu| mtu == expected) {
            return Ok(());
        }
    }
    Err(format!("packets of {known} bytes do not arrive, or the path MTU, {expected}, is not known"))
}

/// Packets that each interface along the path has received and sent.
type HopCounts = Vec<(Node, &'static str, (u64, u64))>;

fn count(path: &CheckedPath<'_>) -> Result<HopCounts, TestbedError> {
    let uplink = path.customer.uplink();
    let middle = path.customer.middle();
    let interfaces = [(0, uplink), (1, INTERFACE), (1, MIDDLE), (2, middle), (2, INTERFACE), (3, INTERFACE)];
    let counted = interfaces.map(|(place, name)| {
        let host = path.hosts[place];
        host.inside(|| packets(name)).map(|packets| (host.node(), name, packets))
    });
    counted.into_iter().collect()
}

fn name_last_hop(before: &HopCounts, after: &HopCounts) -> &'static str {
    let mut reached = 0;
    while reached < 6 && packets_pass(before, after, reached) {
        reached += 1;
    }
    let ends = [
        "they did not leave the sender",
        "they left the sender and did not arrive at router1",
        "they arrived at router1 and did not leave it towards router2",
        "they left router1 and did not arrive at router2",
        "they arrived at router2 and did not leave it towards the receiver",
        "they left router2 and did not arrive at the receiver",
        "they arrived at the receiver's interface and not at its socket",
    ];
    ends[reached]
}

fn packets_pass(before: &HopCounts, after: &HopCounts, place: usize) -> bool {
    let (_, _, was) = before[place];
    let (_, _, is) = after[place];
    // At odd places packets arrive; at even places they leave.
    if place % 2 == 1 { is.0 > was.0 } else { is.1 > was.1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hop_is_named_at_which_packets_end() {
        for (moved, hop) in [
            (0, "they did not leave the sender"),
            (2, "they arrived at router1 and did not leave it towards router2"),
            (6, "they arrived at the receiver's interface and not at its socket"),
        ] {
            let before = vec![(Node::Sender, INTERFACE, (0, 0)); 6];
            let mut after = before.clone();
            after[..moved].fill((Node::Sender, INTERFACE, (1, 1)));
            assert_eq!(name_last_hop(&before, &after), hop);
        }
    }
}
