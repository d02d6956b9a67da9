//! Properties and capabilities of this host.

use crate::host::abilities;
use crate::sys;
use stacklab_model::HostFacts;

/// Collects the facts, without the noise floor. Never fails: what cannot be read is empty, absent or zero.
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
        noise: None,
    }
}
