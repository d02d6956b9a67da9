//! A host: a process in its own network namespace. If the host does not use this kernel's network stack, a guest
//! takes the namespace's end of the link.

use crate::error::hint;
use crate::kernel::processes::{count_read, count_written};
use crate::kernel::sys::{NetworkNamespace, die_with_parent};
use crate::{
    AtHost, Attempt, Fault, Node, PathRole, Process, TestbedError, Ticks, Workdir, in_namespace,
    spawn_in_namespace,
};
use serde::Serialize;
use stacklab_model::{Family, System};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub mod interface_bytes;
pub mod program;
pub mod version;
pub mod workdir;

/// A process in a network namespace, which vanishes with it. Dropping it kills its guest and companions too.
#[derive(Debug)]
pub struct Host {
    node: Node,
    /// The addresses of its interface, IPv4 first.
    addresses: [IpAddr; 2],
    /// The settings of its namespace that could not be made, and have the kernel's defaults.
    pub kept_settings: Vec<String>,
    // The drop order: the guest and the companions use the namespace, which vanishes with the process.
    guest: Option<(Box<dyn RunningGuest>, String)>,
    companions: Vec<Companion>,
    process: Process,
}

impl Host {
    /// Starts the program in a new network namespace, on the given processors only (empty: on any). Its standard input
    /// and output are pipes. It leads its own process group, which keeps interrupts from the terminal away from it. The
    /// addresses are those that its interface will have.
    pub fn start(
        node: Node,
        addresses: [IpAddr; 2],
        program: &Path,
        args: &[impl AsRef<OsStr>],
        processors: &[usize],
    ) -> Result<Self, TestbedError> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        die_with_parent(&mut command, NetworkNamespace::New, processors);
        let process = Process::spawn(&mut command).map_err(|reason| {
            let program = program.display();
            let hint = hint(&reason);
            TestbedError(format!(
                "cannot start `{program}` as {node} in a new network namespace: {reason}; {hint}"
            ))
        })?;
        Ok(Self { node, addresses, kept_settings: Vec::new(), guest: None, companions: Vec::new(), process })
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

    pub(crate) fn come_up(&mut self) -> Result<(), TestbedError> {
        let Some((guest, _)) = &mut self.guest else { return Ok(()) };
        guest.come_up().at(self.node)
    }

    pub(crate) fn guest_version(&self) -> Option<String> {
        Some(self.guest.as_ref()?.1.clone())
    }

    /// The CPU time of the guest's processes, counted by this machine's kernel. `None` if there is no guest.
    pub fn guest_ticks(&self) -> Option<Ticks> {
        Some(self.guest.as_ref()?.0.ticks())
    }

    /// Starts another program in the namespace, which messages call so, on these processors (empty: on any). It is
    /// killed together with the host.
    pub(crate) fn start_companion(
        &mut self,
        called: &'static str,
        command: &mut Command,
        processors: &[usize],
    ) -> Result<(), TestbedError> {
        let process = spawn_in_namespace(self.pid(), command, processors).at(self.node)?;
        self.companions.push(Companion { called, process });
        Ok(())
    }

    pub(crate) fn lost_companion(&mut self) -> Option<String> {
        for Companion { called, process } in &mut self.companions {
            if let Ok(Some(ended)) = process.status() {
                return Some(format!("{called} on {} has exited ({ended})", self.node));
            }
        }
        None
    }

    /// The bytes that its other programs have written so far, as the kernel counts them for each process. What a
    /// program sends by calls for sockets alone, or moves between them, is not in them.
    pub(crate) fn companions_wrote(&self) -> Result<u64, TestbedError> {
        let mut bytes = 0;
        for Companion { called, process } in &self.companions {
            let wrote = count_written(process.id()).attempt(format!("read what {called} has written"));
            bytes += wrote.at(self.node)?;
        }
        Ok(bytes)
    }

    /// The bytes that its other programs have read so far, counted the same way.
    pub(crate) fn companions_read(&self) -> Result<u64, TestbedError> {
        let mut bytes = 0;
        for Companion { called, process } in &self.companions {
            let read = count_read(process.id()).attempt(format!("read what {called} has read"));
            bytes += read.at(self.node)?;
        }
        Ok(bytes)
    }

    /// Runs one step of building the testbed in the host's namespace.
    pub fn inside<T: Send>(&self, step: impl FnOnce() -> Result<T, Fault> + Send) -> Result<T, TestbedError> {
        let entered = in_namespace(self.pid(), step).attempt("enter the network namespace");
        entered.and_then(|done| done).at(self.node)
    }
}

/// Another program in a host's namespace.
#[derive(Debug)]
struct Companion {
    /// What messages call it.
    called: &'static str,
    process: Process,
}

/// How a guest is attached to the end of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// By a tap device that is bridged to the link's end.
    Tap,
    /// It takes over the interface, with the addresses that the namespace has given it.
    Interface,
    /// It sends and receives frames at the interface, which has no addresses.
    Frames,
}

/// A kind of guest. Its network stack replaces its namespace's end of the link.
pub trait Guest: fmt::Debug {
    /// How it is attached to its link.
    fn attachment(&self) -> Attachment;

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

/// An agent's output and input, in this order.
pub type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// Writes a message as one line of JSON, and flushes it.
pub fn write_message(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}
