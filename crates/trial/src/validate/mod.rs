//! The rules that make a run valid, each with the reason that a run states which breaks it. They compare what both
//! kernels and the sockets report with the plan:
//!
//! | rules | of |
//! |---|---|
//! | `transfers` | stacklab's own transfers: ends, options, flow, window, packets, and the numbers |
//! | [`numbers`], [`finished_run`] | the numbers of two hosts' reports, against each other and the trial's time |
//! | `arms` | the packets of all arms of an interleaved trial together |
//! | [`generator`] | a trial that another program drove |
//! | [`peer`] | a peer of another protocol: what it reports against what this host counted |
//! | `customers` | the flows of several customers: where each comes from |
//! | [`steady`], [`stations`], [`exchanges`] | the Wi-Fi network of a trial |

mod arrivals;
mod customers;
mod numbers;
mod packets;
mod peer;

pub(crate) use numbers::MAX_PROCESSORS;
pub use numbers::{Limits, finished_run, numbers};
pub(crate) use packets::arms;
pub use packets::{ArmReports, counted_payload, generator, program};
pub use peer::{PeerCounts, peer};

use crate::path::Path;
use crate::transfer::{Transfer, TransferRole};
use crate::validate::packets::{family_rules, packet_rules};
use stacklab_model::{
    ArmSchedule, Endpoint, Ends, Family, HostReport, Probe, Role, SizeOf, Transport, TrialSpec, Tuning,
};
use stacklab_traffic::timing::pacing_rate;
use std::net::IpAddr;

/// Maximum bytes of TCP options in a segment: the timestamps. The kernel's segment size of a connection excludes
/// them.
const TCP_OPTION_BYTES: u32 = 12;
/// Within this time of the channel each station that always sends has had its turn, nanoseconds.
const TURN_NS: u64 = 100_000_000;
/// Nodes of a Wi-Fi network before the other stations: sender, access point and receiver.
const ENDS: usize = 3;

/// Whether a rule holds, and the reason if it does not.
type Rule = (bool, String);

fn broken(rules: impl IntoIterator<Item = Rule>) -> Vec<String> {
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, reason)| reason).collect()
}

/// Whether the interfaces of a transfer also count other traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherTraffic {
    None,
    /// A stream in the other direction, or background traffic.
    Present,
    /// Another stream of the trial from the same sender.
    SameSender,
    /// The other arms of an interleaved trial: [`arms`] compares their packets with the plan together.
    Arms,
}

pub(crate) fn transfers(
    transfers: &[Transfer],
    host_reports: &[Ends<HostReport>],
    limits: &Limits,
) -> Vec<String> {
    let has_load = transfers.iter().any(|transfer| transfer.role == TransferRole::Load);
    let mut all = Vec::new();
    for (transfer, reports) in transfers.iter().zip(host_reports) {
        let others = match transfers {
            _ if matches!(transfer.spec.schedule, ArmSchedule::TokenPassing(_)) => OtherTraffic::Arms,
            [transfer] if transfer.path.shared => OtherTraffic::Present,
            [_] => OtherTraffic::None,
            _ if has_load => OtherTraffic::SameSender,
            _ => OtherTraffic::Present,
        };
        let mut reasons = numbers(&transfer.spec, limits, transfer.from, reports.as_ref());
        reasons.extend(transfer_rules(&transfer.spec, &transfer.path, reports, others));
        for reason in reasons {
            all.push(format!("{}{reason}", transfer.prefix()));
        }
    }
    all
}

