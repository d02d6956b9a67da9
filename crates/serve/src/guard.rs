//! Access control: requests with the token, which is in the address that is printed. On loopback also only requests
//! whose Host header names loopback, so that no foreign web page can send requests through a browser by a name that was
//! made to lead here.

use crate::ServeError;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use stacklab_agent::key::random_hex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The cookie with the token, set once the token was given. Browsers share cookies between all ports of a host, so
/// the port is added to the name.
const COOKIE_NAME: &str = "stacklab-token";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What the browser does with the answer: a person who follows a link navigates.
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

pub(crate) struct Guard {
    token: String,
    cookie: String,
    loopback: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Yes,
    /// Accepted: the token was in the address. The answer sets this cookie.
    Welcome(String),
    /// Rejected: the token is missing or wrong.
    Ask,
    No(&'static str),
}

impl Guard {
    pub(crate) fn new(bound: SocketAddr, token: Option<&str>) -> Result<Self, ServeError> {
        let usage = ServeError::Usage;
        let token = match token {
            None => random_hex(16).map_err(|error| {
                usage(format!("cannot generate a random token ({error}): set one with --token"))
            })?,
            Some(token) if token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                token.to_owned()
            }
            Some(_) => {
                let length = "a token has at least 16 letters and digits; without --token, one is generated";
                return Err(usage(length.to_owned()));
            }
        };
        let cookie = format!("{COOKIE_NAME}-{}", bound.port());
        Ok(Guard { token, cookie, loopback: bound.ip().is_loopback() })
    }

    pub(crate) fn entry(&self, bound: SocketAddr) -> String {
        format!("http://{}/?token={}", find_reachable_address(bound), self.token)
    }

    pub(crate) fn pass(&self, headers: &HeaderMap, query: &str) -> Pass {
        let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        // Browsers say where a request comes from: pages of other sites link here, and read nothing.
        if header(SEC_FETCH_SITE).is_some_and(|site| !matches!(site, "same-origin" | "none"))
            && header(SEC_FETCH_MODE) != Some("navigate")
        {
            return Pass::No("requests from pages of other sites are not accepted");
        }
        if self.loopback && !header(HOST).is_some_and(is_loopback) {
            return Pass::No("only requests to loopback host names are accepted");
        }
        let Guard { token, cookie, .. } = self;
        // Checked first, so that the token is removed from the address even if the browser already has the cookie.
        let shown = query.split('&').find_map(|part| part.strip_prefix("token="));
        if shown.is_some_and(|shown| same(shown, token)) {
            let attributes = "HttpOnly; SameSite=Strict; Path=/; Max-Age=604800";
            return Pass::Welcome(format!("{cookie}={token}; {attributes}"));
        }
        let bearer = header(AUTHORIZATION).and_then(read_bearer);
        let kept = header(COOKIE).and_then(|value| {
            let mut parts = value.split(';').filter_map(|part| part.trim().split_once('='));
            parts.find(|(name, _)| name == cookie).map(|(_, value)| value)
        });
        let is_known = [bearer, kept].into_iter().flatten().any(|shown| same(shown, token));
        if is_known { Pass::Yes } else { Pass::Ask }
    }
}

/// The token of an Authorization header; the scheme's name has no case (RFC 9110, section 11.1).
fn read_bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim_matches(' '))
}

/// An address by which other machines reach a socket bound to all addresses: the one with the default route. Loopback
/// without such a route.
fn find_reachable_address(bound: SocketAddr) -> SocketAddr {
    if !bound.ip().is_unspecified() {
        return bound;
    }
    // Documentation addresses. Nothing is sent: the system only selects its source address for them.
    let by_ipv4 = source_towards(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let address = match bound {
        SocketAddr::V4(_) => by_ipv4.unwrap_or(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(_) => {
            let there = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
            let by_ipv6 = source_towards(Ipv6Addr::UNSPECIFIED.into(), there.into());
            by_ipv6.or(by_ipv4).unwrap_or(Ipv6Addr::LOCALHOST.into())
        }
    };
    SocketAddr::new(address, bound.port())
}

/// The address from which this machine would send to another; `None` without a route.
fn source_towards(any: IpAddr, there: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((there, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified()).then_some(own)
}

/// Whether a Host header names loopback, with a port or without.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    if !port.is_empty() && port.strip_prefix(':').is_none_or(|digits| digits.parse::<u16>().is_err()) {
        return false;
    }
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in constant time, so that the duration does not reveal where the strings differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |apart, (a, b)| apart | (a ^ b)) == 0
}

