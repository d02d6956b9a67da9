//! Properties of this host: uname, /proc and /sys.

use crate::sys::types::Nanos;
use nix::sys::utsname::uname;
use stacklab_model::HostFacts;
use std::fs;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::path::Path;

/// Properties of this host. What cannot be read is empty, absent or zero.
pub(crate) fn host() -> HostFacts {
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
        os: text(name.as_ref().map(|name| name.sysname())),
        kernel: text(name.as_ref().map(|name| name.release())),
        machine: text(name.as_ref().map(|name| name.machine())),
        cpu_model: field("model name").unwrap_or_default(),
        memory_kib: memory_kib.unwrap_or(0),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        time_namespace: time_namespace(),
        virtualised: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        ..HostFacts::default()
    }
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
