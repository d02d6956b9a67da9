//! A host: a process in a network namespace of its own, and where its stack is not this kernel's, the guest that is at the
//! namespace's end of the link.

use crate::error::{Fault, TestbedError};
use crate::host::guest::{Guest, GuestSpec, Running};
use crate::host::streams::{Streams, streams_of};
use crate::host::ticks::Ticks;
use crate::kernel::namespace::{in_namespace, spawn_in_namespace};
use crate::kernel::sys::{die_with_parent_in_new_namespace, kill_group};
use crate::link::addressing::INTERFACE;
use crate::topology::Node;
use stacklab_model::Family;
use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process in a network namespace of its own, and those that were started beside it. Dropping it kills them and waits for
/// them; the namespace goes with them.
#[derive(Debug)]
pub struct Host {
    node: Node,
    /// On its interface, IPv4 first.
    addresses: [IpAddr; 2],
    child: Child,
    /// Set once the child has been waited for; its number may then be another's.
    status: Option<ExitStatus>,
    companions: Vec<Child>,
    /// The guest, with its version.
    guest: Option<(Running, String)>,
}

impl Host {
    /// Starts the program with its standard input and output on pipes and its standard error inherited, in a fresh network
    /// namespace. It leads a process group of its own, so that an interrupt from the terminal does not reach it, and runs on the
    /// given processors only (on any, where there are none). The addresses are those that its interface is to have.
    pub(crate) fn start(
        node: Node,
        addresses: [IpAddr; 2],
        program: &Path,
        args: &[impl AsRef<OsStr>],
        processors: &[usize],
    ) -> Result<Self, TestbedError> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        die_with_parent_in_new_namespace(&mut command, processors);
        match command.spawn() {
            Ok(child) => {
                Ok(Self { node, addresses, child, status: None, companions: Vec::new(), guest: None })
            }
            Err(reason) => Err(TestbedError::Start { host: node, program: program.to_owned(), reason }),
        }
    }

    /// Its place on the path, by which it is known.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The name of its interface; a router's towards its client.
    pub fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// Its address on that interface.
    pub fn address(&self, family: Family) -> IpAddr {
        self.addresses[usize::from(family == Family::Ipv6)]
    }

    /// Its addresses on that interface, IPv4 first.
    pub(crate) fn addresses(&self) -> [IpAddr; 2] {
        self.addresses
    }

    /// What the process in the namespace writes and reads, to be handed elsewhere; `None` once taken.
    pub fn take_streams(&mut self) -> Option<Streams> {
        streams_of(&mut self.child)
    }

    /// The byte stream of the agent whose stack is on the link: the guest's, where there is one; waits until it has
    /// booted. Once.
    ///
    /// # Errors
    /// When a guest does not come up.
    pub fn meet(&mut self) -> Result<Streams, TestbedError> {
        match &mut self.guest {
            Some((guest, _)) => guest.meet().map_err(|fault| fault.at(self.node)),
            None => Ok(self.take_streams().expect("a host is met once")),
        }
    }

    /// Starts a guest in its namespace, whose stack takes the place of the namespace's own; does not wait until it has booted.
    pub(crate) fn start_guest(
        &mut self,
        guest: &dyn Guest,
        spec: &GuestSpec<'_>,
    ) -> Result<(), TestbedError> {
        let running = guest.start(spec).map_err(|fault| fault.at(self.node))?;
        self.guest = Some((running, guest.version()));
        Ok(())
    }

    /// Waits until its guest, where there is one, has booted and taken its role.
    pub(crate) fn come_up(&mut self) -> Result<(), TestbedError> {
        let Some((guest, _)) = &mut self.guest else { return Ok(()) };
        guest.come_up().map_err(|fault| fault.at(self.node))
    }

    /// What its guest is, with its version; `None` where there is none.
    pub(crate) fn guest_version(&self) -> Option<String> {
        Some(self.guest.as_ref()?.1.clone())
    }

    /// What the guest's processes have run until now, as this machine counts it; `None` where there is no guest.
    pub fn guest_ticks(&self) -> Option<Ticks> {
        Some(self.guest.as_ref()?.0.ticks())
    }

    /// Starts another program in its namespace, which ends with it.
    pub(crate) fn start_companion(&mut self, command: &mut Command) -> Result<(), TestbedError> {
        let child = spawn_in_namespace(self.pid(), command, &[]).map_err(|fault| fault.at(self.node))?;
        self.companions.push(child);
        Ok(())
    }

    /// That a companion has ended by itself, which none should.
    pub(crate) fn lost_companion(&mut self) -> Option<String> {
        let ended = self.companions.iter_mut().find_map(|child| child.try_wait().ok().flatten())?;
        Some(format!("what translates on {} has ended ({ended})", self.node))
    }

    /// How the process ended, where it has; it does not wait.
    ///
    /// # Errors
    /// The kernel's, where it does not say.
    pub fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Kills the process and what it started in its group, at once, and waits for it. Does nothing where it has
    /// ended.
    ///
    /// # Errors
    /// The kernel's, where it cannot be killed or waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        if let Some((guest, _)) = &mut self.guest {
            guest.kill()?;
        }
        // A companion that has been waited for has no number any more. The host itself is killed whatever becomes of these.
        for mut child in self.companions.drain(..) {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = kill_group(child.id());
                let _ = child.wait();
            }
        }
        if self.status.is_none() {
            kill_group(self.child.id())?;
            self.status = Some(self.child.wait()?);
        }
        Ok(())
    }

    /// Does one step of building the testbed in the host's namespace.
    pub(crate) fn inside<T: Send>(
        &self,
        step: impl FnOnce() -> Result<T, Fault> + Send,
    ) -> Result<T, TestbedError> {
        let entered = in_namespace(self.pid(), step);
        let done = entered.unwrap_or_else(|reason| {
            Err(Fault { attempted: "enter the network namespace".to_owned(), reason })
        });
        done.map_err(|fault| fault.at(self.node))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Nobody is left to tell; and the child dies with this process at the latest.
        let _ = self.kill();
    }
}
