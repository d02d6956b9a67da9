//! The client of a listening agent: the host's addresses, the connection, and the handshake with the key.

use crate::auth::{AuthError, handshake, show_address};
use crate::channel::Channel;
pub use crate::connection::ReachError;
use crate::connection::connect;
use crate::key::Key;
use crate::listen::ipv6_is_disabled;
use crate::target::name_failures;
pub use crate::target::{AgentAddress, Target, addresses, both_families};
use crate::tls;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::waiting::WaitNotice;
use std::io::{self, BufWriter};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Handshakes that are tried when one is cut short.
const HANDSHAKES: u32 = 2;
/// Time limit for an agent's handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Asks a person for the key of an agent, if there is one.
pub type AskKey<'a> = &'a dyn Fn(&AgentAddress) -> Option<io::Result<String>>;

/// Connects to the agent on the first address of the host that accepts. `others` are further addresses of the host, to
/// and from which there will be traffic.
pub fn reach(
    target: &Target,
    others: &[AgentAddress],
    ask_key: AskKey,
    interrupted: &'static AtomicBool,
) -> Result<(AgentClient, AgentAddress), ReachError> {
    let &Target { host, port, .. } = target;
    let mut key = Key::find(target.key_file).map_err(ReachError::Usage)?;
    let mut failed = Vec::new();
    for address in addresses(target)? {
        let from = target.source_to(&address.address);
        let stream = match connect(address.socket, from) {
            Ok(stream) => stream,
            Err(reason) => {
                failed.push((address, reason));
                continue;
            }
        };
        name_failures(&failed, &address);
        let mut tickets = Vec::new();
        for other in others.iter().filter(|other| **other != address) {
            let (ticket, _) = asking(
                &mut key,
                (other, ask_key),
                || open_channel(connect(other.socket, target.source_to(&other.address))?, target),
                |channel, key| show_address(channel, key, HANDSHAKE_LIMIT),
            )?;
            tickets.push(ticket);
        }
        // A person may have typed the key in between, for longer than the agent waits.
        let mut first = Some(stream).filter(|_| tickets.is_empty());
        let ((), channel) = asking(
            &mut key,
            (&address, ask_key),
            || open_channel(first.take().map_or_else(|| connect(address.socket, from), Ok)?, target),
            |channel, key| handshake(channel, key, tickets.clone(), HANDSHAKE_LIMIT),
        )?;
        // TCP_NODELAY: a request is sent at once.
        let output = BufWriter::new(channel.clone());
        let mut agent = AgentClient::new(address.to_string(), channel, output, interrupted);
        agent.hello().map_err(|error| match error {
            AgentError::Gone { .. } | AgentError::Silent { .. } | AgentError::Faulty { .. } => {
                no_agent(&address)
            }
            error => error.into(),
        })?;
        return Ok((agent, address));
    }
    let port_option = if port == crate::PORT { String::new() } else { format!(" :{port}") };
    let service = format!("`stacklab agent --listen{port_option}`");
    Err(unreachable("no agent could be reached", &failed, &service, host, port))
}

/// With --tls nothing is said in plain.
fn open_channel(stream: TcpStream, target: &Target) -> Result<Channel, AuthError> {
    match target.tls {
        Some(fingerprint) => Ok(tls::secure(stream, fingerprint, Instant::now() + HANDSHAKE_LIMIT)?),
        None => Ok(stream.into()),
    }
}

/// Why none of a host's addresses answers, and what to do, by the reasons.
pub fn unreachable(
    what: &str,
    failed: &[(AgentAddress, io::Error)],
    service: &str,
    host: &str,
    port: u16,
) -> ReachError {
    let mut reasons = Vec::new();
    let mut advice = Vec::new();
    for (address, reason) in failed {
        reasons.push(format!("{address}: {reason}"));
        advice.push(connect_advice(reason, address.socket.is_ipv6(), service, host, port));
    }
    advice.dedup();
    ReachError::Unreachable(format!("{what} ({}): {}", reasons.join("; "), advice.join("; ")))
}

