//! Access control. On loopback: requests whose Host header names loopback, so that no foreign web page can send
//! requests through a browser. Elsewhere: requests with the token.

use crate::failure::Failure;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The cookie with the token, set once the token was given. Browsers share cookies between all ports of a host, so
/// the port is added to the name.
const COOKIE_NAME: &str = "stacklab-token";

/// Accepts or rejects requests.
pub enum Guard {
    /// The server is reachable from this machine only.
    Loopback,
    /// The server is reachable from other machines.
    Token {
        /// The secret token.
        token: String,
        /// Name of the cookie with the token.
        cookie: String,
    },
}

/// The decision on a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Pass {
    /// Accepted.
    Yes,
    /// Accepted: the token was in the address. The answer sets this cookie.
    Welcome(String),
    /// Rejected, and why.
    No(&'static str),
}

impl Guard {
    /// A guard for a bound address. An address other than loopback always requires a token: the given one, or a new
    /// one.
    ///
    /// # Errors
    /// When the token is too short, or the system has no random numbers.
    pub fn new(bound: SocketAddr, token: Option<&str>) -> Result<Self, Failure> {
        let by = |token| Guard::Token { token, cookie: format!("{COOKIE_NAME}-{}", bound.port()) };
        match token {
            None if bound.ip().is_loopback() => Ok(Guard::Loopback),
            None => Ok(by(new_token()?)),
            Some(token) if token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Ok(by(token.to_owned()))
            }
            Some(_) => Err(Failure::Usage(
                "a token has at least 16 letters and digits; without --token one is made".to_owned(),
            )),
        }
    }

    /// The address to open.
    pub fn entry(&self, bound: SocketAddr) -> String {
        let address = named(bound);
        match self {
            Guard::Loopback => format!("http://{address}/"),
            Guard::Token { token, .. } => format!("http://{address}/?token={token}"),
        }
    }

    /// Decides on a request by its headers and its query.
    pub fn pass(&self, headers: &HeaderMap, query: &str) -> Pass {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        match self {
            Guard::Loopback if header(HOST).is_some_and(is_loopback) => Pass::Yes,
            Guard::Loopback => Pass::No("only requests to loopback host names are accepted"),
            Guard::Token { token, cookie } => {
                // Checked first, so that the token is removed from the address even if the browser already has the
                // cookie.
                let shown = query.split('&').find_map(|part| part.strip_prefix("token="));
                if shown.is_some_and(|shown| same(shown, token)) {
                    return Pass::Welcome(format!(
                        "{cookie}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"
                    ));
                }
                let bearer = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
                let kept = header(COOKIE).and_then(|value| {
                    let mut parts = value.split(';').filter_map(|part| part.trim().split_once('='));
                    parts.find(|(name, _)| name == cookie).map(|(_, value)| value)
                });
                match [bearer, kept].into_iter().flatten().any(|shown| same(shown, token)) {
                    true => Pass::Yes,
                    false => Pass::No("this server requires a token: open the address that it printed"),
                }
            }
        }
    }
}

