//! The network of a client: its namespace, the server's namespace, and this program between them as wire and resolver.
//!
//! | file | contents |
//! |---|---|
//! | `wire` | the thread that moves packets, delays and loses them, and logs them |
//! | `packet` | headers |
//! | `answer` | resets and ICMP errors |
//! | `dns`, `zone` | the resolver on the client's loopback interface, and what it says |
//! | `server` | the servers of HTTP, HTTPS and SSH |
//! | `tls`, `authority` | TLS, and the certificates of a throwaway authority |
//! | `files` | `resolv.conf`, `nsswitch.conf` and trusted certificates of the client |

pub(crate) mod answer;
pub(crate) mod authority;
pub(crate) mod dns;
mod files;
mod http;
pub(crate) mod packet;
mod server;
mod tls;
pub(crate) mod wire;
pub(crate) mod zone;

use dns::Dns;
use server::start_servers;
use stacklab_testbed::kernel::sysctl::silence_where_allowed;
use stacklab_testbed::{Attempt, Fault, TestbedError, create_uplink, in_new_namespace, unshare_mounts};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tls::Tls;
use wire::{MTU, Wire};

/// Addresses are from the documentation networks (RFC 5737, RFC 3849). Unique local addresses would not do: by RFC 6724
/// a client prefers IPv4 to them.
const CLIENT: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1))];
/// The server's address of each family.
pub(crate) const SERVER_IPV4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
pub(crate) const SERVER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
/// Addresses that nobody has: packets to them are lost.
pub(crate) const DEAD_IPV4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 66);
pub(crate) const DEAD_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x66);
/// The server's IPv4 address as a DNS64 server embeds it in a prefix of the network (RFC 6052, RFC 6147).
pub(crate) const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 64, 0, 0, 0, 0xc633, 0x6401);

/// The time since a measurement began, which all logs share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}

/// The content of a mutex. A thread that failed leaves the logs as they are.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client's network, as long as the thread lives that runs in it.
pub(crate) struct ClientNetwork {
    /// That of the logs of wire and resolver.
    pub clock: Clock,
    pub wire: Arc<Wire>,
    pub dns: Arc<Dns>,
    /// The file in which the client's programs find the authority of the server's certificate, if they have one.
    pub bundle: Option<&'static str>,
}

impl ClientNetwork {
    /// Builds the network, and runs `work` on a thread that is in it: the programs that the thread starts see this
    /// network alone. Call [`stacklab_testbed::enter`] before.
    pub(crate) fn with<T: Send>(work: impl FnOnce(&ClientNetwork) -> T + Send) -> Result<T, TestbedError> {
        let server = in_new_namespace(build_server).map_err(no_namespace)?;
        let server = server.map_err(Fault::advise)?;
        let done = in_new_namespace(|| Ok(work(&build_client(server)?))).map_err(no_namespace)?;
        done.map_err(Fault::advise)
    }
}

fn no_namespace(reason: std::io::Error) -> TestbedError {
    TestbedError(format!(
        "cannot make a network namespace: {reason}; `stacklab doctor` shows what is missing"
    ))
}

/// The server's side.
struct ServerSide {
    /// Its end of the wire, with which its namespace lives.
    uplink: File,
    /// The authority of its certificate as PEM.
    authority: String,
}

/// Sets up the server's namespace and starts its servers.
fn build_server() -> Result<ServerSide, Fault> {
    silence_where_allowed()?;
    let addresses: [IpAddr; 3] = [SERVER_IPV4.into(), SERVER_IPV6.into(), TRANSLATED.into()];
    let uplink = create_uplink("server", MTU, &addresses)?;
    let tls = Tls::generate().attempt("make the server's certificate")?;
    let authority = tls.authority.clone();
    start_servers(tls)?;
    Ok(ServerSide { uplink, authority })
}

/// Sets up the client's namespace, in which the calling thread is, and starts the resolver and the wire.
fn build_client(server: ServerSide) -> Result<ClientNetwork, Fault> {
    silence_where_allowed()?;
    unshare_mounts().attempt("make a mount namespace")?;
    files::show_own_resolver()?;
    let bundle = files::show_authority(&server.authority)?;
    let clock = Clock::start();
    let uplink = create_uplink("client", MTU, &CLIENT)?;
    let dns = Dns::start(clock)?;
    let wire = Wire::start(clock, uplink, server.uplink).attempt("start the wire")?;
    Ok(ClientNetwork { clock, wire, dns, bundle })
}