/// Speaks with an agent; where it wants a key and a person is there, asks for it once and speaks again.
fn asking<T>(
    key: &mut Option<Key>,
    (there, ask_key): (&AgentAddress, AskKey),
    mut connect: impl FnMut() -> Result<Channel, AuthError>,
    mut speak: impl FnMut(&Channel, Option<&Key>) -> Result<T, AuthError>,
) -> Result<(T, Channel), ReachError> {
    let spoken = match speak_with_key(there, key.as_ref(), &mut connect, &mut speak) {
        Err(AuthError::NoKey) => match ask_key(there) {
            Some(typed) => {
                let typed = typed.map_err(|reason| {
                    ReachError::Usage(format!("could not prompt for the agent's key: {reason}"))
                })?;
                *key = Some(Key::of(&typed, "the answer").map_err(ReachError::Usage)?);
                speak_with_key(there, key.as_ref(), &mut connect, &mut speak)
            }
            None => Err(AuthError::NoKey),
        },
        spoken => spoken,
    };
    spoken.map_err(|error| match error {
        AuthError::NoAgent => no_agent(there),
        error => ReachError::Unreachable(format!("could not use the agent on {there}: {error}")),
    })
}

/// Speaks with an agent, and once more if the handshake is cut short.
fn speak_with_key<T>(
    there: &AgentAddress,
    key: Option<&Key>,
    connect: &mut impl FnMut() -> Result<Channel, AuthError>,
    speak: &mut impl FnMut(&Channel, Option<&Key>) -> Result<T, AuthError>,
) -> Result<(T, Channel), AuthError> {
    let mut spoken = Err(AuthError::CutShort);
    for _ in 0..HANDSHAKES {
        let _notice = WaitNotice::within(&format!("the agent on {there} to answer"), HANDSHAKE_LIMIT);
        let channel = connect()?;
        spoken = speak(&channel, key).map(|spoken| (spoken, channel));
        if !matches!(spoken, Err(AuthError::CutShort)) {
            break;
        }
    }
    spoken
}

fn no_agent(there: &AgentAddress) -> ReachError {
    ReachError::Unreachable(format!(
        "something listens on {there}, but it is not a stacklab agent, or not as one of this version, or has no room for another connection: start `stacklab agent --listen` of this version there, on a free port, and name it with -p"
    ))
}

/// What to do where a connection to `host` cannot be opened, whose `service` listens on this port.
fn connect_advice(reason: &io::Error, is_ipv6: bool, service: &str, host: &str, port: u16) -> String {
    let family = if is_ipv6 { "IPv6" } else { "IPv4" };
    match reason.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("start {service} on {host}: nothing listens on port {port} there")
        }
        io::ErrorKind::AddrNotAvailable if is_ipv6 && ipv6_is_disabled() => {
            "IPv6 is disabled on this host (sysctl net.ipv6.conf.all.disable_ipv6)".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => format!("this host has no {family} address to reach {host} from"),
        io::ErrorKind::NetworkUnreachable => format!("this host has no {family} route to {host}"),
        io::ErrorKind::HostUnreachable => format!("check whether {host} is up and has this address"),
        io::ErrorKind::PermissionDenied => {
            format!("a firewall of this host forbids it: allow TCP port {port}")
        }
        _ => format!("start {service} on {host}, and let port {port} through its firewall"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_reason() {
        for (kind, part) in [
            (io::ErrorKind::ConnectionRefused, "start the agent on far"),
            (io::ErrorKind::TimedOut, "firewall"),
            (io::ErrorKind::NetworkUnreachable, "no IPv4 route"),
            (io::ErrorKind::AddrNotAvailable, "this host has no IPv4 address"),
            (io::ErrorKind::PermissionDenied, "firewall of this host"),
        ] {
            let advice = connect_advice(&kind.into(), false, "the agent", "far", 5202);
            assert!(advice.contains(part), "{advice}");
            let starts = matches!(kind, io::ErrorKind::ConnectionRefused | io::ErrorKind::TimedOut);
            assert_eq!(advice.contains("start "), starts, "{advice}");
        }
    }
}
