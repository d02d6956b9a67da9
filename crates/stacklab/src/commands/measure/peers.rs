//! The other host of a measurement: one with an agent, a server of iperf3, or a STAMP reflector.

use crate::commands::measure::options::{CommonOptions, MeasureOptions, Peer};
use crate::commands::measure::routes::{find_route, server_way};
use crate::commands::measure::stamp::{make_settings, reach_reflector};
use crate::commands::measure::{ask_key, refuse};
use crate::failure::Failure;
use stacklab_agent::client::{AgentAddress, Target, addresses, both_families, reach, unreachable};
use stacklab_agent::target::{first_of_both_families, name_failures};
use stacklab_campaign::rig::{
    AgentProcess, Iperf3Server, Rigs, ServerWay, SessionSettings, StampReflector, TrialHosts, Way,
};
use stacklab_campaign::single::{MeasureRequest, check};
use stacklab_model::{Family, Io, Length, Probe, SizeOf, Transport};
use stacklab_protocols::iperf3::{MAX_BLOCK_BYTES, MAX_STREAMS};
use stacklab_traffic::host::zone::Route;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const SECOND_NS: u64 = 1_000_000_000;

/// The program on the other host, with what it has to be given.
pub(super) enum PeerProgram {
    Agent,
    Iperf3Server,
    StampReflector(SessionSettings),
}

impl PeerProgram {
    /// The program that the options name. Refuses what cannot be measured with it.
    pub(super) fn of(options: &MeasureOptions, request: &MeasureRequest) -> Result<Self, Failure> {
        let common = options.common();
        match common.peer {
            Peer::Agent => {
                check(request)?;
                Ok(PeerProgram::Agent)
            }
            Peer::Iperf3 => {
                check(request)?;
                check_iperf3(common, request)?;
                Ok(PeerProgram::Iperf3Server)
            }
            Peer::Stamp => Ok(PeerProgram::StampReflector(make_settings(options, request)?)),
        }
    }

    /// The request with the size of the program's packets, where its protocol determines it.
    pub(super) fn fit(&self, request: MeasureRequest) -> MeasureRequest {
        match self {
            PeerProgram::Agent | PeerProgram::Iperf3Server => request,
            PeerProgram::StampReflector(settings) => {
                MeasureRequest { size: settings.packet_bytes.map(|bytes| bytes as u32), ..request }
            }
        }
    }

    /// Whether it reports slices, so that the families can be interleaved.
    pub(super) fn reports_slices(&self) -> bool {
        matches!(self, PeerProgram::Agent)
    }
}

/// This host and the other one, ready for trials.
pub(super) struct Connected {
    pub hosts: Box<dyn TrialHosts>,
    /// The agent on this host, where the other one has an agent too.
    _local: Option<AgentProcess>,
}

impl Connected {
    fn to_agent(rigs: Rigs, local: AgentProcess) -> Self {
        Connected { hosts: Box::new(rigs), _local: Some(local) }
    }

    fn without_agent(hosts: impl TrialHosts + 'static) -> Self {
        Connected { hosts: Box::new(hosts), _local: None }
    }
}

/// Refuses what an iperf3 server cannot do.
fn check_iperf3(common: &CommonOptions, request: &MeasureRequest) -> Result<(), Failure> {
    let &MeasureRequest { probe, transport, size_of, io, delays, flows, size, length, warmup_ns, .. } =
        request;
    let refused = [
        (probe != Probe::Stream, "only streams (tcp, udp) go with --peer iperf3"),
        (size_of != SizeOf::Write, "--size-of payload"),
        (request.searched_loss_ppm.is_some(), "--search"),
        (io == Some(Io::Zerocopy), "--io zerocopy"),
        (delays && transport == Transport::Tcp, "--delays"),
        (warmup_ns % SECOND_NS != 0, "-O of a fraction of a second"),
        (warmup_ns > 600 * SECOND_NS, "-O of more than 600 s"),
        (matches!(length, Length::Time(ns) if ns > 86_400 * SECOND_NS), "-t of more than a day"),
        (flows > MAX_STREAMS, "more than 128 streams"),
        (size.is_some_and(|size| size > MAX_BLOCK_BYTES), "-l of more than 1M"),
        (warmup_ns > 0 && common.against.is_some(), "-O with --against"),
        (common.tls.is_some() || common.key_file.is_some(), "--tls and --key-file"),
    ];
    refuse(&refused, ": an iperf3 server cannot do this, use an agent of stacklab")
}

/// Connects to the first of the host's addresses that accepts, and says of which family it is.
pub(super) fn connect_to_first(
    target: &Target<'_>,
    peer: &PeerProgram,
    interrupted: &'static AtomicBool,
) -> Result<(Connected, Family), Failure> {
    match peer {
        PeerProgram::Agent => connect_to_agent(target, interrupted),
        PeerProgram::Iperf3Server => {
            let (server, family) = connect_to_server(target, interrupted)?;
            Ok((Connected::without_agent(server), family))
        }
        PeerProgram::StampReflector(settings) => {
            let (reflector, family) = reach_reflector(target, settings, interrupted)?;
            Ok((Connected::without_agent(reflector), family))
        }
    }
}

