//! One trial: two agents run it and report, and the reports are judged and made into figures.

use crate::client::{AgentClient, AgentError};
use crate::exchange::exchange;
use crate::legs;
use crate::{metrics, proof};
use stacklab_model::{
    Direction, Drops, HostReport, Metric, Rate, RunRecord, RunStatus, Trial, TrialSpec, Value, Warning,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Instant, SystemTime};

/// The planned path between the two hosts of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The sender's address.
    pub sender: IpAddr,
    /// The receiver's address.
    pub receiver: IpAddr,
    /// MTU of the path, bytes; where nobody planned it, of the sender's own link.
    pub mtu: u32,
    /// Whether the path has been planned so. Else another link of it may have a smaller MTU, and the receiver's own any.
    pub planned_mtu: bool,
    /// Whether offloads stay on.
    pub offloads: bool,
    /// Rate of the link, where it is limited.
    pub rate: Option<Rate>,
    /// Whether a little other traffic is on it meanwhile, both ways, which is no part of the trial.
    pub shared: bool,
    /// What routers between the hosts make of it, where there are any.
    pub nat: Option<NatPath>,
}

/// What routers between the hosts of a trial make of addresses and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NatPath {
    /// The address by which the sender calls the receiver.
    pub destination: IpAddr,
    /// The address by which the receiver calls the sender.
    pub source: IpAddr,
    /// The path MTU that the sender and the receiver find towards each other, bytes.
    pub path_mtus: [u32; 2],
    /// MTU of the sender's and of the receiver's own link, bytes.
    pub own_mtus: [u32; 2],
    /// Whether the sender's port is another to the receiver.
    pub renumbers: bool,
}

impl Path {
    /// The same path the other way.
    pub fn reversed(&self) -> Path {
        let nat = self.nat.map(|NatPath { destination, source, mut path_mtus, mut own_mtus, renumbers }| {
            path_mtus.reverse();
            own_mtus.reverse();
            NatPath { destination: source, source: destination, path_mtus, own_mtus, renumbers }
        });
        Path { sender: self.receiver, receiver: self.sender, nat, ..self.clone() }
    }

    /// The address by which the sender calls the receiver.
    pub fn destination(&self) -> IpAddr {
        self.nat.map_or(self.receiver, |nat| nat.destination)
    }

    /// The address by which the receiver calls the sender.
    pub fn source(&self) -> IpAddr {
        self.nat.map_or(self.sender, |nat| nat.source)
    }

    /// The path MTU of the sender and of the receiver towards each other, bytes.
    pub fn path_mtus(&self) -> [u32; 2] {
        self.nat.map_or([self.mtu; 2], |nat| nat.path_mtus)
    }

    /// The MTU of the sender's and the receiver's interface, bytes.
    pub fn own_mtus(&self) -> [u32; 2] {
        self.nat.map_or([self.mtu; 2], |nat| nat.own_mtus)
    }
}

/// What two agents reported of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// When the trial was started, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// How long it took, nanoseconds.
    pub wall_ns: u64,
    /// The reports of each of its transfers, the sender's first; or why an agent could not do its part.
    pub reports: Result<Vec<[HostReport; 2]>, String>,
}

/// What one trial's reports come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Whether the trial was as planned.
    pub status: RunStatus,
    /// Every figure of its probe.
    pub values: BTreeMap<Metric, Value>,
    /// Where messages were lost.
    pub drops: Drops,
    /// What a reader of the figures should know.
    pub warnings: Vec<Warning>,
    /// The reports that a record keeps: forward sender and receiver, then reverse sender and receiver.
    pub host_reports: Vec<HostReport>,
}

/// Has two agents run one trial, and collects their reports. In reverse, the second one sends.
///
/// # Errors
/// When an agent is gone or silent, or the user interrupts. What an agent could not do is no error but in the reports.
pub fn collect(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    spec: &TrialSpec,
    direction: Direction,
) -> Result<Collected, AgentError> {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = Instant::now();
    let seen = exchange([sender, receiver], &legs::of(path, spec, direction));
    let wall_ns = clock.elapsed().as_nanos() as u64;
    let reports = match seen {
        Ok(host_reports) => Ok(host_reports),
        Err(AgentError::Failed { host, reason }) => Err(format!("{host} {reason}")),
        Err(error) => return Err(error),
    };
    Ok(Collected { started_unix_ns: started.as_nanos() as u64, wall_ns, reports })
}

