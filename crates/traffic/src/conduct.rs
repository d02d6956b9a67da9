//! One trial, from two agents asked to two sides judged.

use crate::client::{AgentClient, AgentError};
use crate::message::{Answer, Request};
use crate::{metrics, proof};
use stacklab_model::{Drops, Length, Pacing, Rate, RunRecord, RunStatus, Side, Trial, TrialSpec};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// How long a trial may take beyond its own length: connecting, draining and a busy machine.
const SLACK: Duration = Duration::from_secs(120);
/// Messages a second below which a trial that ends by count is given up.
const SLOWEST_PER_SECOND: f64 = 100.0;

/// The planned path between the two hosts of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The sender's address.
    pub sender: IpAddr,
    /// The receiver's address.
    pub receiver: IpAddr,
    /// MTU of the path, bytes.
    pub mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
    /// Rate of the link, where it is limited.
    pub rate: Option<Rate>,
}

/// Runs one trial between two agents.
///
/// # Errors
/// When an agent is gone or silent, or the user interrupts. A trial that an agent could not do is a run all the
/// same: invalid, with the agent's reason.
pub fn conduct(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    trial: &Trial,
    spec: TrialSpec,
) -> Result<RunRecord, AgentError> {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = Instant::now();
    let sides = exchange(sender, receiver, path, &spec);
    let mut run = RunRecord {
        trial: trial.clone(),
        started_unix_ns: started.as_nanos() as u64,
        wall_ns: clock.elapsed().as_nanos() as u64,
        status: RunStatus::Valid,
        values: BTreeMap::new(),
        drops: Drops::default(),
        sides: Vec::new(),
        warnings: Vec::new(),
        spec,
    };
    match sides {
        Ok((sent, received)) => {
            run.status = proof::prove(&run.spec, path, &sent, &received);
            run.values = metrics::values(&run.spec, &sent, &received);
            run.drops = metrics::drops(&run.spec, &sent, &received);
            run.warnings = metrics::warnings(&run.spec, path.rate, path.mtu, &sent, &received);
            run.sides = vec![sent, received];
        }
        Err(AgentError::Failed { host, reason }) => {
            run.status = RunStatus::Invalid(vec![format!("{host} {reason}")])
        }
        Err(error) => return Err(error),
    }
    if !run.is_valid() {
        // A host that is gone takes the link with it and spoils what the other one sees: that is no run, and can be
        // done again.
        sender.hello()?;
        receiver.hello()?;
    }
    Ok(run)
}

fn exchange(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    spec: &TrialSpec,
) -> Result<(Side, Side), AgentError> {
    let limit = longest(spec);
    let listen = Request::Listen { spec: Box::new(spec.clone()), address: path.receiver };
    let (id, to) = match receiver.ask(listen, "listen", SLACK)? {
        (id, Answer::Listening { address }) => (id, address),
        _ => return Err(receiver.confused("listen")),
    };
    let send = Request::Send { spec: Box::new(spec.clone()), from: path.sender, to };
    // The receiver is told even when the sender failed, so that it does not wait for it for ever. When the sender is
    // gone the campaign ends, and the receiver with it.
    let sent = match sender.ask(send, "send", limit) {
        Err(error) if !matches!(error, AgentError::Failed { .. }) => return Err(error),
        sent => sent,
    };
    let received = receiver.ask(Request::Collect { listen: id }, "collect", limit);
    match (sent?, received?) {
        ((_, Answer::Done(sent)), (_, Answer::Done(received))) => Ok((*sent, *received)),
        ((_, Answer::Done(_)), _) => Err(receiver.confused("collect")),
        _ => Err(sender.confused("send")),
    }
}

fn longest(spec: &TrialSpec) -> Duration {
    let measured = match (spec.probe.length, spec.probe.pacing) {
        (Length::Time(ns), _) => ns as f64 / 1e9,
        (Length::Packets(packets), Pacing::Schedule(per_second)) => packets as f64 / per_second,
        (Length::Packets(packets), _) => packets as f64 / SLOWEST_PER_SECOND,
    };
    SLACK + Duration::from_nanos(spec.probe.warmup_ns) + Duration::from_secs_f64(measured.min(1e9))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stacklab_model::{
        CpuScope, Endpoint, Family, Framing, Offloads, Probe, ProbeSpec, Received, Role, Sent, TcpInfo,
        Transport,
    };
    use std::net::SocketAddr;

    fn addresses(family: Family) -> [IpAddr; 2] {
        let text = match family {
            Family::Ipv4 => ["198.18.0.1", "198.18.0.2"],
            Family::Ipv6 => ["2001:2::1", "2001:2::2"],
        };
        text.map(|address| address.parse().unwrap())
    }

    /// A path as planned, for tests of pure functions.
    pub(crate) fn path(family: Family) -> Path {
        let [sender, receiver] = addresses(family);
        Path { sender, receiver, mtu: 1500, offloads: false, rate: None }
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
        let (framing, cpu_scope) = (Framing::Segment, CpuScope::Shared);
        let io = stacklab_model::Io::Plain;
        TrialSpec {
            token: 1,
            family,
            transport,
            framing,
            message_bytes: 128,
            cpu_scope,
            poll_ns: 0,
            io,
            probe,
        }
    }

    /// Both sides of that stream when all went as planned.
    pub(crate) fn sides(spec: &TrialSpec) -> (Side, Side) {
        let [from, to] = addresses(spec.family).map(|address| SocketAddr::new(address, 5000));
        let side = |role, local, peer| Side {
            role,
            endpoint: Endpoint {
                family: spec.family,
                transport: spec.transport,
                local,
                peer,
                interface: "st0".to_owned(),
                interface_mtu: 1500,
                path_mtu: Some(1500),
                offloads: Offloads { tso: Some(false), ..Offloads::default() },
                congestion_control: None,
            },
            io: Some(spec.io),
            sent: Sent::default(),
            received: Received::default(),
            delays: None,
            series: Vec::new(),
            cpu: None,
            tcp: None,
            counters: Default::default(),
            peak_rss_kib: None,
        };
        let (mut sender, mut receiver) = (side(Role::Sender, from, to), side(Role::Receiver, to, from));
        let markers = if spec.transport == Transport::Udp { 3 } else { 1 };
        sender.sent =
            Sent { measured: 1000, markers, bytes: 128_000, last_ns: 1_000_000_000, ..Sent::default() };
        sender.counters.0.insert("interface.tx_packets".to_owned(), 1000 + markers);
        receiver.counters.0.insert("interface.rx_packets".to_owned(), 1000 + markers);
        receiver.received = Received {
            measured: 1000,
            at_first: 1,
            bytes: 128_000,
            last_ns: 1_000_000_000,
            ..Received::default()
        };
        if spec.transport == Transport::Tcp {
            sender.tcp = Some(TcpInfo {
                bytes_sent: Some(1001 * 128),
                data_segs_out: Some(1001),
                ..TcpInfo::default()
            });
        }
        (sender, receiver)
    }
}
