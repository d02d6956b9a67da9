//! What all kinds of guests have in common: a stack of its own at a namespace's end of the link.

use crate::error::{Attempt, Fault};
use crate::host::console::last_words;
use crate::host::outside::Ticks;
use crate::host::{Streams, streams_of};
use crate::part::{Greeting, Part};
use crate::sys::{die_with_parent_in, kill_group};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
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
    fn start(&self, place: &Place<'_>) -> Result<Running, Fault>;

    /// What exactly it is, for people and the record: `Linux 6.1.0-40-cloud-amd64 in QEMU`.
    fn version(&self) -> String;
}

/// Where a guest starts.
pub(crate) struct Place<'a> {
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
    /// What the guest is told to be, where it is told anything.
    pub part: Part,
}

impl Place<'_> {
    /// Whether it is to hold hosts of its own, and joins no link.
    pub fn is_for_a_lab(&self) -> bool {
        matches!(self.part, Part::Lab(_))
    }

    /// Starts a program in the namespace, in a process group of its own, killed when this thread ends.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Fault> {
        self.spawn_on(command, self.processors)
    }

    /// The same on these processors.
    pub fn spawn_on(&self, command: &mut Command, processors: &[usize]) -> Result<Child, Fault> {
        let program = command.get_program().to_string_lossy().into_owned();
        let path = format!("/proc/{}/ns/net", self.namespace);
        let namespace = File::open(&path).attempt(format!("open {path}"))?;
        command.process_group(0);
        die_with_parent_in(command, namespace, processors);
        command.spawn().attempt(format!("start {program}"))
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
    /// By a socket, and it must be told its part first.
    Socket { stream: UnixStream, part: Part, patience: Duration },
    /// By this socket: it has taken its part.
    Ready(UnixStream),
    /// It has been handed over.
    Elsewhere,
}

impl Running {
    /// A guest that speaks as an agent as soon as it starts, by its standard input and output.
    pub fn on_pipes(child: Child, console: PathBuf) -> Self {
        Running { child, ended: false, talk: Talk::Pipes, console }
    }

    /// A guest that boots, and is then told its part by this socket.
    pub fn on_socket(
        child: Child,
        console: PathBuf,
        stream: UnixStream,
        part: Part,
        patience: Duration,
    ) -> Self {
        Running { child, ended: false, talk: Talk::Socket { stream, part, patience }, console }
    }

    /// Waits until it has booted and taken its part, where it is told one.
    pub fn come_up(&mut self) -> Result<(), Fault> {
        self.talk = match std::mem::replace(&mut self.talk, Talk::Elsewhere) {
            Talk::Socket { stream, part, patience } => Talk::Ready(self.meet_by(stream, &part, patience)?.1),
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

    /// Waits until a guest that is the place of testbeds has built them; gives what it says of them, and its channel, to be
    /// read and to be written.
    pub fn meet_lab(&mut self) -> Result<(Greeting, UnixStream, UnixStream), Fault> {
        match std::mem::replace(&mut self.talk, Talk::Elsewhere) {
            Talk::Socket { stream, part, patience } => {
                let (greeting, stream) = self.meet_by(stream, &part, patience)?;
                let (own, stream) = both_ways(stream)?;
                Ok((greeting, own, stream))
            }
            _ => Err(io::Error::other("it has no channel")).attempt("meet it"),
        }
    }

    fn meet_by(
        &mut self,
        stream: UnixStream,
        part: &Part,
        patience: Duration,
    ) -> Result<(Greeting, UnixStream), Fault> {
        let said = |console: &Path, reason: io::Error| {
            io::Error::new(reason.kind(), format!("{reason}{}", last_words(console)))
        };
        let booted = self.hear_of_boot(&stream, Instant::now() + patience);
        booted.map_err(|reason| said(&self.console, reason)).attempt("boot it")?;
        // Each testbed takes about a second, and several where the guest is emulated.
        let (patience, attempted) = match part {
            Part::Lab(lab) => (BUILDING * lab.mechanisms.len() as u32, "build testbeds in it"),
            Part::Host { .. } | Part::Client(_) => (patience, "have it join the link"),
            Part::Router(_) => (patience, "have it be a router"),
        };
        let told = self.tell(&stream, part, Instant::now() + patience);
        let greeting = told.map_err(|reason| said(&self.console, reason)).attempt(attempted)?;
        Ok((greeting, stream))
    }

    fn hear_of_boot(&mut self, stream: &UnixStream, until: Instant) -> io::Result<()> {
        match self.hear(stream, until)? {
            Greeting::Waiting => Ok(()),
            other => Err(io::Error::other(format!("it said {other:?} before it was told anything"))),
        }
    }

    /// Tells it its part and hears that it has taken it.
    fn tell(&mut self, stream: &UnixStream, part: &Part, until: Instant) -> io::Result<Greeting> {
        let mut line = serde_json::to_vec(part)?;
        line.push(b'\n');
        (&*stream).write_all(&line)?;
        match self.hear(stream, until)? {
            greeting @ (Greeting::Ready | Greeting::Built { .. }) => {
                stream.set_read_timeout(None)?;
                Ok(greeting)
            }
            Greeting::Failed { reason } => Err(io::Error::other(reason)),
            Greeting::Waiting => Err(io::Error::other("it waits again")),
        }
    }

    /// The next greeting; whatever else it says is passed over.
    fn hear(&mut self, mut stream: &UnixStream, until: Instant) -> io::Result<Greeting> {
        const LOOK: Duration = Duration::from_millis(200);
        stream.set_read_timeout(Some(LOOK))?;
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            match stream.read(&mut byte) {
                // A socket whose other end is not open yet, or closed for good: the process tells.
                Ok(0) => std::thread::sleep(LOOK),
                Ok(_) if byte[0] == b'\n' => {
                    if let Ok(greeting) = serde_json::from_slice(&line) {
                        return Ok(greeting);
                    }
                    line.clear();
                }
                Ok(_) => line.push(byte[0]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if let Some(status) = self.child.try_wait()? {
                self.ended = true;
                return Err(io::Error::other(format!("it ended ({status}) before it could be spoken to")));
            }
            if Instant::now() > until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not come up in time"));
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
