//! The trait of guests: a stack of its own at a namespace's end of the link; and a guest that runs.

use crate::error::{Attempt, Fault};
use crate::guest::protocol::{Greeting, GuestRole, read_line, write_message};
use crate::host::console::last_words;
use crate::host::streams::Streams;
use crate::host::streams::streams_of;
use crate::host::ticks::Ticks;
use crate::kernel::namespace::spawn_in_namespace;
use crate::kernel::sys::kill_group;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a guest may take to build a testbed.
const BUILDING: Duration = Duration::from_secs(30);

/// A kind of guest: a stack that takes the place of its namespace's end of the link.
pub(crate) trait Guest: fmt::Debug {
    /// Whether the link's end is bridged to a tap device for it; else it takes the namespace's own interface.
    fn wants_a_tap(&self) -> bool;

    /// Starts it and does not wait until it can be spoken to.
    fn start(&self, spec: &GuestSpec<'_>) -> Result<Running, Fault>;

    /// What exactly it is, for people and the record: `Linux 6.1.0-40-cloud-amd64 in QEMU`.
    fn version(&self) -> String;
}

/// What a guest is started with.
pub(crate) struct GuestSpec<'a> {
    /// What the host is called among those of its testbed.
    pub name: &'a str,
    /// A process in its network namespace.
    pub namespace: u32,
    /// The processors it may use; any, where there are none.
    pub processors: &'a [usize],
    /// Whether its links' offloads stay on.
    pub offloads: bool,
    /// This program, which is the agent in it.
    pub program: &'a Path,
    /// A folder of its own, which goes with it.
    pub folder: &'a Path,
    /// Its role, where it is told one.
    pub role: GuestRole,
}

impl GuestSpec<'_> {
    /// Whether it is to host whole testbeds, and joins no link.
    pub fn hosts_testbeds(&self) -> bool {
        matches!(self.role, GuestRole::Hosted(_))
    }

    /// Starts a program in the namespace, in a process group of its own, killed when this thread ends.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Fault> {
        spawn_in_namespace(self.namespace, command, self.processors)
    }
}

/// A guest that was started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    ended: bool,
    talk: Talk,
    /// What its console says goes there.
    console: PathBuf,
}

/// How it is spoken to.
#[derive(Debug)]
enum Talk {
    /// By its standard input and output, at once.
    Pipes,
    /// By a socket, and it must be told its role first.
    Socket { stream: UnixStream, role: GuestRole, patience: Duration },
    /// By this socket: it has taken its role.
    Ready(UnixStream),
    /// It has been handed over.
    Elsewhere,
}

impl Running {
    /// A guest that speaks as an agent as soon as it starts, by its standard input and output.
    pub fn on_pipes(child: Child, console: PathBuf) -> Self {
        Running { child, ended: false, talk: Talk::Pipes, console }
    }

    /// A guest that boots, and is then told its role by this socket.
    pub fn on_socket(
        child: Child,
        console: PathBuf,
        stream: UnixStream,
        role: GuestRole,
        patience: Duration,
    ) -> Self {
        Running { child, ended: false, talk: Talk::Socket { stream, role, patience }, console }
    }

    /// Waits until it has booted and taken its role, where it is told one.
    pub fn come_up(&mut self) -> Result<(), Fault> {
        self.talk = match std::mem::replace(&mut self.talk, Talk::Elsewhere) {
            Talk::Socket { stream, role, patience } => Talk::Ready(self.meet_by(stream, &role, patience)?.1),
            other => other,
        };
        Ok(())
    }

    /// Waits until it can be spoken to, and gives its byte stream.
    pub fn meet(&mut self) -> Result<Streams, Fault> {
        self.come_up()?;
        match std::mem::replace(&mut self.talk, Talk::Elsewhere) {
            Talk::Pipes => Ok(streams_of(&mut self.child).expect("its input and output are pipes")),
            Talk::Ready(stream) => {
                let (own, stream) = both_ways(stream)?;
                Ok((Box::new(own), Box::new(stream)))
            }
            Talk::Socket { .. } | Talk::Elsewhere => {
                Err(io::Error::other("it was met before")).attempt("meet it")
            }
        }
    }