fn transfer_rules(
    spec: &TrialSpec,
    path: &Path,
    Ends { sender, receiver }: &Ends<HostReport>,
    others: OtherTraffic,
) -> Vec<String> {
    let [there, back] = path.path_mtus();
    let [own, other] = path.own_mtus();
    let mut found = broken(end_rules(spec, path, sender, path.destination(), [own, there]));
    found.extend(broken(option_rules(spec, sender)));
    found.extend(broken(end_rules(spec, path, receiver, path.source(), [other, back])));
    found.extend(broken(option_rules(spec, receiver)));
    // An IPv6 socket could send either family.
    if spec.tuning.maps_ipv4() && others == OtherTraffic::None {
        found.extend(broken(family_rules(path, sender, receiver)));
    }
    let from = &sender.endpoint;
    let to = &receiver.endpoint;
    // For several flows the receiver reports one peer, which may not be the sender's first flow.
    let renumbers = path.nat.is_some_and(|nat| nat.renumbers);
    let same_port = spec.flows > 1 || renumbers || from.local.port() == to.peer.port();
    let same_flow = path.is_source(to.peer.ip()) && same_port && from.peer.port() == to.local.port();
    // Over a slow path, parts of long messages are sent and arrive.
    let is_sent = sender.sent.measured > 0 || sender.sent.bytes > 0;
    let has_arrived = receiver.received.measured > 0 || receiver.received.cut_bytes > 0;
    found.extend(broken([
        (
            to.peer.port() == 0 || path.is_as_found() || same_flow,
            format!(
                "the sender's flow is {} to {}, the receiver's {} to {}",
                from.local, from.peer, to.peer, to.local
            ),
        ),
        (is_sent, "no message was sent in the measured window".to_owned()),
        (
            !is_sent || has_arrived || may_lose_all(spec, path),
            "no message arrived in the measured window".to_owned(),
        ),
    ]));
    found.extend(customers::check_flows(path, receiver));
    if spec.size_of != SizeOf::Write && spec.probe.probe != Probe::Connect {
        found.extend(broken(packet_rules(spec, path, sender, receiver, others)));
    }
    found
}

/// Whether no datagram needs to arrive: then the loss is the figure.
fn may_lose_all(spec: &TrialSpec, path: &Path) -> bool {
    path.is_as_found() && spec.transport == Transport::Udp
}

/// The rules of one end, with the other end's address, and the MTU of its interface and of its path.
fn end_rules(
    spec: &TrialSpec,
    path: &Path,
    side: &HostReport,
    other: IpAddr,
    [own_mtu, path_mtu]: [u32; 2],
) -> Vec<Rule> {
    let name = side.role;
    let own = if name == Role::Sender { path.sender.ip() } else { path.receiver.ip() };
    let planned = Family::of(own);
    let Endpoint { family, transport, local, peer, interface_mtu, path_mtu: seen, offloads, .. } =
        &side.endpoint;
    let at = local.ip();
    let peer_at = peer.ip();
    let on = offloads.on();
    // Another host may have been reached at a translated address.
    let is_other_host = path.opener.is_some_and(|opener| opener != name);
    let has_peer = peer.port() != 0;
    let is_of_customer = name == Role::Receiver && path.is_source(peer_at);
    // If the opener has closed the connection, Windows does not report its peer.
    let may_have_none =
        spec.probe.probe == Probe::Connect && side.received.measured > 0 || may_lose_all(spec, path);
    // The path MTU of a socket without a peer is not a path's. A loopback interface's MTU may exceed the maximum
    // packet size.
    let path_mtu = path_mtu.min(planned.largest_packet_bytes());
    let path_fits = !has_peer || !path.planned_mtu || seen.is_none_or(|mtu| mtu == path_mtu);
    vec![
        // Behind NAT64 it has the other family, and a warning says so.
        (
            *family == planned || is_other_host,
            format!("the {name}'s socket is {family}, planned is {planned}"),
        ),
        (
            Family::of(at) == if is_other_host { *family } else { planned },
            format!("the {name}'s address is {at}"),
        ),
        (
            *transport == spec.transport,
            format!("the {name}'s socket is {transport}, planned is {}", spec.transport),
        ),
        (at == own || is_other_host, format!("the {name} is on {at}, planned is {own}")),
        (
            !path.planned_mtu || *interface_mtu == own_mtu,
            format!("the {name}'s interface has MTU {interface_mtu}, planned is {own_mtu}"),
        ),
        (has_peer || may_have_none, format!("nothing from {other} reached the {name}")),
        (
            !has_peer || peer_at == other || path.is_as_found() || is_of_customer,
            format!("the {name}'s peer is {peer_at}, planned is {other}"),
        ),
        (path_fits, format!("the {name}'s path has MTU {}, planned is {path_mtu}", seen.unwrap_or_default())),
        (
            path.offloads || on.is_empty(),
            format!("the {name} has offloads on that were planned off: {}", on.join(", ")),
        ),
    ]
}

