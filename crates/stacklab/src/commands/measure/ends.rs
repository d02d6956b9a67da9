//! The two ends of a measurement: this host, and the host of a listening agent.

use crate::commands::measure::options::CommonOptions;
use crate::failure::Failure;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_agent::advice::connect_advice;
use stacklab_agent::auth::{AuthError, handshake, show_address};
use stacklab_agent::channel::Channel;
use stacklab_agent::key::Key;
use stacklab_agent::tls;
use stacklab_campaign::rig::agent_process::AgentProcess;
use stacklab_model::{Family, HostFacts, ScopedAddr};
use stacklab_traffic::host::control_socket::{limit_segments, notice_a_dead_peer};
use stacklab_traffic::host::route::{self, Route};
use stacklab_traffic::host::zone::{self, written_here};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time limit for opening the control connection to an agent's host.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Handshakes that are tried when one is cut short.
const HANDSHAKES: u32 = 2;
/// Time limit for an agent's handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// One end: its agent and its host's facts.
pub(super) struct End {
    pub agent: AgentClient,
    /// Its address in this measurement, as its own host names it; the zone of another host's is known to its agent
    /// only.
    pub address: ScopedAddr,
    pub facts: HostFacts,
}

/// Both ends, and what keeps them alive.
pub(super) struct AgentPair {
    pub here: End,
    pub there: End,
    /// The route from this host to the other one.
    pub route: Route,
    pub family: Family,
    /// When the other host's agent had answered.
    pub met: Instant,
    _local: AgentProcess,
}

impl AgentPair {
    /// Connects to the other host's agent and starts an agent on this host.
    pub(super) fn connect(
        options: &CommonOptions,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let (mut agent, there) = reach(options, &[], interrupted)?;
        let met = Instant::now();
        let route = route::route_to(&there.address, options.from.as_ref()).map_err(Failure::unreachable)?;
        let facts = agent.facts()?;
        let there = End { agent, address: there.address.elsewhere(), facts };
        let (local, mut agent) = AgentProcess::here(interrupted)?;
        agent.hello()?;
        let facts = agent.facts()?;
        let here = End { agent, address: route.address.clone(), facts };
        Ok(AgentPair { here, there, family: Family::of(route.address.ip()), route, met, _local: local })
    }
}

/// Connects to the agent on the first address of the host that accepts. `others` are further addresses of the host, to
/// and from which there will be traffic.
pub(super) fn reach(
    options: &CommonOptions,
    others: &[AgentAddress],
    interrupted: &'static AtomicBool,
) -> Result<(AgentClient, AgentAddress), Failure> {
    let (host, port) = (&options.host, options.port());
    let mut key = Key::given(options.key_file.as_deref()).map_err(Failure::usage)?;
    // With --tls nothing is said in plain.
    let channel = |stream: TcpStream| -> Result<Channel, AuthError> {
        match options.tls {
            Some(fingerprint) => Ok(tls::secure(stream, fingerprint, Instant::now() + HANDSHAKE_LIMIT)?),
            None => Ok(stream.into()),
        }
    };
    let mut failed = Vec::new();
    for address in addresses(options)? {
        let stream = match connect(&address, options.from.as_ref()) {
            Ok(stream) => stream,
            Err(reason) => {
                failed.push((address, reason));
                continue;
            }
        };
        let mut tickets = Vec::new();
        for other in others.iter().filter(|other| **other != address) {
            tickets.push(
                asking(
                    &mut key,
                    other,
                    || channel(connect(other, None)?),
                    |channel, key| show_address(channel, key, HANDSHAKE_LIMIT),
                )?
                .0,
            );
        }
        // A person may have typed the key in between, for longer than the agent waits.
        let mut first = Some(stream).filter(|_| tickets.is_empty());
        let again = || channel(first.take().map_or_else(|| connect(&address, options.from.as_ref()), Ok)?);
        let ((), channel) = asking(&mut key, &address, again, |channel, key| {
            handshake(channel, key, tickets.clone(), HANDSHAKE_LIMIT)
        })?;
        // TCP_NODELAY: a request is sent at once.
        let output = BufWriter::new(channel.clone());
        let mut agent = AgentClient::new(address.to_string(), channel, output, interrupted);
        agent.hello().map_err(|error| not_an_agent(error, &address))?;
        return Ok((agent, address));
    }
    let port_option = if port == stacklab_agent::PORT { String::new() } else { format!(" :{port}") };
    let service = format!("`stacklab agent --listen{port_option}`");
    Err(unreachable("no agent could be reached", &failed, &service, host, port))
}

/// Why none of a host's addresses answers, and what to do, by the reasons.
pub(super) fn unreachable(
    what: &str,
    failed: &[(AgentAddress, io::Error)],
    service: &str,
    host: &str,
    port: u16,
) -> Failure {
    let reasons: Vec<String> =
        failed.iter().map(|(address, reason)| format!("{address}: {reason}")).collect();
    let mut advice: Vec<String> = failed
        .iter()
        .map(|(address, reason)| connect_advice(reason, address.socket.is_ipv6(), service, host, port))
        .collect();
    advice.dedup();
    Failure::unreachable(format!("{what} ({}): {}", reasons.join("; "), advice.join("; ")))
}

