//! Properties, counters and limits of this host and this process: uname, /proc and /sys.

use crate::sys::{Nanos, cpu_limit, processors_online};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::utsname::uname;
use nix::unistd::{SysconfVar, sysconf};
use stacklab_model::{Counters, HostFacts};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::path::Path;

/// Properties of this host. What cannot be read is empty, absent or zero.
pub(crate) fn host() -> HostFacts {
    let cpuinfo = read_trimmed_text("/proc/cpuinfo").unwrap_or_default();
    let flags = find_field(&cpuinfo, "flags").unwrap_or_default();
    let memory = read_trimmed_text("/proc/meminfo").unwrap_or_default();
    let memory_kib = memory.lines().next().and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    let name = uname().ok();
    HostFacts {
        os: to_text(name.as_ref().map(|name| name.sysname())),
        kernel: to_text(name.as_ref().map(|name| name.release())),
        machine: to_text(name.as_ref().map(|name| name.machine())),
        cpu_model: find_field(&cpuinfo, "model name").unwrap_or_default().to_owned(),
        memory_kib: memory_kib.unwrap_or(0),
        governor: read_trimmed_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: read_trimmed_text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        boot_id: read_trimmed_text("/proc/sys/kernel/random/boot_id"),
        time_namespace: time_namespace(),
        virtualised: flags.split(' ').any(|flag| flag == "hypervisor"),
        cpu_quota: cpu_limit()
            .map(|limit| limit.quota)
            .filter(|quota| quota.processors() < f64::from(processors_online())),
        ..HostFacts::default()
    }
}

fn read_trimmed_text(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The value in a line `NAME : VALUE`.
fn find_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

fn to_text(value: Option<&OsStr>) -> String {
    value.unwrap_or_default().to_string_lossy().into_owned()
}

/// The time namespace. A kernel with namespaces but without those of time (CONFIG_TIME_NS) has one clock for all
/// processes: `none`.
fn time_namespace() -> Option<String> {
    match fs::read_link("/proc/self/ns/time") {
        Ok(name) => Some(name.to_string_lossy().into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound && Path::new("/proc/self/ns/net").exists() => {
            Some("none".to_owned())
        }
        Err(_) => None,
    }
}

/// The largest error of the realtime clock, nanoseconds, as its synchronisation reports it to the kernel; `None` if
/// nothing synchronises it.
pub fn clock_error_ns() -> Option<Nanos> {
    // SAFETY: `timex` is plain data, for which all zeros is valid; with no modes nothing is changed.
    let mut clock: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the kernel writes one `timex` to the exclusive reference.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    let synchronised = state >= 0 && state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0;
    let error_us = u64::try_from(clock.maxerror).ok()?;
    synchronised.then(|| error_us.saturating_mul(1_000))
}

/// Counters of this host's network namespace, of its interface and of its control groups; a missing file gives none.
pub(crate) fn counters(interface: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    parse_dev(&read_if_there("/proc/net/dev"), interface, &mut counters);
    parse_snmp(&read_if_there("/proc/net/snmp"), &mut counters);
    parse_snmp6(&read_if_there("/proc/net/snmp6"), &mut counters);
    if let Some(limit) = cpu_limit() {
        counters.insert(Counters::THROTTLED_US.to_owned(), limit.throttled_us);
        counters.insert("cgroup.throttled_periods".to_owned(), limit.throttled_periods);
    }
    counters
}

fn read_if_there(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// One interface's line of /proc/net/dev.
pub(crate) fn parse_dev(text: &str, interface: &str, into: &mut BTreeMap<String, u64>) {
    const NAMES: [(usize, &str); 8] = [
        (0, "rx_bytes"),
        (1, "rx_packets"),
        (2, "rx_errors"),
        (3, "rx_dropped"),
        (8, "tx_bytes"),
        (9, "tx_packets"),
        (10, "tx_errors"),
        (11, "tx_dropped"),
    ];
    let line =
        text.lines().filter_map(|line| line.trim().split_once(':')).find(|(name, _)| *name == interface);
    let fields: Vec<u64> =
        line.map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().flat_map(str::parse).collect());
    for (place, name) in NAMES {
        if let Some(value) = fields.get(place) {
            into.insert(format!("interface.{name}"), *value);
        }
    }
}

/// /proc/net/snmp: pairs of lines, first names and then values, each after its protocol name.
pub(crate) fn parse_snmp(text: &str, into: &mut BTreeMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for [names, values] in lines.as_chunks::<2>().0 {
        let (Some((protocol, names)), Some((_, values))) = (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if !["Ip", "Udp", "Tcp"].contains(&protocol) {
            continue;
        }
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // Some entries are settings, not counters; one of them (MaxConn) is -1 and does not parse.
            if let Ok(value) = value.parse() {
                into.insert(format!("{}.{name}", protocol.to_lowercase()), value);
            }
        }
    }
}

/// /proc/net/snmp6: `Ip6InReceives 12`.
pub(crate) fn parse_snmp6(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) else { continue };
        for (prefix, group) in [("Ip6", "ip6"), ("Udp6", "udp6")] {
            if let Some(name) = name.strip_prefix(prefix) {
                into.insert(format!("{group}.{name}"), value);
            }
        }
    }
}