/// The rules of a socket's options, read back. A different buffer size is only a warning.
fn option_rules(spec: &TrialSpec, side: &HostReport) -> Vec<Rule> {
    let Tuning { socket, nodelay, congestion_control, dscp, flow_label, busy_poll_us, mss, .. } =
        &*spec.tuning;
    let Endpoint { options, congestion_control: control, local, peer, .. } = &side.endpoint;
    let name = side.role;
    let sends = side.role == Role::Sender;
    let is_tcp = spec.transport == Transport::Tcp;
    // A listening socket reports only the options that accepted connections will have.
    let listens = !sends && (peer.port() == 0 || spec.probe.probe == Probe::Connect);
    // The kernel may refuse a flow label to a receiver (`socket_options::set_listening`), or the receiver may have no
    // single peer; it sends only replies.
    let labels = !listens && (sends || options.flow_label.is_some());
    // The receiver sends almost nothing, so its own segments may stay small. A small window also makes the sender's
    // segments small.
    let segment = options.mss.unwrap_or(0);
    let may_be_small = !sends || spec.tuning.receive_buffer.is_some();
    let fits = match *mss {
        None => true,
        Some(most) if may_be_small => (1..=most).contains(&segment),
        Some(most) => (most.saturating_sub(TCP_OPTION_BYTES)..=most).contains(&segment),
    };
    vec![
        compare(name, is_tcp, "congestion control", control.clone(), congestion_control.clone()),
        compare(name, is_tcp && !listens, "TCP_NODELAY", text(options.nodelay), text(*nodelay)),
        // Behind a translator the other end has an IPv6 address, which nothing maps.
        compare(name, local.ip().is_ipv4(), "socket", text(options.socket), text(*socket)),
        compare(name, sends, "pacing rate", text(options.max_pacing_rate), text(pacing_rate(spec))),
        compare(name, true, "DSCP", text(options.dscp), text(*dscp)),
        compare(name, true, "busy polling", text(options.busy_poll_us), text(*busy_poll_us)),
        compare(name, labels, "flow label", text(options.flow_label), text(*flow_label)),
        (
            fits,
            format!(
                "the {name}'s segments hold {segment} bytes, planned is an MSS of {}",
                mss.unwrap_or_default()
            ),
        ),
    ]
}

/// The rule of an option of one end, where it applies and one is planned.
fn compare(
    name: Role,
    applies: bool,
    option: &str,
    observed: Option<String>,
    planned: Option<String>,
) -> Rule {
    let holds = !applies || planned.is_none() || observed == planned;
    let observed = observed.unwrap_or("unknown".to_owned());
    let planned = planned.unwrap_or_default();
    (holds, format!("the {name}'s {option} is {observed}, planned is {planned}"))
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// What a Wi-Fi network or association breaks: it is there before and after a trial, and described alike.
pub fn steady<S>(
    what: &str,
    [before, after]: [&Result<S, String>; 2],
    describe: impl Fn(&S) -> String,
) -> Vec<String> {
    let mut rules: Vec<Rule> = Vec::new();
    for (moment, state) in [("before", before), ("after", after)] {
        let error = state.as_ref().err().map_or("", String::as_str);
        rules.push((state.is_ok(), format!("{moment} the trial, {error}")));
    }
    if let (Ok(before), Ok(after)) = (before, after) {
        let before = describe(before);
        let after = describe(after);
        let reason = format!("the Wi-Fi {what} changed during the trial: it was {before}, and is {after}");
        rules.push((before == after, reason));
    }
    broken(rules)
}

/// What the channel of a Wi-Fi network breaks while a host received: each of the other stations, which always have
/// something to send, had a part of it.
pub fn stations(report: &HostReport) -> Vec<String> {
    let used = report.channel.as_ref().filter(|used| used.airtime.elapsed_ns() >= TURN_NS);
    let others = used.into_iter().flat_map(|used| (1..).zip(used.nodes.iter().skip(ENDS)));
    let rules = others.map(|(number, node)| {
        let reason = format!("station {number}, which always has something to send, sent nothing");
        (node.transmissions > 0, reason)
    });
    broken(rules)
}

/// What a Wi-Fi network in virtual time breaks, in which no exchange may be late: those that were, of all, and the
/// longest delay in nanoseconds.
pub fn exchanges(late: u64, exchanges: u64, longest_ns: u64) -> Vec<String> {
    let longest_us = longest_ns as f64 / 1e3;
    broken([(
        late == 0,
        format!(
            "the kernel got {late} of {exchanges} exchanges on the air late, in virtual time (the longest delay so \
             far is {longest_us:.1} us)"
        ),
    )])
}

#[cfg(test)]
mod tests;
