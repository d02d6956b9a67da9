//! Memory of the kernel's sockets and of this process.

use nix::unistd::{SysconfVar, sysconf};
use std::fs;

/// Memory of TCP and UDP sockets together, bytes; `None` if the kernel does not report it.
pub(crate) fn socket_memory_bytes() -> Option<u64> {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096).max(1) as u64;
    Some(pages(&fs::read_to_string("/proc/net/sockstat").ok()?)?.saturating_mul(page))
}

/// The largest resident set of this process so far, KiB.
pub(crate) fn peak_rss_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Pages of TCP and UDP sockets together; `None` if neither is reported.
pub(crate) fn pages(sockstat: &str) -> Option<u64> {
    let of = |protocol: &str| -> Option<u64> {
        let line = sockstat.lines().find_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))?;
        line.split_whitespace().skip_while(|word| *word != "mem").nth(1)?.parse().ok()
    };
    match (of("TCP"), of("UDP")) {
        (None, None) => None,
        (tcp, udp) => Some(tcp.unwrap_or(0).saturating_add(udp.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_tcp_and_udp() {
        let text = "sockets: used 14\nTCP: inuse 1 orphan 0 tw 0 alloc 5 mem 37\nUDP: inuse 0 mem 4\n\
                    UDPLITE: inuse 0\nFRAG: inuse 0 memory 99\n";
        assert_eq!(pages(text), Some(41));
        assert_eq!(pages("UDP: inuse 0 mem 4\n"), Some(4));
        assert_eq!(pages("sockets: used 14\nTCP: inuse 1\n"), None);
        assert_eq!(pages(""), None);
    }
}
