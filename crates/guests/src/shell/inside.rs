//! The process in a guest that becomes the command.

use nix::mount::{MsFlags, mount};
use nix::unistd::{chdir, chroot};
use stacklab_testbed::{Attempt, Fault, join, unshare_mounts};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The mount point of this machine's files in user-mode Linux.
const FILES: &str = "/host";

/// Moves this process into the network namespace of a host's process, and, if the guest can show them, to this
/// machine's files. Then executes the command in this folder. The process must have one thread. Returns only on
/// failure.
pub fn become_command(host: u32, folder: &Path, command: &[String]) -> io::Error {
    let Some((program, args)) = command.split_first() else { return io::Error::other("there is no command") };
    if let Err(fault) = go_there(host, folder) {
        return io::Error::other(fault.to_string());
    }
    Command::new(program).args(args).exec()
}

fn go_there(host: u32, folder: &Path) -> Result<(), Fault> {
    join(host).attempt("enter the host's network namespace")?;
    unshare_mounts().attempt("enter a mount namespace")?;
    let files = shows_files();
    if files {
        fs::create_dir_all(FILES).attempt(format!("create {FILES}"))?;
        put("none", FILES, Some("hostfs"), MsFlags::empty(), Some("/"))?;
        for own in ["/proc", "/dev"] {
            put(own, &format!("{FILES}{own}"), None, MsFlags::MS_BIND | MsFlags::MS_REC, None)?;
        }
    }
    // A mounted sysfs shows the interfaces of the namespace from which it was mounted.
    let sys = if files { format!("{FILES}/sys") } else { "/sys".to_owned() };
    put("sysfs", &sys, Some("sysfs"), MsFlags::empty(), None)?;
    if files {
        chroot(FILES).attempt("go among this machine's files")?;
    }
    // A missing folder is not an error.
    let there = chdir(folder).or_else(|_| chdir("/"));
    there.attempt(format!("enter {}", folder.display()))
}

/// Whether this kernel is user-mode Linux, which can show its user's files.
fn shows_files() -> bool {
    fs::read_to_string("/proc/filesystems")
        .is_ok_and(|all| all.lines().any(|line| line.ends_with("\thostfs")))
}

fn put(
    what: &str,
    place: &str,
    kind: Option<&str>,
    flags: MsFlags,
    options: Option<&str>,
) -> Result<(), Fault> {
    mount(Some(what), place, kind, flags, options).attempt(format!("mount {what} at {place}"))
}