fn connect_to_agent(
    target: &Target<'_>,
    interrupted: &'static AtomicBool,
) -> Result<(Connected, Family), Failure> {
    let (there, address) = reach(target, &[], &ask_key, interrupted)?;
    let (local, here) = AgentProcess::here(interrupted)?;
    let way = Way { here: find_route(target, &address)?, there: address.address };
    let family = Family::of(way.here.address.ip());
    let ways = BTreeMap::from([(family, way)]);
    let rigs = Rigs::both_families(target.host.to_owned(), ways, false, [here, there])?;
    Ok((Connected::to_agent(rigs, local), family))
}

fn connect_to_server(
    target: &Target<'_>,
    interrupted: &'static AtomicBool,
) -> Result<(Iperf3Server, Family), Failure> {
    let &Target { host, port, .. } = target;
    let mut failed = Vec::new();
    for address in addresses(target)? {
        match Iperf3Server::connect(host, server_way(target, &address)?, interrupted) {
            Ok(server) => {
                name_failures(&failed, &address);
                return Ok((server, Family::of(address.address.ip())));
            }
            Err(reason) => failed.push((address, reason)),
        }
    }
    let service = format!("`iperf3 -s -p {port}`");
    Err(unreachable("no iperf3 server could be reached", &failed, &service, host, port).into())
}

/// The addresses of both families, and the ways there.
pub(super) struct BothWays {
    addresses: BTreeMap<Family, AgentAddress>,
    routes: BTreeMap<Family, Route>,
}

impl BothWays {
    pub(super) fn find(target: &Target<'_>, peer: &PeerProgram) -> Result<Self, Failure> {
        let addresses = match peer {
            PeerProgram::Agent | PeerProgram::Iperf3Server => both_families(target)?,
            // It accepts no connection by which one of several addresses could be chosen.
            PeerProgram::StampReflector(_) => first_of_both_families(target)?,
        };
        let mut routes = BTreeMap::new();
        for (family, address) in &addresses {
            routes.insert(*family, find_route(target, address)?);
        }
        Ok(BothWays { addresses, routes })
    }

    /// Whether the other host is another machine than this one.
    pub(super) fn leave_this_machine(&self) -> bool {
        const LOOPBACK: &str = "lo";
        let mut ways = self.routes.values().zip(self.addresses.values());
        ways.any(|(here, there)| here.interface != LOOPBACK && here.address != there.address)
    }

    /// Connects over both. With `reverse` the other host is the sender.
    pub(super) fn connect(
        self,
        target: &Target<'_>,
        peer: &PeerProgram,
        reverse: bool,
        interrupted: &'static AtomicBool,
    ) -> Result<Connected, Failure> {
        match peer {
            PeerProgram::Agent => self.connect_to_agent(target, reverse, interrupted),
            PeerProgram::Iperf3Server => {
                // Of several addresses of a family, those that accept a connection were looked for.
                let has_served = addresses(target)?.len() > Family::ALL.len();
                let ways = self.into_server_ways();
                let server = Iperf3Server::over(target.host, ways, reverse, has_served, interrupted);
                Ok(Connected::without_agent(server))
            }
            PeerProgram::StampReflector(settings) => {
                let ways = self.into_server_ways();
                let reflector = StampReflector::over(target.host, ways, settings.clone(), interrupted);
                Ok(Connected::without_agent(reflector))
            }
        }
    }

    fn connect_to_agent(
        self,
        target: &Target<'_>,
        reverse: bool,
        interrupted: &'static AtomicBool,
    ) -> Result<Connected, Failure> {
        let BothWays { addresses, routes } = self;
        let mut ways = BTreeMap::new();
        for ((family, here), there) in routes.into_iter().zip(addresses.values()) {
            ways.insert(family, Way { here, there: there.address.clone() });
        }
        let all: Vec<AgentAddress> = addresses.into_values().collect();
        let (there, _) = reach(target, &all, &ask_key, interrupted)?;
        let (local, here) = AgentProcess::here(interrupted)?;
        let rigs = Rigs::both_families(target.host.to_owned(), ways, reverse, [here, there])?;
        Ok(Connected::to_agent(rigs, local))
    }

    fn into_server_ways(self) -> BTreeMap<Family, ServerWay> {
        let mut ways = BTreeMap::new();
        for ((family, here), there) in self.routes.into_iter().zip(self.addresses.into_values()) {
            let AgentAddress { address, socket } = there;
            ways.insert(family, ServerWay { here, there: address, socket });
        }
        ways
    }
}
