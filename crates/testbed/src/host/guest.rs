//! The `Guest` trait: a system with its own network stack at a namespace's end of the link. The guests themselves are
//! another crate's.

use crate::{Fault, PathRole, Process, Streams, TestbedError, Ticks, Workdir, spawn_in_namespace};
use stacklab_model::System;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of guest. Its network stack replaces its namespace's end of the link.
pub trait Guest: fmt::Debug {
    /// Whether it uses a tap device that is bridged to the link's end. If not, it takes over the namespace's interface.
    fn wants_a_tap(&self) -> bool;

    /// Starts the guest in a role. Does not wait until it accepts messages.
    fn start(&self, spec: &GuestSpec<'_>, role: PathRole) -> Result<Box<dyn RunningGuest>, Fault>;

    /// The exact name and version, for messages and the record: `Linux 6.1.0-40-cloud-amd64 in QEMU`.
    fn version(&self) -> String;
}

/// A started guest. Dropping it kills it.
pub trait RunningGuest: fmt::Debug + Send + Sync {
    /// Waits until the guest has booted and taken its role, if it takes one.
    fn come_up(&mut self) -> Result<(), Fault>;

    /// Waits until the guest accepts messages, and returns its byte streams. Call it once.
    fn meet(&mut self) -> Result<Streams, Fault>;

    /// The CPU time that its processes have used, counted by this machine's kernel.
    fn ticks(&self) -> Ticks;
}

/// The parameters to start a guest with.
#[derive(Debug)]
pub struct GuestSpec<'a> {
    /// The host's name in its testbed.
    pub name: &'a str,
    /// A process in its network namespace.
    pub namespace: u32,
    /// The processors that it may use. Empty: any.
    pub processors: &'a [usize],
    /// Whether offloads stay on for its links.
    pub offloads: bool,
    /// The path of this program, which runs as the agent in the guest.
    pub program: &'a Path,
    /// The guest's own folder. It is removed together with the guest.
    pub folder: &'a Path,
}

impl GuestSpec<'_> {
    /// Starts a program in the namespace, in its own process group. The kernel kills it when this thread ends.
    pub fn spawn(&self, command: &mut Command) -> Result<Process, Fault> {
        spawn_in_namespace(self.namespace, command, self.processors)
    }
}

/// Prepares the guest for a host of a system; `None` for a plain namespace. Writes the files that the guest boots from
/// to the folder: `program`, which runs as the agent in it, and the given other programs.
pub type Prepare =
    fn(&System, program: &Path, others: &[PathBuf], &Workdir) -> Result<Option<Box<dyn Guest>>, TestbedError>;

/// A [`Prepare`] that has no guests.
pub(crate) fn namespaces_only(
    system: &System,
    _: &Path,
    _: &[PathBuf],
    _: &Workdir,
) -> Result<Option<Box<dyn Guest>>, TestbedError> {
    if *system == System::Namespace { Ok(None) } else { Err(not_built(system)) }
}

/// The error for a real machine.
pub fn not_built(system: &System) -> TestbedError {
    TestbedError(format!("{system} is a real machine: it cannot be a host of a virtual testbed"))
}
