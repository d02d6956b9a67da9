//! Targets as users write them: `NAME`, `http://NAME:PORT/PATH?QUERY`, `[2001:db8::1]:8443` (RFC 3986).

use crate::PathError;
use stacklab_model::ScopedAddr;
use stacklab_traffic::host::names::to_ascii;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAX_NAME_LENGTH: usize = 253;

/// A target without the addresses of its name.
pub(crate) struct Url {
    /// A name in ASCII, or an address.
    pub(crate) host: String,
    pub(crate) tls: bool,
    pub(crate) port: u16,
    /// Path and query, which begin with a slash.
    pub(crate) path: String,
    /// What was written instead of a name.
    pub(crate) address: Option<ScopedAddr>,
}

struct Parts<'a> {
    tls: bool,
    authority: &'a str,
    path: String,
}

struct Authority<'a> {
    host: &'a str,
    port: Option<&'a str>,
    is_bracketed: bool,
}

pub(crate) fn read_url(text: &str) -> Result<Url, PathError> {
    read(text).map_err(|what| PathError::Unreadable(format!("`{text}` is not a valid target: {what}")))
}

fn read(text: &str) -> Result<Url, String> {
    let Parts { tls, authority, path } = split_url(text)?;
    let Authority { host, port, is_bracketed } = split_authority(authority)?;
    let address = read_address(host, is_bracketed)?;
    let host = match &address {
        Some(address) => address.ip().to_string(),
        None => to_ascii(host)?.into_owned(),
    };
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let has_length = (1..=MAX_NAME_LENGTH).contains(&host.len());
    if address.is_none() && (is_bracketed || !has_length || !is_name) {
        return Err("name a host, an address, or a URL".to_owned());
    }
    if path.chars().any(|c| c.is_control() || c == ' ') || !path.is_ascii() {
        return Err(
            "its path has characters that a request cannot have: write them as %XX (RFC 3986)".to_owned()
        );
    }
    let port = read_port(port)?.unwrap_or(if tls { 443 } else { 80 });
    Ok(Url { host, tls, port, path, address })
}

/// The fragment is left out: it stays with the client (RFC 9110, section 7.1). A query may come without a path.
fn split_url(text: &str) -> Result<Parts<'_>, String> {
    let text = text.split('#').next().unwrap_or_default();
    let (tls, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        // A query of a target without a scheme may be a URL.
        Some((scheme, _)) if !scheme.contains(['/', '?']) => {
            return Err("only http:// and https:// are supported".to_owned());
        }
        _ => (true, text),
    };
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let slash = if rest[at..].starts_with('/') { "" } else { "/" };
    Ok(Parts { tls, authority: &rest[..at], path: format!("{slash}{}", &rest[at..]) })
}

/// An IPv6 address contains colons, and has brackets where a port may follow.
fn split_authority(authority: &str) -> Result<Authority<'_>, String> {
    if authority.contains('@') {
        return Err("user names and passwords are not sent: leave them out".to_owned());
    }
    if let Some((host, after)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = after.strip_prefix(':');
        if port.is_none() && !after.is_empty() {
            return Err("after `]` there is a port, as in [2001:db8::1]:8443".to_owned());
        }
        return Ok(Authority { host, port, is_bracketed: true });
    }
    match authority.split_once(':') {
        Some((host, port)) if !port.contains(':') => {
            Ok(Authority { host, port: Some(port), is_bracketed: false })
        }
        _ => Ok(Authority { host: authority, port: None, is_bracketed: false }),
    }
}

fn read_address(host: &str, is_bracketed: bool) -> Result<Option<ScopedAddr>, String> {
    if !host.contains(':') {
        return Ok(host.parse::<Ipv4Addr>().ok().map(|address| ScopedAddr::from(IpAddr::from(address))));
    }
    let address = read_ipv6(host, is_bracketed);
    Ok(Some(address.map_err(|_| "it is neither an IPv6 address nor a name")?))
}

/// An IPv6 address as written. A zone means nothing where the address is not link-local, and is left out there.
fn read_ipv6(text: &str, is_bracketed: bool) -> Result<ScopedAddr, String> {
    let Some((address, zone)) = text.split_once('%') else { return text.parse() };
    let is_link_local = address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local());
    if !is_link_local && !zone.is_empty() {
        return address.parse();
    }
    // In a URL, `%` is written as %25 (RFC 6874); many write it as it is.
    match zone.strip_prefix("25").filter(|zone| is_bracketed && !zone.is_empty()) {
        Some(zone) => format!("{address}%{zone}").parse(),
        None => text.parse(),
    }
}