    /// Waits until a guest that hosts testbeds has built them; gives what it says of them, and its channel, to be
    /// read and to be written.
    pub fn meet_hosted(&mut self) -> Result<(Greeting, UnixStream, UnixStream), Fault> {
        match std::mem::replace(&mut self.talk, Talk::Elsewhere) {
            Talk::Socket { stream, role, patience } => {
                let (greeting, stream) = self.meet_by(stream, &role, patience)?;
                let (own, stream) = both_ways(stream)?;
                Ok((greeting, own, stream))
            }
            _ => Err(io::Error::other("it has no channel")).attempt("meet it"),
        }
    }

    fn meet_by(
        &mut self,
        stream: UnixStream,
        role: &GuestRole,
        patience: Duration,
    ) -> Result<(Greeting, UnixStream), Fault> {
        let said = |console: &Path, reason: io::Error| {
            io::Error::new(reason.kind(), format!("{reason}{}", last_words(console)))
        };
        let booted = self.hear_of_boot(&stream, Instant::now() + patience);
        booted.map_err(|reason| said(&self.console, reason)).attempt("boot it")?;
        // Each testbed takes about a second, and several where the guest is emulated.
        let (patience, attempted) = match role {
            GuestRole::Hosted(testbeds) => {
                (BUILDING * testbeds.mechanisms.len() as u32, "build testbeds in it")
            }
            GuestRole::Host { .. } | GuestRole::Client(_) => (patience, "have it join the link"),
            GuestRole::Router(_) => (patience, "have it be a router"),
        };
        let told = self.tell(&stream, role, Instant::now() + patience);
        let greeting = told.map_err(|reason| said(&self.console, reason)).attempt(attempted)?;
        Ok((greeting, stream))
    }

    fn hear_of_boot(&mut self, stream: &UnixStream, until: Instant) -> io::Result<()> {
        match self.hear(stream, until)? {
            Greeting::Waiting => Ok(()),
            other => Err(io::Error::other(format!("it said {other:?} before it was told anything"))),
        }
    }

    /// Tells it its role and waits until it has taken it.
    fn tell(&mut self, stream: &UnixStream, role: &GuestRole, until: Instant) -> io::Result<Greeting> {
        write_message(&mut &*stream, role)?;
        match self.hear(stream, until)? {
            greeting @ (Greeting::Ready | Greeting::Built { .. }) => {
                stream.set_read_timeout(None)?;
                Ok(greeting)
            }
            Greeting::Failed { reason } => Err(io::Error::other(reason)),
            Greeting::Waiting => Err(io::Error::other("it waits again")),
        }
    }

    /// The next greeting; whatever else it says is skipped.
    fn hear(&mut self, mut stream: &UnixStream, until: Instant) -> io::Result<Greeting> {
        const LOOK: Duration = Duration::from_millis(200);
        stream.set_read_timeout(Some(LOOK))?;
        loop {
            let line = read_line(&mut stream, LOOK, || {
                if let Some(status) = self.child.try_wait()? {
                    self.ended = true;
                    return Err(io::Error::other(format!(
                        "it ended ({status}) before it could be spoken to"
                    )));
                }
                if Instant::now() > until {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not come up in time"));
                }
                Ok(())
            })?;
            if let Ok(greeting) = serde_json::from_slice(&line) {
                return Ok(greeting);
            }
        }
    }

    /// Kills it and what it started, and waits for it.
    pub fn kill(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.ended, true) {
            kill_group(self.child.id())?;
            self.child.wait()?;
        }
        Ok(())
    }

    /// What its processes have run until now, as this machine counts it.
    pub fn ticks(&self) -> Ticks {
        Ticks::of(self.pid())
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// A channel to be read and to be written.
fn both_ways(stream: UnixStream) -> Result<(UnixStream, UnixStream), Fault> {
    Ok((stream.try_clone().attempt("use its channel")?, stream))
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.kill();
    }
}
