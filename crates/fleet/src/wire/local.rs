//! Agents on this machine: each listens on a Unix socket in one folder. Namespaces of the machine share it.

use crate::FleetError;
use crate::message::{Answer, Presence, Request};
use crate::wire::Wire;
use crate::wire::conversation::ask;
use stacklab_testbed::Streams;
use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);
const DESCRIBE_LIMIT: Duration = Duration::from_secs(2);
const ENDING: &str = ".sock";

/// A folder of sockets.
#[derive(Debug, Clone)]
pub struct LocalWire(PathBuf);

impl LocalWire {
    /// Makes the folder if it is missing. Others may not enter it.
    /// Fails if it belongs to another user, or others may enter it.
    pub fn new(folder: &Path) -> Result<Self, FleetError> {
        let failed = |reason: io::Error| {
            FleetError::Usage(format!("could not use the folder {} for agents: {reason}", folder.display()))
        };
        match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let found = std::fs::symlink_metadata(folder).map_err(failed)?;
        if !found.is_dir() || !stacklab_testbed::owns(&found) || found.mode() & 0o077 != 0 {
            return Err(FleetError::Usage(format!(
                "{} is not a folder that this user alone may enter: name another one with --dir",
                folder.display()
            )));
        }
        Ok(LocalWire(folder.to_owned()))
    }

    fn socket(&self, agent: &str) -> PathBuf {
        self.0.join(format!("{agent}{ENDING}"))
    }
}

impl Wire for LocalWire {
    fn present(&self, busy: &BTreeSet<String>) -> Result<Vec<Presence>, FleetError> {
        let files = std::fs::read_dir(&self.0).map_err(|reason| {
            FleetError::Usage(format!("could not read the folder {} of agents: {reason}", self.0.display()))
        })?;
        let files = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
        let names: BTreeSet<String> =
            files.filter_map(|name| Some(name.strip_suffix(ENDING)?.to_owned())).collect();
        let mut present = Vec::new();
        for name in names.difference(busy) {
            // An agent that has just ended, or that was killed, does not answer: it is not there.
            if let Ok(Answer::Presence(presence)) = ask(self, name, &Request::Describe, DESCRIBE_LIMIT)
                && presence.agent.name == *name
            {
                present.push(presence);
            }
        }
        Ok(present)
    }

    fn safety(&self) -> Vec<(bool, String)> {
        vec![(true, format!("agents: Unix sockets in {}, which this user alone may enter", self.0.display()))]
    }

    fn open(&self, agent: &str, limit: Duration) -> Result<Streams, FleetError> {
        connect(&self.socket(agent), limit)
            .map_err(|reason| FleetError::agent(agent, format!("it cannot be reached: {reason}")))
    }

    fn serve(
        &self,
        agent: &str,
        handle: &(dyn Fn(Streams) + Sync),
        ready: &(dyn Fn() + Sync),
        interrupted: &AtomicBool,
    ) -> Result<(), FleetError> {
        let path = self.socket(agent);
        let failed = |reason: io::Error| {
            FleetError::Usage(format!("could not listen at {}: {reason}", path.display()))
        };
        if UnixStream::connect(&path).is_ok() {
            return Err(FleetError::Usage(format!(
                "an agent named {agent} runs already in {}: choose another --name",
                self.0.display()
            )));
        }
        // A leftover of an agent that was killed.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        ready();
        thread::scope(|scope| {
            while !interrupted.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        scope.spawn(move || {
                            let served = stream.set_nonblocking(false).and_then(|()| streams(stream));
                            served.map(handle)
                        });
                    }
                    Err(_) => thread::sleep(POLL),
                }
            }
            let _ = std::fs::remove_file(&path);
        });
        Ok(())
    }
}

fn connect(socket: &Path, limit: Duration) -> io::Result<Streams> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(limit))?;
    streams(stream)
}

fn streams(stream: UnixStream) -> io::Result<Streams> {
    Ok((Box::new(stream.try_clone()?), Box::new(Ending(stream))))
}

/// The writing half: when it is dropped, the other end reads the end of the stream.
struct Ending(UnixStream);

impl io::Write for Ending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}
