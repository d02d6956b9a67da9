//! Warnings of a path that was not built for the trial: translated addresses, and datagrams of which none arrived.

use crate::path::Path;
use stacklab_model::{HostReport, Role, Transport, TrialSpec, Warning};
use std::net::SocketAddr;

/// Packets of this size pass any path of IPv6, bytes.
const LEAST_MTU: u32 = 1280;

/// The warnings of one transfer.
pub(super) fn warnings(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
) -> Vec<Warning> {
    if !path.is_as_found() {
        return Vec::new();
    }
    let translated = translations(sender, receiver).into_iter().map(|(end, [from, to])| Warning {
        code: "translated".to_owned(),
        text: format!("the {end}'s address is translated on the way: {} -> {}", from.ip(), to.ip()),
        advice: "figures include the translator; measure from a host behind it to leave it out".to_owned(),
    });
    translated.chain(nothing_arrived(spec, path, sender, receiver)).collect()
}

/// The ends whose address the other one sees differently, each with the address before and behind the translator.
fn translations(sender: &HostReport, receiver: &HostReport) -> Vec<(&'static str, [SocketAddr; 2])> {
    let ends = [("sender", sender, receiver), ("receiver", receiver, sender)];
    let seen = ends.map(|(end, own, other)| (end, [own.endpoint.local, other.endpoint.peer]));
    // A host may not know its peer.
    seen.into_iter().filter(|(_, [from, to])| to.port() != 0 && from.ip() != to.ip()).collect()
}

/// Where all datagrams were lost: what may have dropped them.
fn nothing_arrived(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
) -> Option<Warning> {
    if spec.transport != Transport::Udp || sender.sent.measured == 0 || receiver.received.measured > 0 {
        return None;
    }
    let packet = spec.family.header_bytes() + spec.transport.header_bytes() + spec.message_bytes;
    // The end that waits is the one that a firewall has to let something in to.
    let ends = [receiver.endpoint.local, sender.endpoint.local];
    let to = ends[usize::from(path.opener == Some(Role::Receiver))];
    let black_hole = if packet > LEAST_MTU {
        format!(
            " Or a path MTU black hole, if packets smaller than these of {packet} bytes arrive (-l 1000)?"
        )
    } else {
        String::new()
    };
    Some(Warning {
        code: "nothing_arrived".to_owned(),
        text: format!(
            "no {} datagram arrived: all were dropped on the way; a firewall?{black_hole}",
            spec.family
        ),
        advice: format!(
            "let UDP through to {}, at any port, or at the one of `stacklab agent --listen --data-port PORT` there",
            to.ip()
        ),
    })
}
