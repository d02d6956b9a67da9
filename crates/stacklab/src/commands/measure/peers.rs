//! The other host of a measurement: one with an agent, or a server of iperf3.

use crate::commands::measure::options::{CommonOptions, Peer};
use crate::commands::measure::{ask_key, refuse};
use crate::failure::Failure;
use stacklab_agent::client::{AgentAddress, Target, addresses, both_families, reach, unreachable};
use stacklab_agent::target::name_failures;
use stacklab_campaign::rig::{AgentProcess, Iperf3Server, Rigs, ServerWay, TrialHosts, Way};
use stacklab_campaign::single::MeasureRequest;
use stacklab_model::{Family, Io, Length, Probe, SizeOf, Transport};
use stacklab_protocols::iperf3::{MAX_BLOCK_BYTES, MAX_STREAMS};
use stacklab_traffic::host::zone::{Route, route_to};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const SECOND_NS: u64 = 1_000_000_000;

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

    fn to_server(server: Iperf3Server) -> Self {
        Connected { hosts: Box::new(server), _local: None }
    }
}

/// Refuses what an iperf3 server cannot do.
pub(super) fn check_iperf3(common: &CommonOptions, request: &MeasureRequest) -> Result<(), Failure> {
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
    peer: Peer,
    interrupted: &'static AtomicBool,
) -> Result<(Connected, Family), Failure> {
    if peer == Peer::Iperf3 {
        let (server, family) = connect_to_server(target, interrupted)?;
        return Ok((Connected::to_server(server), family));
    }
    let (there, address) = reach(target, &[], &ask_key, interrupted)?;
    let (local, here) = AgentProcess::here(interrupted)?;
    let way = Way { here: find_route(target, &address)?, there: address.address };
    let family = Family::of(way.here.address.ip());
    let rigs =
        Rigs::both_families(target.host.to_owned(), BTreeMap::from([(family, way)]), false, [here, there])?;
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

fn server_way(target: &Target<'_>, address: &AgentAddress) -> Result<ServerWay, Failure> {
    let here = find_route(target, address)?;
    Ok(ServerWay { here, there: address.address.clone(), socket: address.socket })
}

fn find_route(target: &Target<'_>, there: &AgentAddress) -> Result<Route, Failure> {
    route_to(&there.address, target.source_to(&there.address)).map_err(Failure::unreachable)
}

/// The addresses of both families, and the ways there.
pub(super) struct BothWays {
    addresses: BTreeMap<Family, AgentAddress>,
    routes: BTreeMap<Family, Route>,
}

impl BothWays {
    pub(super) fn find(target: &Target<'_>) -> Result<Self, Failure> {
        let addresses = both_families(target)?;
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
        peer: Peer,
        reverse: bool,
        interrupted: &'static AtomicBool,
    ) -> Result<Connected, Failure> {
        let BothWays { addresses, routes } = self;
        let pairs = routes.into_iter().zip(addresses.values());
        if peer == Peer::Iperf3 {
            let ways = pairs.map(|((family, here), AgentAddress { address, socket })| {
                (family, ServerWay { here, there: address.clone(), socket: *socket })
            });
            // Of several addresses of a family, those that accept a connection were looked for.
            let has_served = self::addresses(target)?.len() > Family::ALL.len();
            let server = Iperf3Server::over(target.host, ways.collect(), reverse, has_served, interrupted);
            return Ok(Connected::to_server(server));
        }
        let ways = pairs.map(|((family, here), there)| (family, Way { here, there: there.address.clone() }));
        let ways = ways.collect();
        let all: Vec<AgentAddress> = addresses.into_values().collect();
        let (there, _) = reach(target, &all, &ask_key, interrupted)?;
        let (local, here) = AgentProcess::here(interrupted)?;
        let rigs = Rigs::both_families(target.host.to_owned(), ways, reverse, [here, there])?;
        Ok(Connected::to_agent(rigs, local))
    }
}
