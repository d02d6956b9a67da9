//! A running guest.

use crate::command::is_interrupted;
use crate::inside::protocol::read_line;
use crate::kind::progress::{BootProgress, Seen};
use crate::{Greeting, GuestRole};
use stacklab_testbed::{
    Attachment, Attempt, Fault, Guest, GuestSpec, PathRole, Process, RunningGuest, Streams, Ticks,
    last_words, write_message,
};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for a guest to build one testbed.
const BUILDING: Duration = Duration::from_secs(30);

pub(crate) trait Boot: fmt::Debug {
    fn version(&self) -> String;

    fn attachment(&self) -> Attachment {
        Attachment::Tap
    }

    /// Starts the guest. Does not wait until it accepts messages.
    fn boot(&self, spec: &GuestSpec<'_>, role: GuestRole) -> Result<Running, Fault>;
}

impl Guest for Box<dyn Boot> {
    fn attachment(&self) -> Attachment {
        (**self).attachment()
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
    pub(crate) fn meet_testbeds(&mut self) -> Result<(Greeting, Answers<UnixStream>, UnixStream), Fault> {
        let greeting = self.take_role()?;
        let (greeting, channel) =
            greeting.zip(self.channel.take()).ok_or("it has no channel").attempt("meet it")?;
        Ok((greeting, self.with_console(channel.try_clone().attempt("use its channel")?), channel))
    }

    fn with_console<R: Read>(&self, stream: R) -> Answers<R> {
        Answers { stream, console: self.console.clone() }
    }

    /// Waits until the guest has booted and taken its role. `None` if it has none to take, or has taken it.
    fn take_role(&mut self) -> Result<Option<Greeting>, Fault> {
        let Some((role, patience)) = self.role.take() else { return Ok(None) };
        let console = self.console.clone();
        let said = |reason: io::Error| {
            io::Error::new(reason.kind(), format!("{reason}{}", find_last_words(&console)))
        };
        let stream = self.channel.as_ref().ok_or("it has no channel").attempt("meet it")?;
        let stream = stream.try_clone().attempt("use its channel")?;
        match self.hear(&stream, patience).map_err(said).attempt("boot it")? {
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
        let greeted = self.tell(&stream, &role, patience);
        greeted.map_err(said).attempt(attempted).map(Some)
    }

    fn tell(&mut self, stream: &UnixStream, role: &GuestRole, patience: Duration) -> io::Result<Greeting> {
        if role.wifi().is_none() {
            write_message(&mut &*stream, role)?;
        }
        match self.hear(stream, patience)? {
            greeting @ (Greeting::Ready | Greeting::Built { .. } | Greeting::Associated { .. }) => {
                stream.set_read_timeout(None)?;
                Ok(greeting)
            }
            Greeting::Failed { reason } => Err(io::Error::other(reason)),
            Greeting::Waiting => Err(io::Error::other("it waits again")),
        }
    }

    /// Waits for a message. A guest that makes progress may take longer: a busy machine gives it little of its
    /// processors.
    fn hear(&mut self, mut stream: &UnixStream, patience: Duration) -> io::Result<Greeting> {
        const POLL_INTERVAL: Duration = Duration::from_millis(200);
        let mut progress = BootProgress::new(patience);
        stream.set_read_timeout(Some(POLL_INTERVAL))?;
        loop {
            let line = read_line(&mut stream, POLL_INTERVAL, || {
                if is_interrupted() {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
                }
                if let Some(status) = self.process.status()? {
                    return Err(io::Error::other(format!("it exited ({status}) before it connected")));
                }
                let checked = progress.check(Instant::now(), || Seen::of(self.process.id(), &self.console));
                checked.map_err(|reason| {
                    io::Error::new(io::ErrorKind::TimedOut, format!("it did not come up in time: {reason}"))
                })
            })?;
            if let Ok(greeting) = serde_json::from_slice(&line) {
                return Ok(greeting);
            }
        }
    }
}

/// The file beside the console with what an emulator says of itself.
pub(crate) const EMULATOR_LOG: &str = "qemu.log";

/// The end of a guest's console; if nothing is there, what its emulator has said.
fn find_last_words(console: &Path) -> String {
    let said = last_words(console);
    if said.is_empty() { last_words(&console.with_file_name(EMULATOR_LOG)) } else { said }
}

/// What a guest says. If it ends, the last lines of its console are the error.
pub(crate) struct Answers<R> {
    stream: R,
    console: PathBuf,
}

impl<R: Read> Read for Answers<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(room)?;
        let has_ended = read == 0 && !room.is_empty();
        match has_ended.then(|| find_last_words(&self.console)).filter(|said| !said.is_empty()) {
            Some(said) => Err(io::Error::other(said)),
            None => Ok(read),
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
                let answers = self.with_console(channel.try_clone().attempt("use its channel")?);
                Ok((Box::new(answers), Box::new(channel)))
            }
            None => {
                let (answers, requests) =
                    self.process.streams().ok_or("it was met before").attempt("meet it")?;
                Ok((Box::new(self.with_console(answers)), requests))
            }
        }
    }

    fn ticks(&self) -> Ticks {
        Ticks::of(self.process.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_ends_leaves_the_end_of_its_console() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console");
        fn read(console: &Path) -> io::Result<String> {
            let answers = Answers { stream: &b"{}\n"[..], console: console.to_owned() };
            io::read_to_string(answers)
        }
        assert_eq!(read(&console).unwrap(), "{}\n", "one that has said nothing just ends");
        std::fs::write(folder.path().join(EMULATOR_LOG), "qemu: no module tcg\n").unwrap();
        let error = read(&console).unwrap_err().to_string();
        assert!(error.ends_with("qemu: no module tcg"), "{error}");
        std::fs::write(&console, "booting\nKernel panic - not syncing: no init\n").unwrap();
        let error = read(&console).unwrap_err().to_string();
        assert!(error.ends_with("booting\n    Kernel panic - not syncing: no init"), "{error}");
    }
}
