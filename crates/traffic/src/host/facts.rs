//! Properties and capabilities of this host.

use crate::host::abilities;
use crate::host::noise;
use crate::sys;
use stacklab_model::HostFacts;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether to omit the noise floor.
static BRIEF: AtomicBool = AtomicBool::new(false);

/// Omits the noise floor from now on.
pub fn brief() {
    BRIEF.store(true, Ordering::Relaxed);
}

/// Collects the facts. Never fails: what cannot be read is empty, absent or zero. The first call measures the noise
/// floor, so do not call it during a trial, not even one of another host on this machine.
pub fn collect() -> HostFacts {
    let host = sys::host();
    HostFacts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: host.os,
        kernel: host.kernel,
        machine: host.machine,
        cpu_model: host.cpu_model,
        cores: sys::processors_online(),
        memory_kib: host.memory_kib,
        governor: host.governor,
        clock_source: host.clock_source,
        boot_id: host.boot_id,
        time_namespace: host.time_namespace,
        virtualised: host.virtualised,
        abilities: abilities::all(),
        noise: (!BRIEF.load(Ordering::Relaxed)).then(noise::floor),
    }
}
