//! Checks what the medium carries: a packet of a family between the ends, its frames on each hop, and whether
//! they are encrypted as planned.

use crate::radios::netlink::{Address, Frame};
use crate::{CarriedFrame, MediumCheck, Watch, WifiSpec};
use stacklab_model::wifi::Attachment;
use stacklab_model::{Family, Role};
use stacklab_testbed::{AtHost, Attempt, BSSID, Fault, Host, Node, TestbedError, hardware_address};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(4);
const AGAIN: Duration = Duration::from_millis(50);
/// The payload of the check's datagrams, bytes. No other frame of an idle network is that long.
const PAYLOAD: usize = 600;
const PORT: u16 = 47808;
const UDP_HEADER: usize = 8;
/// The header of a data frame with three addresses and the QoS field, and the LLC and SNAP headers (IEEE 802.11-2020,
/// 9.3.2.1).
const QOS_HEADER: usize = 26;
const LLC_HEADER: usize = 8;

/// Sends datagrams from the first host to the second one until one has arrived, and looks at its frames.
pub(super) fn check(
    ends: [&Host; 2],
    medium: &Watch,
    spec: &WifiSpec,
    family: Family,
) -> Result<MediumCheck, TestbedError> {
    let failed = |reason: String| {
        TestbedError(format!("the Wi-Fi network does not carry {family} as planned: {reason}"))
    };
    medium.keep();
    let arrived = carry(ends, family)?;
    let frames = medium.take_kept_frames();
    if !arrived {
        let ended = medium
            .find_end_reason()
            .map_or_else(String::new, |reason| format!("; the medium has ended: {reason}"));
        let reason = format!(
            "nothing arrived within {} s; the medium counted {:?}{ended}",
            TIMEOUT.as_secs(),
            medium.report().frames
        );
        return Err(failed(reason));
    }
    let packet = family.header_bytes() as usize + UDP_HEADER + PAYLOAD;
    let [sender, receiver] = [Role::Sender, Role::Receiver].map(hardware_address);
    let planned = plan_frame(spec, packet);
    let to_receiver = match spec.settings.receiver {
        Attachment::Station => {
            let hop = Hop { from: BSSID, to: receiver, name: "from the access point" };
            Some(hop.check(&frames, planned).map_err(failed)?)
        }
        Attachment::Wired => None,
    };
    let hop = Hop { from: sender, to: BSSID, name: "to the access point" };
    let to_access_point = hop.check(&frames, planned).map_err(failed)?;
    Ok(MediumCheck { family, packet, hops: [Some(to_access_point), to_receiver] })
}

struct Hop {
    from: Address,
    to: Address,
    name: &'static str,
}

impl Hop {
    /// Finds a frame of the check's packet, and compares it with the plan. The error says how it differs.
    fn check(&self, frames: &[Frame], planned: CarriedFrame) -> Result<CarriedFrame, String> {
        let name = self.name;
        // A QoS data frame (type 2, subtype 8) that is long enough for the check's packet.
        let frame = frames.iter().find(|frame| {
            let is_of_hop = frame.transmitter == self.from && frame.receiver() == self.to;
            is_of_hop && frame.bytes[0] & 0xfc == 0x88 && frame.bytes.len() > PAYLOAD
        });
        let Some(frame) = frame else { return Err(format!("the medium saw no frame of it {name}")) };
        let found = CarriedFrame { bytes: frame.bytes.len(), protected: frame.bytes[1] & PROTECTED != 0 };
        if found != planned {
            return Err(format!("a frame {name} has {}; planned: {}", describe(found), describe(planned)));
        }
        Ok(found)
    }
}

fn describe(frame: CarriedFrame) -> String {
    let not = if frame.protected { "" } else { "not " };
    format!("{} bytes, {not}encrypted", frame.bytes)
}

fn plan_frame(spec: &WifiSpec, packet: usize) -> CarriedFrame {
    let overhead = spec.access_point.overhead();
    CarriedFrame { bytes: QOS_HEADER + LLC_HEADER + packet + overhead, protected: overhead > 0 }
}

/// The flag of a protected frame, in the second byte of the frame control field.
const PROTECTED: u8 = 1 << 6;

fn carry([from, at]: [&Host; 2], family: Family) -> Result<bool, TestbedError> {
    let receiver = at.inside(|| socket(at, family, PORT))?;
    let sender = from.inside(|| socket(from, family, 0))?;
    let destination = SocketAddr::new(at.address(family), PORT);
    let start = Instant::now();
    let payload = [0x5a; PAYLOAD];
    let mut room = [0; PAYLOAD + 1];
    while start.elapsed() < TIMEOUT {
        let sent = sender.send_to(&payload, destination).attempt(format!("send to {destination}"));
        sent.at(Node::Sender)?;
        match receiver.recv(&mut room) {
            Ok(length) if room[..length] == payload => return Ok(true),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => {
                return Err(error).attempt("receive").at(Node::Receiver);
            }
        }
    }
    Ok(false)
}

fn socket(host: &Host, family: Family, port: u16) -> Result<UdpSocket, Fault> {
    let own = SocketAddr::new(host.address(family), port);
    let socket = UdpSocket::bind(own).attempt(format!("bind to {own}"))?;
    socket.set_read_timeout(Some(AGAIN)).attempt("set a timeout")?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::{Passphrase, Security};

    #[test]
    fn ccmp_adds_sixteen_bytes() {
        let open = WifiSpec::with_security(Security::Open);
        let passphrase = Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap();
        let wpa2 = WifiSpec::with_security(Security::Wpa2(passphrase));
        // 1408 bytes in UDP over IPv4, as captured on the air without the frame check sequence.
        assert_eq!(plan_frame(&open, 1436), CarriedFrame { bytes: 1470, protected: false });
        assert_eq!(plan_frame(&wpa2, 1436), CarriedFrame { bytes: 1486, protected: true });
    }
}
