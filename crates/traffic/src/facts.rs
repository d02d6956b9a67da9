//! What this host is and can do.

use crate::{abilities, noise, sys};
use nix::sys::utsname::uname;
use stacklab_model::HostFacts;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether to leave out what has to be measured.
static BRIEF: AtomicBool = AtomicBool::new(false);

/// Leaves out what has to be measured from now on.
pub fn brief() {
    BRIEF.store(true, Ordering::Relaxed);
}

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
        time_namespace: fs::read_link("/proc/self/ns/time")
            .ok()
            .map(|name| name.to_string_lossy().into_owned()),
        virtualised: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        abilities: abilities::all(),
        noise: (!BRIEF.load(Ordering::Relaxed)).then(noise::floor),
    }
}