/// The figures of a trial, by its reports alone. Both ways at once, they are those of the stream from the first agent to
/// the second, but for the metrics that say otherwise.
pub fn figures(
    path: &Path,
    spec: &TrialSpec,
    direction: Direction,
    reports: Result<Vec<[HostReport; 2]>, String>,
) -> Figures {
    let host_reports = match reports {
        Ok(host_reports) => host_reports,
        Err(reason) => {
            return Figures {
                status: RunStatus::Invalid(vec![reason]),
                values: BTreeMap::new(),
                drops: Drops::default(),
                warnings: Vec::new(),
                host_reports: Vec::new(),
            };
        }
    };
    let legs = legs::of(path, spec, direction);
    let (main, [sent, received]) = (&legs[0], &host_reports[0]);
    let status = proof::prove_all(&legs, &host_reports);
    let mut values = metrics::values(&main.spec, &main.path, sent, received);
    values.extend(legs::values_beside(&legs, &host_reports));
    let drops = metrics::drops(&main.spec, sent, received);
    let mut warnings = Vec::new();
    for (leg, [sent, received]) in legs.iter().zip(&host_reports) {
        let of_leg = metrics::warnings(&leg.spec, leg.path.rate, leg.path.mtu, sent, received);
        let said =
            |warning: Warning| Warning { text: format!("{}{}", leg.prefix(), warning.text), ..warning };
        warnings.extend(of_leg.into_iter().map(said));
    }
    warnings.extend(legs::apart(&legs, &host_reports, spec.clock_offset_ns));
    warnings.extend(legs::unloaded(&legs, &host_reports, spec.clock_offset_ns));
    // A record has room for the two directions of what is measured, and none for what flowed beside.
    let kept = legs.iter().zip(host_reports).filter(|(leg, _)| leg.part != legs::Part::Load);
    let host_reports = kept.flat_map(|(_, host_reports)| host_reports).collect();
    Figures { status, values, drops, warnings, host_reports }
}

/// Runs one trial between two agents and makes a run of what they alone report.
///
/// # Errors
/// As [`collect`]. A trial that an agent could not do is a run all the same: invalid, with the agent's reason.
pub fn conduct(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    trial: &Trial,
    spec: TrialSpec,
    direction: Direction,
) -> Result<RunRecord, AgentError> {
    let Collected { started_unix_ns, wall_ns, reports } = collect(sender, receiver, path, &spec, direction)?;
    let Figures { status, values, drops, warnings, host_reports } = figures(path, &spec, direction, reports);
    if status != RunStatus::Valid {
        // A host that is gone takes the link with it and spoils what the other one sees: that is no run, and can be
        // done again.
        sender.hello()?;
        receiver.hello()?;
    }
    let trial = trial.clone();
    Ok(RunRecord { trial, spec, started_unix_ns, wall_ns, status, values, drops, host_reports, warnings })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stacklab_model::{
        Cell, Endpoint, Family, Framing, HostReport, Length, Offloads, Pacing, Probe, ProbeSpec, Received,
        Role, Sent, TcpInfo, Transport,
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
        let (mtu, planned_mtu) = (1500, true);
        Path { sender, receiver, mtu, planned_mtu, offloads: false, rate: None, shared: false, nat: None }
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
        TrialSpec::new(1, &Cell::new(family, transport, Framing::Segment, 128), probe)
    }

    /// Both sides of that stream when all went as planned.
    pub(crate) fn host_reports(spec: &TrialSpec) -> (HostReport, HostReport) {
        let [from, to] = addresses(spec.family).map(|address| SocketAddr::new(address, 5000));
        let side = |role, local, peer| {
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
