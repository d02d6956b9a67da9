//! A host: a process in a network namespace of its own, and where its stack is not this kernel's, the guest that is at the
//! namespace's end of the link.

mod console;
mod guest;
mod gvisor;
mod outside;
mod uml;
mod vm;

pub(crate) use console::last_words;
pub(crate) use guest::Running;
pub(crate) use guest::{Guest, Place};
pub(crate) use gvisor::Gvisor;
pub use outside::Ticks;
pub(crate) use uml::Uml;
pub(crate) use vm::{Boots, Vm};

use crate::address::{INTERFACE, address};
use crate::error::{Fault, TestbedError};
use crate::namespace::in_namespace;
use crate::sys::{die_with_parent_in_new_namespace, kill_group};
use stacklab_model::{Family, Role};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// What an agent writes, and what it reads.
pub type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// A process in a network namespace of its own. Dropping it kills the process and waits for it; the namespace goes
/// with it.
#[derive(Debug)]
pub struct Host {
    role: Role,
    child: Child,
    /// Set once the child has been waited for; its number may then be another's.
    status: Option<ExitStatus>,
    guest: Option<Running>,
}

/// Starts the program with its standard input and output on pipes and its standard error inherited, in a fresh network
/// namespace. It leads a process group of its own, so that an interrupt from the terminal does not reach it, and runs on the
/// given processors only (on any, where there are none).
pub(crate) fn spawn(program: &Path, args: &[impl AsRef<OsStr>], processors: &[usize]) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    die_with_parent_in_new_namespace(&mut command, processors);
    command.spawn()
}

/// What a process writes and reads whose standard input and output are pipes; `None` once taken.
pub(crate) fn streams_of(child: &mut Child) -> Option<Streams> {
    let (output, input) = child.stdout.take().zip(child.stdin.take())?;
    Some((Box::new(output), Box::new(input)))
}

impl Host {
    /// Starts the program as the host ([`spawn`]).
    pub(crate) fn start(
        role: Role,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        processors: &[usize],
    ) -> Result<Self, TestbedError> {
        match spawn(program, args, processors) {
            Ok(child) => Ok(Self { role, child, status: None, guest: None }),
            Err(reason) => Err(TestbedError::Start { host: role, program: program.to_owned(), reason }),
        }
    }

    /// The host's part, by which it is known.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The name of its interface on the link.
    pub fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// Its address on the link.
    pub fn address(&self, family: Family) -> IpAddr {
        address(family, self.role).0
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
            Some(guest) => guest.meet().map_err(|fault| fault.on(self.role)),
            None => Ok(self.take_streams().expect("a host is met once")),
        }
    }

    /// Starts a guest at the host's end of the link, which is laid.
    pub(crate) fn invite(&mut self, guest: &dyn Guest, place: &Place<'_>) -> Result<(), TestbedError> {
        self.guest = Some(guest.start(place).map_err(|fault| fault.on(self.role))?);
        Ok(())
    }

    /// What the guest's processes have run until now, as this machine counts it; `None` where there is no guest.
    pub fn guest_ticks(&self) -> Option<Ticks> {
        self.guest.as_ref().map(Running::ticks)
    }

    /// The guest's process, where there is one.
    pub fn guest_pid(&self) -> Option<u32> {
        Some(self.guest.as_ref()?.pid())
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
        if let Some(guest) = &mut self.guest {
            guest.kill()?;
        }
        if self.status.is_none() {
            kill_group(self.child.id())?;
            self.status = Some(self.child.wait()?);
        }
        Ok(())
    }

    /// Does one step of laying the link in the host's namespace.
    pub(crate) fn inside<T: Send>(
        &self,
        step: impl FnOnce() -> Result<T, Fault> + Send,
    ) -> Result<T, TestbedError> {
        let entered = in_namespace(self.pid(), step);
        let done = entered.unwrap_or_else(|reason| {
            Err(Fault { attempted: "enter the network namespace".to_owned(), reason })
        });
        done.map_err(|fault| fault.on(self.role))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Nobody is left to tell; and the child dies with this process at the latest.
        let _ = self.kill();
    }
}