/// A port may be empty (RFC 3986, section 3.2.3).
fn read_port(port: Option<&str>) -> Result<Option<u16>, String> {
    let Some(digits) = port.filter(|port| !port.is_empty()) else { return Ok(None) };
    let port = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    port.map(Some).ok_or_else(|| "the port is not a number up to 65535".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Host, whether TLS is wanted, port and path.
    type UrlParts = (String, bool, u16, String);

    fn take_apart(text: &str) -> Option<UrlParts> {
        read_url(text).map(|url| (url.host, url.tls, url.port, url.path)).ok()
    }

    fn expect(host: &str, tls: bool, port: u16, path: &str) -> Option<UrlParts> {
        Some((host.to_owned(), tls, port, path.to_owned()))
    }

    #[test]
    fn a_target_has_defaults_and_is_checked() {
        assert_eq!(take_apart("example.org"), expect("example.org", true, 443, "/"));
        assert_eq!(take_apart("http://example.org"), expect("example.org", false, 80, "/"));
        assert_eq!(take_apart("https://a.example:8443/big?x=1"), expect("a.example", true, 8443, "/big?x=1"));
        for (text, port) in [("2001:db8::1", 443), ("[2001:db8::1]", 443), ("http://[2001:db8::1]:81/", 81)] {
            assert_eq!(take_apart(text), expect("2001:db8::1", !text.contains("http:"), port, "/"), "{text}");
        }
        assert_eq!(take_apart("HTTP://Example.ORG/A"), expect("Example.ORG", false, 80, "/A"));
        assert_eq!(take_apart("192.0.2.1:8443/x"), expect("192.0.2.1", true, 8443, "/x"));
        for (text, tls) in [("HTTP://a", false), ("Https://a", true), ("hTTp://a", false)] {
            assert_eq!(take_apart(text), expect("a", tls, if tls { 443 } else { 80 }, "/"), "{text}");
        }
        assert_eq!(
            take_apart("HTTPS://BÜCHER.example:8443/x"),
            expect("xn--bcher-kva.example", true, 8443, "/x")
        );
        for wrong in [
            "",
            "ftp://a",
            "a b",
            "http://a:x/",
            "http://a:70000/",
            "http://a/\r\nX: y",
            "-a;b",
            "[a]",
            "[::1",
            "[::1]x",
            "a:1:2",
            "[]",
            "2001:db8::1:zz",
            "\u{ad}",
            "http://bücher .example",
            "http://bücher.example/ü",
        ] {
            assert_eq!(take_apart(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn forms_of_urls_are_read_as_browsers_read_them() {
        for (text, host, port, path) in [
            ("http://a.example?x=1", "a.example", 80, "/?x=1"),
            ("a.example?q=/b", "a.example", 443, "/?q=/b"),
            ("a.example/?to=http://b/", "a.example", 443, "/?to=http://b/"),
            ("http://a.example/b#c", "a.example", 80, "/b"),
            ("http://a.example#c/d?e", "a.example", 80, "/"),
            ("http://a.example/b?c=d#\u{fc} e", "a.example", 80, "/b?c=d"),
            ("http://a.example:/b", "a.example", 80, "/b"),
            ("https://[2001:db8::1]?x", "2001:db8::1", 443, "/?x"),
            ("http://[fe80::1%25eth0]:8000/", "fe80::1", 8000, "/"),
            ("http://[fe80::1%eth0]/", "fe80::1", 80, "/"),
            ("fe80::1%eth0", "fe80::1", 443, "/"),
            ("http://[::1%25lo]:8000/", "::1", 8000, "/"),
        ] {
            let url = read_url(text).unwrap();
            assert_eq!((url.host.as_str(), url.port, url.path.as_str()), (host, port, path), "{text}");
            let zone = url.address.as_ref().and_then(ScopedAddr::zone);
            assert_eq!(zone, text.contains("eth0").then_some("eth0"), "{text}");
        }
        for (wrong, reason) in [
            ("http://user:word@a.example/", "user names and passwords are not sent"),
            ("http://a.example:+80/", "the port is not a number"),
            ("http://[fe80::1%]/", "neither an IPv6 address nor a name"),
            ("http://[2001:db8::1%]/", "neither an IPv6 address nor a name"),
            ("http://?x", "name a host"),
            ("#b", "name a host"),
        ] {
            let error = read_url(wrong).err().unwrap().to_string();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }
}
