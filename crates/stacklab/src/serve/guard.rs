//! Who may ask: on loopback whoever names this machine as loopback, so that no page of elsewhere asks in a browser's name;
//! elsewhere whoever knows the token.

use crate::failure::Failure;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// The cookie that carries the token once it was shown.
const COOKIE_NAME: &str = "stacklab-token";

/// Lets requests pass or not.
pub enum Guard {
    /// The server is reached from this machine only.
    Loopback,
    /// The server is reached from elsewhere.
    Token(String),
}

/// How a request stands.
#[derive(Debug, PartialEq, Eq)]
pub enum Pass {
    /// It may pass.
    Yes,
    /// It showed the token in its address: it may pass, and is given this cookie.
    Welcome(String),
    /// It may not, and why.
    No(&'static str),
}

impl Guard {
    /// For an address that is bound. Elsewhere than on loopback there is always a token: the one that is named, or a new
    /// one.
    ///
    /// # Errors
    /// When the token is too short, or the system has no random numbers.
    pub fn new(bound: SocketAddr, token: Option<&str>) -> Result<Self, Failure> {
        match token {
            None if bound.ip().is_loopback() => Ok(Guard::Loopback),
            None => Ok(Guard::Token(new_token()?)),
            Some(token) if token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Ok(Guard::Token(token.to_owned()))
            }
            Some(_) => Err(Failure::Usage(
                "a token has at least 16 letters and digits; without --token one is made".to_owned(),
            )),
        }
    }

    /// The address to open.
    pub fn entry(&self, bound: SocketAddr) -> String {
        match self {
            Guard::Loopback => format!("http://{bound}/"),
            Guard::Token(token) => format!("http://{bound}/?token={token}"),
        }
    }

    /// Whether a request may pass: by its headers and its query.
    pub fn pass(&self, headers: &HeaderMap, query: &str) -> Pass {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        match self {
            Guard::Loopback if header(HOST).is_some_and(is_loopback) => Pass::Yes,
            Guard::Loopback => Pass::No("this server answers to the names of this machine's loopback only"),
            Guard::Token(token) => {
                let bearer = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
                let prefix = format!("{COOKIE_NAME}=");
                let cookie = header(COOKIE)
                    .and_then(|value| value.split(';').find_map(|part| part.trim().strip_prefix(&prefix)));
                if [bearer, cookie].into_iter().flatten().any(|shown| same(shown, token)) {
                    return Pass::Yes;
                }
                let shown = query.split('&').find_map(|part| part.strip_prefix("token="));
                match shown.is_some_and(|shown| same(shown, token)) {
                    true => Pass::Welcome(format!(
                        "{COOKIE_NAME}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"
                    )),
                    false => Pass::No("this server asks for its token: open the address that it printed"),
                }
            }
        }
    }
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

/// Compares all of both, so that the time it takes tells nothing of where they differ.
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
        let Guard::Token(token) = &guard else { panic!("there is always a token") };
        assert_eq!(token.len(), 32);
        let none = HeaderMap::new();
        assert!(matches!(guard.pass(&headers(HOST, "localhost"), ""), Pass::No(_)));
        assert!(matches!(guard.pass(&none, "token=0123456789abcdef0123456789abcdef"), Pass::No(_)));
        let Pass::Welcome(cookie) = guard.pass(&none, &format!("a=b&token={token}")) else { panic!() };
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
        assert_eq!(guard.pass(&headers(COOKIE, &format!("a=b; {COOKIE_NAME}={token}")), ""), Pass::Yes);
        assert_eq!(guard.pass(&headers(AUTHORIZATION, &format!("Bearer {token}")), ""), Pass::Yes);
        assert!(matches!(guard.pass(&headers(AUTHORIZATION, "Bearer "), ""), Pass::No(_)));
    }

    #[test]
    fn a_token_of_ones_own_is_long_enough_to_be_one() {
        let bound = "127.0.0.1:8000".parse().unwrap();
        assert!(Guard::new(bound, Some("short")).is_err());
        assert!(Guard::new(bound, Some("0123456789abcdef; x=y")).is_err());
        assert!(matches!(Guard::new(bound, Some("0123456789abcdef")), Ok(Guard::Token(_))));
    }
}
