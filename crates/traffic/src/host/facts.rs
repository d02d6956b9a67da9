//! What this host is and can do.

use crate::host::abilities;
use crate::host::noise;
use crate::sys;
use stacklab_model::HostFacts;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether to leave the noise floor out.
static BRIEF: AtomicBool = AtomicBool::new(false);

/// Leaves the noise floor out from now on.
pub fn brief() {
    BRIEF.store(true, Ordering::Relaxed);
}

/// Collects the facts. What cannot be read is empty, absent or zero; nothing here fails. The first time it measures the noise
/// floor, so not while a trial runs, on another host of this machine neither.
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
