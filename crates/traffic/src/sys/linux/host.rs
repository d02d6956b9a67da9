//! Properties of this host: uname, /proc and /sys.

use crate::sys::types::SystemInfo;
use nix::sys::utsname::uname;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Properties of this host.
pub(crate) fn host() -> SystemInfo {
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
    SystemInfo {
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
