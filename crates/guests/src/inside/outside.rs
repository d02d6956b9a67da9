//! The folder on the machine outside in which a user-mode Linux guest was started. What a guest finds there takes no
//! virtual time, unlike a message.

use crate::GuestRole;
use nix::fcntl::readlink;
use nix::mount::{MsFlags, mount};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Its mount point in the guest.
const FOLDER: &str = "/outside";
/// The folder by the name that it has in every run.
const STARTED_IN: &str = "/proc/self/cwd";
/// The file with the guest's role.
const ROLE: &str = "role";

/// The link by which a guest in virtual time takes requests. Its reading ends when there are some: `image/getrandom.c`
/// takes them from the pipe beside it.
pub(crate) const REQUESTS: &str = "requests";

/// Writes a guest's role into the folder in which the guest will be started.
pub(crate) fn write_role(folder: &Path, role: &GuestRole) -> io::Result<()> {
    fs::write(folder.join(ROLE), serde_json::to_vec(role)?)
}

/// The path of a file there.
pub(super) fn file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Waits for requests, while this system stands still. All that are there, or some thousand bytes.
pub(super) fn next_requests() -> io::Result<Vec<u8>> {
    Ok(readlink(&file(REQUESTS))?.into_vec())
}

/// The role that is there. `None` where there is none, or no such folder.
pub(super) fn role() -> Option<io::Result<GuestRole>> {
    let kinds = fs::read_to_string("/proc/filesystems").ok()?;
    if !kinds.lines().any(|line| line.ends_with("\thostfs")) {
        return None;
    }
    fs::create_dir_all(FOLDER).ok()?;
    mount(Some("none"), FOLDER, Some("hostfs"), MsFlags::empty(), Some(STARTED_IN)).ok()?;
    match fs::read(file(ROLE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))),
    }
}
