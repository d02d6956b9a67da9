//! What to do about an error of the system, by its reason.

use std::io;

/// What to do where nothing can listen, after a semicolon: by the reason. `other` is who may be there already, and
/// `example` how another port is named.
pub fn listen_advice(reason: &io::Error, other: &str, example: &str) -> String {
    match reason.kind() {
        io::ErrorKind::AddrInUse => {
            format!("; check whether {other} runs there, or name another port, as in {example}")
        }
        io::ErrorKind::AddrNotAvailable => "; name an address of this host".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!("; a port below 1024 needs root: name another one, as in {example}")
        }
        _ => String::new(),
    }
}

/// Whether the system's IPv6 is turned off.
pub fn ipv6_is_disabled() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    setting.is_ok_and(|setting| setting.trim() == "1")
}

/// What to do where a connection to `host` cannot be opened, whose `service` listens on this port.
pub fn connect_advice(reason: &io::Error, is_ipv6: bool, service: &str, host: &str, port: u16) -> String {
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
        let connect = |kind: io::ErrorKind| connect_advice(&kind.into(), false, "the agent", "far", 5202);
        for (kind, part) in [
            (io::ErrorKind::ConnectionRefused, "start the agent on far"),
            (io::ErrorKind::TimedOut, "firewall"),
            (io::ErrorKind::NetworkUnreachable, "no IPv4 route"),
            (io::ErrorKind::AddrNotAvailable, "this host has no IPv4 address"),
            (io::ErrorKind::PermissionDenied, "firewall of this host"),
        ] {
            assert!(connect(kind).contains(part), "{}", connect(kind));
            let starts = matches!(kind, io::ErrorKind::ConnectionRefused | io::ErrorKind::TimedOut);
            assert_eq!(connect(kind).contains("start "), starts, "{}", connect(kind));
        }
        let listen = |kind: io::ErrorKind| listen_advice(&kind.into(), "another agent", "--listen :7000");
        assert!(listen(io::ErrorKind::AddrInUse).contains("another agent runs"));
        assert_eq!(listen(io::ErrorKind::AddrNotAvailable), "; name an address of this host");
        assert!(listen(io::ErrorKind::PermissionDenied).contains("root"));
    }
}