/// For the fuzz targets (`fuzz/`): whether `stacklab serve`, bound to this address and with this token, answers a
/// request with these headers and this query. A header that is not HTTP is refused by the server's parser.
///
/// # Panics
/// If the token is not one that `serve` takes.
pub fn admits_request(bound: SocketAddr, token: &str, headers: &[(&[u8], &[u8])], query: &str) -> bool {
    let guard = Guard::new(bound, Some(token)).expect("a token of letters and digits");
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
            return false;
        };
        map.append(name, value);
    }
    matches!(guard.pass(&map, query), Pass::Yes | Pass::Welcome(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    const TOKEN: &str = "0123456789abcdef";

    fn guard(bound: &str) -> Guard {
        Guard::new(bound.parse().unwrap(), Some(TOKEN)).unwrap()
    }

    #[test]
    fn on_loopback_only_loopbacks_names_pass() {
        let guard = guard("127.0.0.1:8000");
        let query = format!("token={TOKEN}");
        let passes = |headers: &HeaderMap| matches!(guard.pass(headers, &query), Pass::Welcome(_));
        for host in ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"] {
            assert!(passes(&headers(HOST, host)), "{host}");
            // Not without the token: another user of this machine reads nothing.
            assert_eq!(guard.pass(&headers(HOST, host), ""), Pass::Ask, "{host}");
        }
        for host in [
            "example.org",
            "127.0.0.1.example.org",
            "localhost.example.org:8000",
            "127.0.0.1:80:evil.com",
            "localhost:",
            "localhost:x",
            "[::1]evil.com",
            "[::1",
            "",
        ] {
            assert!(!passes(&headers(HOST, host)), "{host}");
        }
        assert!(!passes(&HeaderMap::new()));
        for (site, fits) in
            [("same-origin", true), ("none", true), ("cross-site", false), ("same-site", false)]
        {
            let mut headers = headers(HOST, "localhost:8000");
            headers.insert(SEC_FETCH_SITE, site.parse().unwrap());
            assert_eq!(passes(&headers), fits, "{site}");
            headers.insert(SEC_FETCH_MODE, "navigate".parse().unwrap());
            assert!(passes(&headers), "{site}");
        }
    }

    #[test]
    fn the_token_is_asked_for() {
        let guard = Guard::new("0.0.0.0:8000".parse().unwrap(), None).unwrap();
        let Guard { token, cookie: name, .. } = &guard;
        assert_eq!(token.len(), 32);
        let none = HeaderMap::new();
        assert_eq!(guard.pass(&headers(HOST, "localhost"), ""), Pass::Ask);
        assert_eq!(guard.pass(&none, "token=0123456789abcdef0123456789abcdef"), Pass::Ask);
        let Pass::Welcome(cookie) = guard.pass(&none, &format!("a=b&token={token}")) else { panic!() };
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
        assert_eq!(guard.pass(&headers(COOKIE, &format!("a=b; {name}={token}")), ""), Pass::Yes);
        for scheme in ["Bearer", "bearer", "BEARER "] {
            let shown = headers(AUTHORIZATION, &format!("{scheme} {token}"));
            assert_eq!(guard.pass(&shown, ""), Pass::Yes, "{scheme}");
        }
        assert_eq!(guard.pass(&headers(AUTHORIZATION, &format!("Basic {token}")), ""), Pass::Ask);
        assert_eq!(guard.pass(&headers(AUTHORIZATION, "Bearer "), ""), Pass::Ask);
    }

    #[test]
    fn token_is_removed_from_the_address_despite_a_cookie() {
        let guard = guard("0.0.0.0:8000");
        let cookie = headers(COOKIE, "stacklab-token-8000=0123456789abcdef");
        assert_eq!(guard.pass(&cookie, "a=b"), Pass::Yes);
        assert!(matches!(guard.pass(&cookie, "token=0123456789abcdef"), Pass::Welcome(_)));
    }

    #[test]
    fn two_servers_of_a_host_have_a_cookie_each() {
        assert_ne!(guard("0.0.0.0:8000").cookie, guard("0.0.0.0:8001").cookie);
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
        let entry = guard("127.0.0.1:8000").entry("127.0.0.1:8000".parse().unwrap());
        assert_eq!(entry, format!("http://127.0.0.1:8000/?token={TOKEN}"));
    }

    #[test]
    fn a_token_of_ones_own_is_long_enough_to_be_one() {
        let bound = "127.0.0.1:8000".parse().unwrap();
        assert!(Guard::new(bound, Some("short")).is_err());
        assert!(Guard::new(bound, Some("0123456789abcdef; x=y")).is_err());
        assert!(Guard::new(bound, Some(TOKEN)).is_ok());
    }
}
