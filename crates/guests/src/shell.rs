//! Commands on the hosts of a testbed in a guest. `stacklab lab enter` sends the request, the testbed's holder relays
//! it, and the guest runs the command, with this machine's files if it can show them.
//!
//! ```text
//! client ── socket ── relay (the holder) ── mux ── serve (the guest) ── become_command (the command's process)
//! ```

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nix::mount::{MsFlags, mount};
use nix::unistd::{chdir, chroot};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stacklab_testbed::{Attempt, Fault, join, unshare_mounts};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

mod client;
pub(crate) mod serve;

pub use client::{Ended, enter_guest, listen, run_in_guest};

/// The number of commands that can run in a guest at once.
pub const MAX_COMMANDS: usize = 8;

/// Messages to the guest over a command stream. A request is sent in small parts, and each is acknowledged: the serial
/// line of user-mode Linux stops reading when more than its 4096 bytes of buffer are in use.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientFrame {
    /// The next bytes of a request.
    Part(Bytes),
    /// The client is gone: end the command if it is still running. Last message.
    HangUp,
}

/// Bytes in a part. Those of all command streams together fit into the buffer, including their overhead.
pub(crate) const PART: usize = 256;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    Run(CommandRequest),
    Input(Bytes),
    InputEnds,
    Resized(Window),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandRequest {
    /// The host's position on the path: 0 is the sender, 3 the receiver.
    pub host: usize,
    pub command: Vec<String>,
    pub folder: PathBuf,
    pub environment: Vec<(String, String)>,
    pub terminal: Option<Window>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    pub rows: u16,
    pub columns: u16,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuestFrame {
    /// A part was received, and the next may be sent.
    Taken,
    Output(Bytes),
    Errors(Bytes),
    /// The command has ended with this exit code: 128 plus the signal's number if a signal ended it. Last message.
    Ended(i32),
    /// The command could not be started. Last message.
    Failed(String),
}

impl GuestFrame {
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, GuestFrame::Ended(_) | GuestFrame::Failed(_))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Bytes).map_err(D::Error::custom)
    }
}

const FILES: &str = "/host";

/// Moves this process into the network namespace of a host's process, and, if the guest can show them, to this
/// machine's files. Then executes the command. The process must have one thread. Returns only on failure.
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
    let there = chdir(folder).or_else(|_| chdir("/"));
    there.attempt(format!("enter {}", folder.display()))
}

/// Whether this kernel is user-mode Linux, which can show its user's files.
pub fn shows_files() -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_testbed::host::write_message;

    #[test]
    fn bytes_of_all_kinds_go_over_in_one_line() {
        let all: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        write_message(&mut line, &GuestFrame::Output(Bytes(all.clone()))).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<GuestFrame>(&line).unwrap(), GuestFrame::Output(Bytes(all)));
        assert!(serde_json::from_str::<GuestFrame>(r#"{"output":"?"}"#).is_err());
    }
}
