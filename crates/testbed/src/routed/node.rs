//! The four hosts of a routed testbed: a process each, in a network namespace of its own.

use crate::error::{Fault, TestbedError};
use crate::host::{Guest, Place, Running, Streams, Ticks, spawn, streams_of};
use crate::namespace::in_namespace;
use crate::sys::{die_with_parent_in, kill_group};
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

/// Which of the four hosts it is, in their order on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// The client that sends.
    Sender,
    /// The router next to it.
    Router1,
    /// The router beyond the middle link.
    Router2,
    /// The client that receives.
    Receiver,
}

impl Node {
    /// All four, in their order on the path.
    pub const ALL: [Node; 4] = [Node::Sender, Node::Router1, Node::Router2, Node::Receiver];

    /// What it is called, in messages and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Node::Sender => "sender",
            Node::Router1 => "router1",
            Node::Router2 => "router2",
            Node::Receiver => "receiver",
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A host's process, and those that were started beside it. Dropping it kills them, and the namespace goes with them.
#[derive(Debug)]
pub(crate) struct Machine {
    pub node: Node,
    child: Child,
    beside: Vec<Child>,
    guest: Option<Running>,
    ended: bool,
}

impl Machine {
    /// Starts the program as the host ([`spawn`]).
    pub fn start(
        node: Node,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        processors: &[usize],
    ) -> Result<Self, TestbedError> {
        match spawn(program, args, processors) {
            Ok(child) => Ok(Machine { node, child, beside: Vec::new(), guest: None, ended: false }),
            Err(reason) => {
                let attempted = format!("start `{}` in a namespace of its own", program.display());
                Err(Fault { attempted, reason }.at(node))
            }
        }
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts a guest in its namespace, whose stack takes the place of the namespace's own.
    pub fn invite(&mut self, guest: &dyn Guest, place: &Place<'_>) -> Result<(), TestbedError> {
        self.guest = Some(guest.start(place).map_err(|fault| fault.at(self.node))?);
        Ok(())
    }

    /// Waits until its guest, where there is one, has taken its part.
    pub fn come_up(&mut self) -> Result<(), TestbedError> {
        self.guest.as_mut().map_or(Ok(()), Running::come_up).map_err(|fault| fault.at(self.node))
    }

    /// The byte stream of the agent whose stack is on the link: the guest's, where there is one; waits until it has
    /// booted. Once.
    pub fn meet(&mut self) -> Result<Streams, TestbedError> {
        match &mut self.guest {
            Some(guest) => guest.meet().map_err(|fault| fault.at(self.node)),
            None => Ok(streams_of(&mut self.child).expect("a host is met once")),
        }
    }

    /// What the guest's processes have run until now; `None` where there is no guest.
    pub fn guest_ticks(&self) -> Option<Ticks> {
        self.guest.as_ref().map(Running::ticks)
    }

    /// Starts another program in its namespace, which ends with it.
    pub fn start_beside(&mut self, command: &mut Command) -> Result<(), TestbedError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let path = format!("/proc/{}/ns/net", self.pid());
        let mut start = || -> io::Result<Child> {
            command.process_group(0);
            die_with_parent_in(command, File::open(&path)?, &[]);
            command.spawn()
        };
        let child = start()
            .map_err(|reason| Fault { attempted: format!("start {program}"), reason }.at(self.node))?;
        self.beside.push(child);
        Ok(())
    }

    /// That a process beside it has ended by itself, which none should.
    pub fn lost(&mut self) -> Option<String> {
        let ended = self.beside.iter_mut().find_map(|child| child.try_wait().ok().flatten())?;
        Some(format!("what translates on {} has ended ({ended})", self.node))
    }

    /// Does something in its namespace.
    pub fn inside<T: Send>(&self, step: impl FnOnce() -> Result<T, Fault> + Send) -> Result<T, TestbedError> {
        let entered = in_namespace(self.pid(), step);
        let done = entered.unwrap_or_else(|reason| {
            Err(Fault { attempted: "enter the network namespace".to_owned(), reason })
        });
        done.map_err(|fault| fault.at(self.node))
    }

    fn kill(&mut self) -> io::Result<()> {
        if let Some(guest) = &mut self.guest {
            guest.kill()?;
        }
        // One that was found to have ended has no number any more. The host itself is killed whatever becomes of these.
        for mut child in self.beside.drain(..) {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = kill_group(child.id());
                let _ = child.wait();
            }
        }
        if !std::mem::replace(&mut self.ended, true) {
            kill_group(self.child.id())?;
            self.child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Nobody is left to tell; and they die with this process at the latest.
        let _ = self.kill();
    }
}
