//! Testbeds inside a guest: the part on this machine, and where a study's testbeds are built.

pub(crate) mod batches;
pub(crate) mod mux;
pub(crate) mod placement;
pub(crate) mod requirements;
pub(crate) mod routed;
pub(crate) mod wifi;

use crate::{Boot, Greeting, GuestRole, Running};
use stacklab_testbed::{GuestSpec, TestbedError};
use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Boots a guest that hosts testbeds, and waits until they are built. The guest has its own network and is on no link
/// of this machine. Returns its channel as a stream to read from and one to write to.
fn boot(
    guest: &dyn Boot,
    role: GuestRole,
    offloads: bool,
    program: &Path,
    folder: &Path,
) -> Result<(Running, Greeting, UnixStream, UnixStream), TestbedError> {
    let namespace = std::process::id();
    let spec = GuestSpec { name: "lab", namespace, processors: &[], offloads, program, folder };
    let met = guest.boot(&spec, role).and_then(|mut running| {
        let (greeting, read, write) = running.meet_hosted()?;
        Ok((running, greeting, read, write))
    });
    met.map_err(|fault| failed(&guest.version(), fault))
}

/// A guest that hosts testbeds failed.
fn failed(guest: &str, reason: impl fmt::Display) -> TestbedError {
    TestbedError(format!("the testbed in {guest} failed: {reason}"))
}