/// An address by which other machines reach a socket bound to all addresses: the one with the default route. Loopback
/// without such a route.
fn named(bound: SocketAddr) -> SocketAddr {
    if !bound.ip().is_unspecified() {
        return bound;
    }
    // Documentation addresses. Nothing is sent: the system only selects its source address for them.
    let by_ipv4 = || outward(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let by_ipv6 = || {
        let there = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        bound.is_ipv6().then(|| outward(Ipv6Addr::UNSPECIFIED.into(), there.into())).flatten()
    };
    let loopback = match bound {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(by_ipv6().or_else(by_ipv4).unwrap_or(loopback), bound.port())
}

fn outward(any: IpAddr, there: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((there, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified()).then_some(own)
}

/// Whether a Host header names loopback, with any port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in constant time, so that the duration does not reveal where the strings differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |apart, (a, b)| apart | (a ^ b)) == 0
}

fn new_token() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::Usage(format!("no random token could be made ({error}): name one by --token"))
    })?;
    Ok(bytes.iter().fold(String::new(), |mut token, byte| {
        let _ = write!(token, "{byte:02x}");
        token
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn on_loopback_only_loopbacks_names_pass() {
        let guard = Guard::new("127.0.0.1:8000".parse().unwrap(), None).unwrap();
        for host in ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"] {
            assert_eq!(guard.pass(&headers(HOST, host), ""), Pass::Yes, "{host}");
        }
        for host in ["example.org", "127.0.0.1.example.org", "localhost.example.org:8000", ""] {
            assert!(matches!(guard.pass(&headers(HOST, host), ""), Pass::No(_)), "{host}");
        }
        assert!(matches!(guard.pass(&HeaderMap::new(), ""), Pass::No(_)));
    }

    #[test]
    fn elsewhere_the_token_is_asked_for() {
        let guard = Guard::new("0.0.0.0:8000".parse().unwrap(), None).unwrap();
        let Guard::Token { token, cookie: name } = &guard else { panic!("there is always a token") };
        assert_eq!(token.len(), 32);
        let none = HeaderMap::new();
        assert!(matches!(guard.pass(&headers(HOST, "localhost"), ""), Pass::No(_)));
        assert!(matches!(guard.pass(&none, "token=0123456789abcdef0123456789abcdef"), Pass::No(_)));
        let Pass::Welcome(cookie) = guard.pass(&none, &format!("a=b&token={token}")) else { panic!() };
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
        assert_eq!(guard.pass(&headers(COOKIE, &format!("a=b; {name}={token}")), ""), Pass::Yes);
        assert_eq!(guard.pass(&headers(AUTHORIZATION, &format!("Bearer {token}")), ""), Pass::Yes);
        assert!(matches!(guard.pass(&headers(AUTHORIZATION, "Bearer "), ""), Pass::No(_)));
    }

    #[test]
    fn a_token_in_the_address_is_taken_out_of_it_though_the_cookie_would_do() {
        let guard = Guard::new("0.0.0.0:8000".parse().unwrap(), Some("0123456789abcdef")).unwrap();
        let cookie = headers(COOKIE, "stacklab-token-8000=0123456789abcdef");
        assert_eq!(guard.pass(&cookie, "a=b"), Pass::Yes);
        assert!(matches!(guard.pass(&cookie, "token=0123456789abcdef"), Pass::Welcome(_)));
    }

    #[test]
    fn two_servers_of_a_host_have_a_cookie_each() {
        let name = |port: u16| match Guard::new(([0, 0, 0, 0], port).into(), None).unwrap() {
            Guard::Token { cookie, .. } => cookie,
            Guard::Loopback => panic!("there is always a token"),
        };
        assert_ne!(name(8000), name(8001));
    }

    #[test]
    fn the_address_that_is_printed_is_one_to_open() {
        for bound in ["0.0.0.0:8000", "[::]:8000"] {
            let bound: SocketAddr = bound.parse().unwrap();
            let entry = Guard::new(bound, None).unwrap().entry(bound);
            let (_, rest) = entry.split_once("http://").unwrap();
            let address: SocketAddr = rest.split_once('/').unwrap().0.parse().unwrap();
            assert!(!address.ip().is_unspecified() && address.port() == 8000, "{entry}");
        }
        let bound = "127.0.0.1:8000".parse().unwrap();
        assert_eq!(Guard::new(bound, None).unwrap().entry(bound), "http://127.0.0.1:8000/");
    }

    #[test]
    fn a_token_of_ones_own_is_long_enough_to_be_one() {
        let bound = "127.0.0.1:8000".parse().unwrap();
        assert!(Guard::new(bound, Some("short")).is_err());
        assert!(Guard::new(bound, Some("0123456789abcdef; x=y")).is_err());
        assert!(matches!(Guard::new(bound, Some("0123456789abcdef")), Ok(Guard::Token { .. })));
    }
}
