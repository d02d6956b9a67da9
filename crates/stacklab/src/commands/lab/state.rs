//! The state file of a running testbed.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for building a testbed, during which no other one is built. An emulated machine takes longest.
const CLAIMED: Duration = Duration::from_secs(120);

/// Polling interval for whether a testbed has gone.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// A running testbed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunningTestbed {
    /// The process id of the holder.
    pub holder: u32,
    /// A description.
    pub testbed: String,
    /// Its hosts.
    pub hosts: Vec<RunningHost>,
    /// Whether its hosts share this machine's files.
    pub files: bool,
}

/// A host of the testbed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunningHost {
    pub name: String,
    #[serde(rename = "place")]
    pub location: HostLocation,
    /// The addresses that other hosts use for it.
    pub addresses: Vec<String>,
}

/// Where a host runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HostLocation {
    /// In the namespace of a process on this kernel.
    Process(u32),
    /// Inside a guest; the number is the host's position on the path.
    Guest(usize),
}

impl RunningTestbed {
    /// The processes on this kernel that are gone when the testbed is.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        let own = self.hosts.iter().filter_map(|host| match host.location {
            HostLocation::Process(pid) => Some(pid),
            HostLocation::Guest(_) => None,
        });
        own.chain([self.holder])
    }
}

/// The state file, claimed by this process alone. Removed on drop unless it was written.
pub(super) struct Claim(Option<PathBuf>);

impl Claim {
    pub fn new() -> Result<Self, Failure> {
        let path = state();
        let attempted = format!("write {}", path.display());
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(failed(&attempted))?;
        let create = || File::options().write(true).create_new(true).open(&path);
        let made = match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A file that another process is about to write is empty and new.
                let fresh = |made: std::time::SystemTime| made.elapsed().is_ok_and(|age| age < CLAIMED);
                if std::fs::metadata(&path).and_then(|file| file.modified()).is_ok_and(fresh) {
                    return Err(Failure::Usage("another testbed is just being built".to_owned()));
                }
                // A leftover of a testbed that was killed.
                std::fs::remove_file(&path).and_then(|()| create())
            }
            made => made,
        };
        made.map(|_| Claim(Some(path))).map_err(failed(&attempted))
    }

    pub fn write(mut self, line: &str) -> Result<(), Failure> {
        let path = self.0.take().expect("it is written once");
        std::fs::write(&path, line).map_err(|reason| {
            let attempted = format!("write {}", path.display());
            self.0 = Some(path);
            failed(&attempted)(reason)
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The running testbed, if its holder is still a process of this program.
pub(super) fn known() -> Option<RunningTestbed> {
    let up: RunningTestbed = serde_json::from_slice(&std::fs::read(state()).ok()?).ok()?;
    // Another process may have the same process id by now.
    let words = std::fs::read(format!("/proc/{}/cmdline", up.holder)).ok()?;
    let holds = b"\0lab\0hold\0";
    words.windows(holds.len()).any(|part| part == holds).then_some(up)
}

/// Path of the state file: one per user.
pub(super) fn state() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    named.unwrap_or_else(stacklab_testbed::image::cache).join("stacklab-lab.json")
}

/// Path of the socket on which the holder of a testbed inside a guest listens for commands.
pub(super) fn socket() -> PathBuf {
    state().with_extension("sock")
}

/// An error of a step of a manual testbed.
pub(super) fn failed(attempted: &str) -> impl Fn(io::Error) -> Failure + use<'_> {
    move |reason| Failure::ManualTestbed { attempted: attempted.to_owned(), reason }
}
