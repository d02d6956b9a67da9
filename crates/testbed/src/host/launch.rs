//! A host: a process in its own network namespace. If the host does not use this kernel's network stack, a guest
//! takes the namespace's end of the link.

use crate::error::hint;
use crate::kernel::sys::{Network, die_with_parent};
use crate::{
    AtHost, Attempt, Fault, Guest, GuestSpec, Node, PathRole, Process, RunningGuest, Streams, TestbedError,
    Ticks, in_namespace, spawn_in_namespace,
};
use stacklab_model::Family;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// A process in a network namespace, which vanishes with it. Dropping it kills its guest and companions too.
#[derive(Debug)]
pub struct Host {
    node: Node,
    /// The addresses of its interface, IPv4 first.
    addresses: [IpAddr; 2],
    // The drop order: the guest and the companions use the namespace, which vanishes with the process.
    guest: Option<(Box<dyn RunningGuest>, String)>,
    companions: Vec<Process>,
    process: Process,
}

impl Host {
    /// Starts the program in a new network namespace. Its standard input and output are pipes; its standard error is
    /// inherited. It leads its own process group, which keeps interrupts from the terminal away from it. It runs on
    /// the given processors only (empty: on any). The addresses are those that its interface will have.
    pub fn start(
        node: Node,
        addresses: [IpAddr; 2],
        program: &Path,
        args: &[impl AsRef<OsStr>],
        processors: &[usize],
    ) -> Result<Self, TestbedError> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        die_with_parent(&mut command, Network::New, processors);
        let process = Process::spawn(&mut command).map_err(|reason| {
            let (program, hint) = (program.display(), hint(&reason));
            TestbedError(format!(
                "cannot start `{program}` as {node} in a new network namespace: {reason}; {hint}"
            ))
        })?;
        Ok(Self { node, addresses, guest: None, companions: Vec::new(), process })
    }

    /// The host's place on the path, which identifies it.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its address on that interface.
    pub fn address(&self, family: Family) -> IpAddr {
        self.addresses[usize::from(family == Family::Ipv6)]
    }

    /// Its addresses on that interface, IPv4 first.
    pub fn addresses(&self) -> [IpAddr; 2] {
        self.addresses
    }

    /// The output and input streams of the process in the namespace. `None` once taken.
    pub fn take_streams(&mut self) -> Option<Streams> {
        self.process.streams()
    }

    /// The byte streams of the agent that uses the link, once a guest has booted. Call it once.
    pub fn meet(&mut self) -> Result<Streams, TestbedError> {
        match &mut self.guest {
            Some((guest, _)) => guest.meet().at(self.node),
            None => Ok(self.take_streams().expect("a host is met once")),
        }
    }

    /// Starts a guest, whose network stack replaces the namespace's. Does not wait until it has booted.
    pub(crate) fn start_guest(
        &mut self,
        guest: &dyn Guest,
        spec: &GuestSpec<'_>,
        role: PathRole,
    ) -> Result<(), TestbedError> {
        let running = guest.start(spec, role).at(self.node)?;
        self.guest = Some((running, guest.version()));
        Ok(())
    }

    /// Waits until the guest, if there is one, has booted and taken its role.
    pub(crate) fn come_up(&mut self) -> Result<(), TestbedError> {
        let Some((guest, _)) = &mut self.guest else { return Ok(()) };
        guest.come_up().at(self.node)
    }

    /// The guest's name and version. `None` if there is no guest.
    pub(crate) fn guest_version(&self) -> Option<String> {
        Some(self.guest.as_ref()?.1.clone())
    }

    /// The CPU time of the guest's processes, counted by this machine's kernel. `None` if there is no guest.
    pub fn guest_ticks(&self) -> Option<Ticks> {
        Some(self.guest.as_ref()?.0.ticks())
    }

    /// Starts another program (a companion) in the host's namespace. It is killed together with the host.
    pub(crate) fn start_companion(&mut self, command: &mut Command) -> Result<(), TestbedError> {
        let process = spawn_in_namespace(self.pid(), command, &[]).at(self.node)?;
        self.companions.push(process);
        Ok(())
    }

    /// Reports a companion that has ended by itself, which is an error.
    pub(crate) fn lost_companion(&mut self) -> Option<String> {
        let ended = self.companions.iter_mut().find_map(|process| process.status().ok().flatten())?;
        Some(format!("the translator on {} has exited ({ended})", self.node))
    }

    /// Runs one step of building the testbed in the host's namespace.
    pub fn inside<T: Send>(&self, step: impl FnOnce() -> Result<T, Fault> + Send) -> Result<T, TestbedError> {
        let entered = in_namespace(self.pid(), step).attempt("enter the network namespace");
        entered.and_then(|done| done).at(self.node)
    }
}
