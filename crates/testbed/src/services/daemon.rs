//! A daemon that runs on the receiver.

use crate::kernel::sys::limit_open_files;
use crate::services::program::{Program, with_own_libraries};
use crate::{AtHost, Attempt, Fault, Node, Process, TestbedError, Workdir, last_words, spawn_in_namespace};
use stacklab_model::Services;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct ServiceEnds<'a> {
    /// The ID of a process in each namespace.
    pub namespaces: [u32; 2],
    /// The processors of each end. Empty: any.
    pub processors: [&'a [usize]; 2],
}

/// A daemon. Dropping it kills it and the processes that it started.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub program: &'static Program,
    pub version: String,
    process: Process,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn start(
        program: &'static Program,
        services: &Services,
        workdir: &Workdir,
        ends: &ServiceEnds<'_>,
    ) -> Result<Self, TestbedError> {
        let file = program.find()?;
        let own = workdir.path().join(program.name);
        let log = own.join("log");
        let start = || -> Result<Process, Fault> {
            fs::create_dir(&own).attempt(format!("create {}", own.display()))?;
            let mut command = (program.command)(&file, services, &own)?;
            let output = File::create(&log).attempt(format!("write {}", log.display()))?;
            let errors = output.try_clone().attempt(format!("write {}", log.display()))?;
            prepare(&mut command, &file, &own);
            command.stdout(output).stderr(errors);
            spawn_in_namespace(ends.namespaces[1], &mut command, ends.processors[1])
        };
        let process = start().at(Node::Receiver)?;
        Ok(Daemon { program, version: program.version(&file), process, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn check(&mut self) -> Result<(), TestbedError> {
        match self.process.status() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.fault(&format!("ended ({status})"))),
            Err(error) => Err(self.fault(&format!("cannot be looked at: {error}"))),
        }
    }

    /// An error about the daemon, with its last output.
    pub(crate) fn fault(&self, what: &str) -> TestbedError {
        let (version, remedy, words) = (&self.version, self.program.remedy, last_words(&self.log));
        TestbedError(format!("the {version} on the receiver {what}{words}; to get another one: {remedy}"))
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Fault> {
    fs::write(path, text).attempt(format!("write {}", path.display()))
}

/// Gives the daemon none of this machine's settings, and a low limit of open files.
pub(super) fn prepare(command: &mut Command, file: &Path, own: &Path) {
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("TMPDIR", own)
        // Ignore the configuration files of libldap and libsasl2.
        .env("LDAPNOINIT", "1")
        .env("SASL_CONF_PATH", own)
        .current_dir(own)
        .stdin(Stdio::null());
    with_own_libraries(command, file);
    limit_open_files(command);
}
