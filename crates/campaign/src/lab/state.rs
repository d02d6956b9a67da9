//! The state file of a manual testbed.

use crate::CampaignError;
use serde::{Deserialize, Serialize};
use stacklab_testbed::{Node, RouterInterface, RunningProcess, TestbedError};
use std::fs::{DirBuilder, File};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for building a testbed, during which no other one is built. An emulated machine takes longest.
const CLAIMED: Duration = Duration::from_secs(120);

/// What is attempted when a testbed is up.
pub(super) const ANNOUNCE: &str = "announce the testbed";

/// Polling interval for whether a testbed has gone.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running testbed.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunningTestbed {
    /// The process that holds it.
    pub holder: RunningProcess,
    /// Its description, for people.
    pub testbed: String,
    /// In the order of the path.
    pub hosts: Vec<RunningHost>,
    /// Whether its hosts share this machine's files.
    pub files: bool,
    /// The receiver's address as the sender calls it.
    #[serde(default)]
    pub destination: Option<String>,
}

/// A host of the testbed.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunningHost {
    /// By which `lab enter` knows it.
    pub name: String,
    /// Where it runs.
    #[serde(rename = "place")]
    pub location: HostLocation,
    /// The addresses that other hosts use for it.
    pub addresses: Vec<String>,
    /// The interfaces of a router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<NamedInterface>,
}

/// An interface of a router.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamedInterface {
    /// Its name there.
    pub name: String,
    /// The router's addresses on it.
    pub addresses: Vec<String>,
}

/// Where a host runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostLocation {
    /// In the namespace of a process on this kernel.
    Process(RunningProcess),
    /// Inside a guest; the number is the host's position on the path.
    Guest(usize),
}

impl RunningHost {
    pub(super) fn new(node: Node, location: HostLocation, addresses: &[IpAddr]) -> Self {
        let addresses = addresses.iter().map(IpAddr::to_string).collect();
        RunningHost { name: node.to_string(), location, addresses, interfaces: Vec::new() }
    }

    pub(super) fn with_interfaces(mut self, interfaces: Vec<RouterInterface>) -> Self {
        for RouterInterface { name, addresses } in interfaces {
            let addresses = addresses.iter().map(IpAddr::to_string).collect();
            self.interfaces.push(NamedInterface { name: name.to_owned(), addresses });
        }
        self
    }
}

impl RunningTestbed {
    /// A testbed that this process holds.
    pub(super) fn new(
        testbed: String,
        hosts: io::Result<Vec<RunningHost>>,
        files: bool,
        destination: Option<IpAddr>,
    ) -> Result<Self, CampaignError> {
        let holder = RunningProcess::of(std::process::id()).map_err(describe_failure(ANNOUNCE))?;
        let hosts = hosts.map_err(describe_failure(ANNOUNCE))?;
        let destination = destination.map(|address| address.to_string());
        Ok(RunningTestbed { holder, testbed, hosts, files, destination })
    }

    /// The processes on this kernel that are gone when the testbed is.
    pub fn processes(&self) -> impl Iterator<Item = RunningProcess> {
        let own = self.hosts.iter().filter_map(|host| match host.location {
            HostLocation::Process(process) => Some(process),
            HostLocation::Guest(_) => None,
        });
        own.chain([self.holder])
    }
}

/// The state file, claimed by this process alone. Removed on drop unless it was written.
pub struct StateFileClaim(Option<PathBuf>);

impl StateFileClaim {
    /// Claims the file. An error if another testbed is up or just being built.
    pub fn new() -> Result<Self, CampaignError> {
        let path =
            make_folder().and_then(|()| state()).map_err(describe_failure("keep the testbed's state"))?;
        let attempted = format!("write {}", path.display());
        let create = || File::options().write(true).create_new(true).open(&path);
        let made = match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A file that another process is about to write is empty and new.
                let modified = std::fs::metadata(&path).and_then(|file| file.modified());
                let age = modified.ok().and_then(|modified| modified.elapsed().ok());
                if age.is_some_and(|age| age < CLAIMED) {
                    return Err(CampaignError::Usage("another testbed is just being built".to_owned()));
                }
                // A leftover of a testbed that was killed.
                std::fs::remove_file(&path).and_then(|()| create())
            }
            made => made,
        };
        made.map(|_| StateFileClaim(Some(path))).map_err(describe_failure(&attempted))
    }

    /// Writes what the holder reported, and keeps the file.
    pub fn write(mut self, line: &str) -> Result<(), CampaignError> {
        let path = self.0.take().expect("it is written once");
        std::fs::write(&path, line).map_err(|reason| {
            let attempted = format!("write {}", path.display());
            self.0 = Some(path);
            describe_failure(&attempted)(reason)
        })
    }
}

impl Drop for StateFileClaim {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The running testbed, if its holder is still a process of this program.
pub fn known() -> Option<RunningTestbed> {
    let up: RunningTestbed = serde_json::from_slice(&std::fs::read(state().ok()?).ok()?).ok()?;
    // Another process may have the same process id by now.
    if !up.holder.runs() {
        return None;
    }
    let words = std::fs::read(format!("/proc/{}/cmdline", up.holder.pid)).ok()?;
    let holds = b"\0lab\0hold\0";
    words.windows(holds.len()).any(|part| part == holds).then_some(up)
}

/// Path of the state file: one per user.
pub fn state() -> io::Result<PathBuf> {
    Ok(folder()?.join("testbed.json"))
}

/// Path of the socket on which the holder of a testbed inside a guest listens for commands.
pub fn socket() -> io::Result<PathBuf> {
    Ok(folder()?.join("commands.sock"))
}

/// Removes the folder of both, if nothing is in it.
pub fn remove_folder() {
    let _ = std::fs::remove_dir(location());
}

fn location() -> PathBuf {
    runtime_folder("stacklab-lab")
}

/// A folder of this user, in XDG_RUNTIME_DIR or in the cache.
pub fn runtime_folder(name: &str) -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    named.unwrap_or_else(stacklab_guests::image::cache).join(name)
}

fn make_folder() -> io::Result<()> {
    let path = location();
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The folder of both. Under sudo -E it may be below a folder of another user, who may put there what they like.
fn folder() -> io::Result<PathBuf> {
    private(&location())
}

fn private(path: &Path) -> io::Result<PathBuf> {
    let found = std::fs::symlink_metadata(path)?;
    if found.is_dir() && stacklab_testbed::owns(&found) && found.mode() & 0o077 == 0 {
        return Ok(path.to_owned());
    }
    let reason = format!("{} is not a folder that this user alone may enter: remove it", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// An error of a step of a manual testbed.
pub fn describe_failure(attempted: &str) -> impl Fn(io::Error) -> CampaignError + use<'_> {
    move |reason| TestbedError(format!("could not {attempted}: {reason}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let above = tempfile::tempdir().unwrap();
        let own = above.path().join("own");
        assert!(private(&own).is_err());
        DirBuilder::new().mode(0o700).create(&own).unwrap();
        assert_eq!(private(&own).unwrap(), own);
        let link = above.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(private(&link).unwrap_err().to_string().contains("this user alone"));
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(private(&own).is_err());
        std::fs::write(above.path().join("file"), "").unwrap();
        assert!(private(&above.path().join("file")).is_err());
    }
}