/// Speaks with an agent; where it wants a key and a person is there, asks for it once and speaks again.
fn asking<T>(
    key: &mut Option<Key>,
    there: &AgentAddress,
    mut connect: impl FnMut() -> Result<Channel, AuthError>,
    mut speak: impl FnMut(&Channel, Option<&Key>) -> Result<T, AuthError>,
) -> Result<(T, Channel), Failure> {
    let mut once = |key: Option<&Key>| -> Result<(T, Channel), AuthError> {
        let mut spoken = Err(AuthError::CutShort);
        for _ in 0..HANDSHAKES {
            let channel = connect()?;
            spoken = speak(&channel, key).map(|spoken| (spoken, channel));
            if !matches!(spoken, Err(AuthError::CutShort)) {
                break;
            }
        }
        spoken
    };
    let spoken = match once(key.as_ref()) {
        Err(AuthError::NoKey) if std::io::stdin().is_terminal() => {
            let typed = rpassword::prompt_password(format!("Key of the agent on {there}: "))
                .map_err(Failure::step("prompt for the agent's key"))?;
            *key = Some(Key::of(&typed, "the answer").map_err(Failure::usage)?);
            once(key.as_ref())
        }
        spoken => spoken,
    };
    spoken.map_err(|error| match error {
        AuthError::NoAgent => no_agent(there),
        error => Failure::unreachable(format!("could not use the agent on {there}: {error}")),
    })
}

/// Where an agent may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentAddress {
    /// The address, with its zone as the user names it.
    pub address: ScopedAddr,
    /// As this host's kernel takes it, with the port.
    pub socket: SocketAddr,
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address.with_port(self.socket.port()))
    }
}

/// The addresses on the host in the requested family, each once.
pub(super) fn addresses(options: &CommonOptions) -> Result<Vec<AgentAddress>, Failure> {
    let CommonOptions { host, ipv4, ipv6, from, .. } = options;
    let port = options.port();
    let unknown = |reason: String| {
        Failure::unreachable(format!("could not look up the host `{host}`: {reason}; check its name"))
    };
    let mut all = Vec::new();
    for name in host.split(',') {
        // Brackets as in a URL.
        let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        if name.contains('%') || name.parse::<IpAddr>().is_ok() {
            all.push(written_here(name).map_err(Failure::usage)?);
        } else if name.contains(':') {
            return Err(Failure::usage(format!(
                "`{name}` is neither a host name nor an address: name the agent's port with --port"
            )));
        } else {
            let found = (name, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
            all.extend(found.map(ScopedAddr::from));
        }
    }
    let asked = match (ipv4, ipv6, from) {
        (true, ..) => Some(Family::Ipv4),
        (_, true, _) => Some(Family::Ipv6),
        (.., from) => from.as_ref().map(|from| Family::of(from.ip())),
    };
    if let (Some(asked), Some(from)) = (asked, from)
        && asked != Family::of(from.ip())
    {
        return Err(Failure::usage(format!("--from {from} is not an {asked} address")));
    }
    if let Some(from) = from {
        let bound = zone::socket_addr(from, 0).and_then(UdpSocket::bind);
        if let Err(reason) = bound.map(drop) {
            let advice = "name an address of this host, as `ip address` shows them";
            return Err(Failure::usage(format!("cannot measure --from {from}: {reason}; {advice}")));
        }
    }
    let is_right = |address: &&ScopedAddr| asked.is_none_or(|asked| asked == Family::of(address.ip()));
    let right: Vec<&ScopedAddr> = all.iter().filter(is_right).collect();
    if right.is_empty() {
        let family = asked.map_or_else(String::new, |asked| format!("{asked} "));
        let has: Vec<String> = all.iter().map(ScopedAddr::to_string).collect();
        if let (Some(from), false, false) = (from, *ipv4, *ipv6) {
            return Err(Failure::usage(format!(
                "--from {from} is of another family than {host} ({}): name an address of this host in its family",
                has.join(", ")
            )));
        }
        return Err(unknown(format!("it has no {family}address, only {}", has.join(", "))));
    }
    // A name may lead to link-local addresses, and only some resolvers say in which zone.
    let (mut found, mut reason) = (Vec::new(), String::new());
    for address in right {
        let socket = zone::socket_addr(address, port).and_then(|socket| match from {
            Some(from) => zone::ends(from, socket).map(|_| socket),
            None => Ok(socket),
        });
        match socket {
            Ok(socket) => found.push(AgentAddress { address: address.clone(), socket }),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    found.dedup();
    if found.is_empty() { Err(Failure::usage(reason)) } else { Ok(found) }
}

/// The first address of the host in each family.
pub(super) fn both_families(options: &CommonOptions) -> Result<BTreeMap<Family, AgentAddress>, Failure> {
    let mut found = BTreeMap::new();
    for address in addresses(options)? {
        found.entry(Family::of(address.address.ip())).or_insert(address);
    }
    match Family::ALL.iter().find(|family| !found.contains_key(family)) {
        None => Ok(found),
        Some(missing) => Err(Failure::unreachable(format!(
            "{} has no {missing} address: name a host that has both, or both addresses of one, as in 192.0.2.7,2001:db8::7",
            options.host
        ))),
    }
}

fn connect(to: &AgentAddress, from: Option<&ScopedAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to.socket), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(from) = from {
        socket.bind(&zone::socket_addr(from, 0)?.into())?;
    }
    limit_segments(&socket);
    socket.connect_timeout(&SockAddr::from(to.socket), CONNECT_LIMIT)?;
    socket.set_tcp_nodelay(true)?;
    notice_a_dead_peer(&socket)?;
    Ok(socket.into())
}

/// The peer is not an agent after all.
fn not_an_agent(error: AgentError, there: &AgentAddress) -> Failure {
    match error {
        AgentError::Gone { .. } | AgentError::Silent { .. } | AgentError::Faulty { .. } => no_agent(there),
        error => error.into(),
    }
}

fn no_agent(there: &AgentAddress) -> Failure {
    Failure::unreachable(format!(
        "something listens on {there}, but it is not a stacklab agent, or not as one of this version, or has no room for another connection: start `stacklab agent --listen` of this version there, on a free port, and name it with -p"
    ))
}