/// Memory of TCP and UDP sockets together, bytes; `None` if the kernel does not report it.
pub(crate) fn socket_memory_bytes() -> Option<u64> {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096).max(1) as u64;
    Some(pages(&fs::read_to_string("/proc/net/sockstat").ok()?)?.saturating_mul(page))
}

pub(crate) fn peak_rss_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Pages of TCP and UDP sockets together; `None` if neither is reported.
pub(crate) fn pages(sockstat: &str) -> Option<u64> {
    match (find_pages(sockstat, "TCP"), find_pages(sockstat, "UDP")) {
        (None, None) => None,
        (tcp, udp) => Some(tcp.unwrap_or(0).saturating_add(udp.unwrap_or(0))),
    }
}

fn find_pages(sockstat: &str, protocol: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))?;
    line.split_whitespace().skip_while(|word| *word != "mem").nth(1)?.parse().ok()
}

/// Maximum number of files that a trial opens in addition to its sockets; up to 64 are processors' idle states.
const OTHER_FILES: u64 = 128;

/// Raises the limit on open files for this many sockets. The error says what to do.
pub(crate) fn raise_file_limit(sockets: u64) -> io::Result<()> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let needed = open + sockets + OTHER_FILES;
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if i128::from(now) >= i128::from(needed) {
        return Ok(());
    }
    // Above the hard limit, only a process that may raise that limit too succeeds.
    setrlimit(Resource::RLIMIT_NOFILE, most.max(needed as _), most.max(needed as _))
        .or_else(|_| setrlimit(Resource::RLIMIT_NOFILE, most, most))?;
    let (now, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if i128::from(now) >= i128::from(needed) {
        return Ok(());
    }
    let text = format!(
        "it needs {needed} open files, and this process may have {now}: start the agent after `ulimit -n {needed}`, or use fewer flows"
    );
    Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
}

/// Limits the memory that this process can write to, bytes. Not its address space, of which each thread reserves much.
pub(crate) fn bound_memory(bytes: u64) -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_DATA, bytes as _, bytes as _)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name() {
        let mut counters = BTreeMap::new();
        parse_dev("Inter-|\n face |bytes\n  st0: 1 2 3 4 0 0 0 0 9 10 11 12 0 0 0 0\n", "st0", &mut counters);
        parse_snmp(
            "Udp: InDatagrams RcvbufErrors\nUdp: 5 6\nTcp: MaxConn OutSegs\nTcp: -1 7\nIcmp: A\nIcmp: 1\n",
            &mut counters,
        );
        parse_snmp6("Ip6FragCreates 8\nUdp6InErrors 9\nIcmp6InMsgs 1\n", &mut counters);
        let expected = [
            ("interface.rx_bytes", 1),
            ("interface.rx_dropped", 4),
            ("interface.rx_errors", 3),
            ("interface.rx_packets", 2),
            ("interface.tx_bytes", 9),
            ("interface.tx_dropped", 12),
            ("interface.tx_errors", 11),
            ("interface.tx_packets", 10),
            ("ip6.FragCreates", 8),
            ("tcp.OutSegs", 7),
            ("udp.InDatagrams", 5),
            ("udp.RcvbufErrors", 6),
            ("udp6.InErrors", 9),
        ];
        let found: Vec<(&str, u64)> = counters.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(found, expected);
    }

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
