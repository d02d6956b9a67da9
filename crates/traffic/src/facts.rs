//! What this host is and can do.

use crate::{noise, sys};
use nix::sys::utsname::uname;
use socket2::{Domain, Socket, Type};
use stacklab_model::{Family, HostFacts};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

/// Gathers the facts. What cannot be read is empty, absent or zero; nothing here fails. The first time it measures the noise
/// floor, so not while a trial runs, on another host of this machine neither.
pub fn gather() -> HostFacts {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = read("/proc/meminfo").unwrap_or_default();
    let memory_kib = memory.lines().next().and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    let name = uname().ok();
    let text = |value: Option<&std::ffi::OsStr>| value.unwrap_or_default().to_string_lossy().into_owned();
    HostFacts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: text(name.as_ref().map(|name| name.sysname())),
        kernel: text(name.as_ref().map(|name| name.release())),
        machine: text(name.as_ref().map(|name| name.machine())),
        cpu_model: field("model name").unwrap_or_default(),
        cores: sys::processors_online(),
        memory_kib: memory_kib.unwrap_or(0),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        virtualised: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        abilities: abilities(),
        noise: Some(noise::floor()),
    }
}

/// Tries each ability on loopback, in both families where the family matters.
fn abilities() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut note = |name: String, result: io::Result<()>| {
        found.insert(name, result.map_or_else(|error| error.to_string(), |()| "yes".to_owned()));
    };
    for family in Family::ALL.iter().copied() {
        note(format!("tcp_segment_framing_{family}"), segment_framing(SocketAddr::new(family.loopback(), 0)));
    }
    note("socket_drop_count".to_owned(), socket_drop_count());
    found
}

/// Whether messages sent with MSG_EOR leave in segments of their own and TCP_INFO counts them.
fn segment_framing(address: SocketAddr) -> io::Result<()> {
    const MESSAGES: u64 = 5;
    let listener = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    listener.bind(&address.into())?;
    listener.listen(1)?;
    let sender = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    sender.connect(&listener.local_addr()?)?;
    sender.set_tcp_nodelay(true)?;
    let (receiver, _) = listener.accept()?;
    receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
    for _ in 0..MESSAGES {
        sender.send_with_flags(&[1; 64], sys::SEND_WHOLE)?;
    }
    let mut all = [0; 64 * MESSAGES as usize];
    (&receiver).read_exact(&mut all)?;
    match sys::tcp_info(&sender)?.data_segs_out {
        Some(MESSAGES) => Ok(()),
        Some(segments) => Err(io::Error::other(format!("{MESSAGES} messages left in {segments} segments"))),
        None => Err(io::Error::other("TCP_INFO counts no segments")),
    }
}

fn socket_drop_count() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    sys::socket_drops(&socket).map(drop)
}
