//! A daemon of the Wi-Fi network in a host's namespace.

use stacklab_testbed::{Attempt, Fault, Process, bundled, last_words, spawn_in_namespace};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The folder of the programs in a guest, below the root.
pub const FOLDER: &str = "wifi";
/// The file in the folder with the versions of the programs' packages, a line each.
pub const VERSIONS: &str = "versions";

/// A running daemon with a separate folder. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    process: Process,
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
        let process = spawn_in_namespace(pid, &mut command, &[])?;
        Ok(Daemon { name, process, log })
    }

    pub(super) fn check(&mut self) -> io::Result<()> {
        match self.process.status()? {
            None => Ok(()),
            Some(status) => {
                Err(io::Error::other(format!("{} has ended ({status}){}", self.name, self.last_words())))
            }
        }
    }

    pub(super) fn last_words(&self) -> String {
        last_words(&self.log)
    }
}
