//! Properties and capabilities of this host.

use crate::host::abilities;
use crate::sys;
use stacklab_model::HostFacts;

/// Collects the facts, without the noise floor. Never fails: what cannot be read is empty, absent or zero.
pub fn collect() -> HostFacts {
    HostFacts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        cores: sys::processors_online(),
        abilities: abilities::all(),
        ..sys::host()
    }
}
