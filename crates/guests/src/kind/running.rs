//! A running guest.

use crate::inside::protocol::read_line;
use crate::{Greeting, GuestRole};
use stacklab_testbed::{
    Attempt, Fault, Guest, GuestSpec, PathRole, Process, RunningGuest, Streams, Ticks, last_words,
    write_message,
};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Timeout for a guest to build one testbed.
const BUILDING: Duration = Duration::from_secs(30);

pub(crate) trait Boot: fmt::Debug {
    fn version(&self) -> String;

    fn wants_a_tap(&self) -> bool {
        true
    }

    /// Starts the guest. Does not wait until it accepts messages.
    fn boot(&self, spec: &GuestSpec<'_>, role: GuestRole) -> Result<Running, Fault>;
}

impl Guest for Box<dyn Boot> {
    fn wants_a_tap(&self) -> bool {
        (**self).wants_a_tap()
    }

    fn start(&self, spec: &GuestSpec<'_>, role: PathRole) -> Result<Box<dyn RunningGuest>, Fault> {
        Ok(Box::new(self.boot(spec, GuestRole::Path { role, offloads: spec.offloads })?))
    }

    fn version(&self) -> String {
        (**self).version()
    }
}

#[derive(Debug)]
pub(crate) struct Running {
    pub process: Process,
    /// The channel to the guest, until it is handed over. `None` for one that talks over its input and output.
    pub channel: Option<UnixStream>,
    /// The role that the guest has to take over the channel, and how long its boot may last.
    pub role: Option<(GuestRole, Duration)>,
    pub console: PathBuf,
}

impl Running {
    /// Waits until a guest that hosts testbeds has built them. Returns its greeting, which describes them, and its
    /// channel as two streams: one to read from and one to write to.
    pub(crate) fn meet_hosted(&mut self) -> Result<(Greeting, UnixStream, UnixStream), Fault> {
        let greeting = self.take_role()?;
        let (greeting, channel) =
            greeting.zip(self.channel.take()).ok_or("it has no channel").attempt("meet it")?;
        Ok((greeting, channel.try_clone().attempt("use its channel")?, channel))
    }

    /// Waits until the guest has booted and taken its role. `None` if it has none to take, or has taken it.
    fn take_role(&mut self) -> Result<Option<Greeting>, Fault> {
        let Some((role, patience)) = self.role.take() else { return Ok(None) };
        let console = self.console.clone();
        let said =
            |reason: io::Error| io::Error::new(reason.kind(), format!("{reason}{}", last_words(&console)));
        let stream = self.channel.as_ref().ok_or("it has no channel").attempt("meet it")?;
        let stream = stream.try_clone().attempt("use its channel")?;
        match self.hear(&stream, Instant::now() + patience).map_err(said).attempt("boot it")? {
            Greeting::Waiting => {}
            other => {
                let what = format!("unexpected message {other:?} before its role was sent");
                return Err(what).attempt("boot it");
            }
        }
        // Each testbed takes about one second to build, and several seconds in an emulated guest.
        let (patience, attempted) = match &role {
            GuestRole::Hosted(testbeds) => {
                (BUILDING * testbeds.mechanisms.len() as u32, "build testbeds in it")
            }
            GuestRole::Path { role: PathRole::Router { .. }, .. } => (patience, "have it be a router"),
            GuestRole::Path { .. } => (patience, "have it join the link"),
            GuestRole::Wifi(_) => (BUILDING, "build a Wi-Fi network in it"),
        };
        let greeted = self.tell(&stream, &role, Instant::now() + patience);
        greeted.map_err(said).attempt(attempted).map(Some)
    }

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

    fn hear(&mut self, mut stream: &UnixStream, until: Instant) -> io::Result<Greeting> {
        const LOOK: Duration = Duration::from_millis(200);
        stream.set_read_timeout(Some(LOOK))?;
        loop {
            let line = read_line(&mut stream, LOOK, || {
                if let Some(status) = self.process.status()? {
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
}

impl RunningGuest for Running {
    fn come_up(&mut self) -> Result<(), Fault> {
        self.take_role().map(drop)
    }

    fn meet(&mut self) -> Result<Streams, Fault> {
        self.come_up()?;
        match self.channel.take() {
            Some(channel) => {
                Ok((Box::new(channel.try_clone().attempt("use its channel")?), Box::new(channel)))
            }
            None => self.process.streams().ok_or("it was met before").attempt("meet it"),
        }
    }

    fn ticks(&self) -> Ticks {
        Ticks::of(self.process.id())
    }
}
