//! A daemon of the Wi-Fi network in a host's namespace.

use stacklab_testbed::error::{Attempt, Fault};
use stacklab_testbed::host::console::last_words;
use stacklab_testbed::host::program::bundled;
use stacklab_testbed::kernel::namespace::spawn_in_namespace;
use stacklab_testbed::kernel::sys::kill_group;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The folder of the programs in a guest, below the root.
pub const FOLDER: &str = "wifi";
/// The file in the folder with the versions of the programs' packages, a line each.
pub const VERSIONS: &str = "versions";

/// A running daemon with a separate folder. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Daemon {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program of the guest's image in the network namespace of a process, with this configuration as a file
    /// in the folder, which is created. The file's path follows the arguments.
    pub(super) fn start<'a>(
        name: &'static str,
        pid: u32,
        folder: &Path,
        config: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Fault> {
        fs::create_dir_all(folder).attempt(format!("create {}", folder.display()))?;
        let (file, log) = (folder.join("config"), folder.join("log"));
        fs::write(&file, config).attempt(format!("write {}", file.display()))?;
        let output = File::create(&log).attempt(format!("write {}", log.display()))?;
        let errors = output.try_clone().attempt(format!("write {}", log.display()))?;
        let mut command = bundled(FOLDER, name).attempt(format!("find {name}"))?;
        command.args(args.into_iter().map(OsStr::new)).arg(&file);
        command.env_clear().stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = spawn_in_namespace(pid, &mut command, &[])?;
        Ok(Daemon { name, child, log })
    }

    /// Checks that it is still running.
    ///
    /// # Errors
    /// It has ended. The error has its last output.
    pub(super) fn check(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(io::Error::other(format!("{} has ended ({status}){}", self.name, self.last_words())))
            }
        }
    }

    /// Its last output, to append to an error message.
    pub(super) fn last_words(&self) -> String {
        last_words(&self.log)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has been waited for has no process ID any more.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}
