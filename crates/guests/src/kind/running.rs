//! A running guest.

use crate::inside::protocol::{Greeting, GuestRole, read_line};
use stacklab_testbed::error::{Attempt, Fault};
use stacklab_testbed::host::console::last_words;
use stacklab_testbed::host::guest::{Guest, GuestSpec, RunningGuest};
use stacklab_testbed::host::path_role::PathRole;
use stacklab_testbed::host::streams::{Streams, streams_of, write_message};
use stacklab_testbed::host::ticks::Ticks;
use stacklab_testbed::kernel::sys::kill_group;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// Timeout for a guest to build one testbed.
const BUILDING: Duration = Duration::from_secs(30);

/// A kind of guest that takes any role.
pub(crate) trait Boot: Guest {
    /// Starts the guest. Does not wait until it accepts messages.
    fn boot(&self, spec: &GuestSpec<'_>, role: GuestRole) -> Result<Running, Fault>;
}

/// A started guest.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    ended: bool,
    talk: Talk,
    /// The file that its console is written to.
    console: PathBuf,
}

/// How this program exchanges messages with the guest.
#[derive(Debug)]
enum Talk {
    /// Over its standard input and output, without a role.
    Pipes,
    /// Over a socket. The role must be sent first.
    Socket { stream: UnixStream, role: Box<GuestRole>, patience: Duration },
    /// Over this socket. The guest has taken its role.
    Ready(UnixStream),
    /// The streams were handed over to the caller.
    Elsewhere,
}

impl Running {
    /// A guest that runs the agent from its start, over its standard input and output.
    pub(crate) fn on_pipes(child: Child, console: PathBuf) -> Self {
        Running { child, ended: false, talk: Talk::Pipes, console }
    }

    /// A guest that boots and then takes its role over this socket.
    pub(crate) fn on_socket(
        child: Child,
        console: PathBuf,
        stream: UnixStream,
        role: GuestRole,
        patience: Duration,
    ) -> Self {
        let talk = Talk::Socket { stream, role: Box::new(role), patience };
        Running { child, ended: false, talk, console }
    }

    /// Waits until a guest that hosts testbeds has built them. Returns its greeting, which describes them, and its
    /// channel as two streams: one to read from and one to write to.
    pub(crate) fn meet_hosted(&mut self) -> Result<(Greeting, UnixStream, UnixStream), Fault> {
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
        // Each testbed takes about one second to build, and several seconds in an emulated guest.
        let (patience, attempted) = match role {
            GuestRole::Hosted(testbeds) => {
                (BUILDING * testbeds.mechanisms.len() as u32, "build testbeds in it")
            }
            GuestRole::Path(PathRole::Router(_)) => (patience, "have it be a router"),
            GuestRole::Path(_) => (patience, "have it join the link"),
            GuestRole::Wifi(_) => (BUILDING, "build a Wi-Fi network in it"),
        };
        let told = self.tell(&stream, role, Instant::now() + patience);
        let greeting = told.map_err(|reason| said(&self.console, reason)).attempt(attempted)?;
        Ok((greeting, stream))
    }

    fn hear_of_boot(&mut self, stream: &UnixStream, until: Instant) -> io::Result<()> {
        match self.hear(stream, until)? {
            Greeting::Waiting => Ok(()),
            other => Err(io::Error::other(format!("unexpected message {other:?} before its role was sent"))),
        }
    }

    /// Sends the guest its role, unless it has it, and waits until the guest has taken it.
    fn tell(&mut self, stream: &UnixStream, role: &GuestRole, until: Instant) -> io::Result<Greeting> {
        if role.wifi().is_none() {
            write_message(&mut &*stream, role)?;
        }
        match self.hear(stream, until)? {
            greeting @ (Greeting::Ready | Greeting::Built { .. } | Greeting::Associated { .. }) => {
                stream.set_read_timeout(None)?;
                Ok(greeting)
            }
            Greeting::Failed { reason } => Err(io::Error::other(reason)),
            Greeting::Waiting => Err(io::Error::other("it waits again")),
        }
    }

    /// Reads the next greeting. Skips all other output.
    fn hear(&mut self, mut stream: &UnixStream, until: Instant) -> io::Result<Greeting> {
        const LOOK: Duration = Duration::from_millis(200);
        stream.set_read_timeout(Some(LOOK))?;
        loop {
            let line = read_line(&mut stream, LOOK, || {
                if let Some(status) = self.child.try_wait()? {
                    self.ended = true;
                    return Err(io::Error::other(format!("it exited ({status}) before it connected")));
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

    /// Its process ID.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl RunningGuest for Running {
    fn come_up(&mut self) -> Result<(), Fault> {
        self.talk = match std::mem::replace(&mut self.talk, Talk::Elsewhere) {
            Talk::Socket { stream, role, patience } => Talk::Ready(self.meet_by(stream, &role, patience)?.1),
            other => other,
        };
        Ok(())
    }

    fn meet(&mut self) -> Result<Streams, Fault> {
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

    fn kill(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.ended, true) {
            kill_group(self.child.id())?;
            self.child.wait()?;
        }
        Ok(())
    }

    fn ticks(&self) -> Ticks {
        Ticks::of(self.pid())
    }
}

/// Splits a channel into a stream to read from and a stream to write to.
fn both_ways(stream: UnixStream) -> Result<(UnixStream, UnixStream), Fault> {
    Ok((stream.try_clone().attempt("use its channel")?, stream))
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to report an error to.
        let _ = self.kill();
    }
}
