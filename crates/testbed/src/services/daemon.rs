//! A daemon that runs on the receiver.

use crate::error::{Attempt, Fault, TestbedError};
use crate::host::console::last_words;
use crate::host::workdir::Workdir;
use crate::kernel::namespace::spawn_in_namespace;
use crate::kernel::sys::{kill_group, limit_open_files};
use crate::link::addressing::address;
use crate::services::program::{Program, prefix, with_own_libraries};
use crate::services::{dnsmasq, slapd};
use crate::topology::Node;
use stacklab_model::{Family, Role, Services};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The folders that may hold slapd's modules, relative to the parent of `sbin`.
const MODULES: [&str; 4] = ["lib/ldap", "lib/openldap", "lib64/openldap", "libexec/openldap"];

/// The two ends of a link as the services use them, sender first.
pub(crate) struct ServiceEnds<'a> {
    /// The ID of a process in each namespace.
    pub namespaces: [u32; 2],
    /// The processors of each end. Empty: any.
    pub processors: [&'a [usize]; 2],
}

/// A daemon. Dropping it kills the daemon and the processes that it started, and waits for it.
#[derive(Debug)]
pub(crate) struct Daemon {
    program: Program,
    version: String,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program for the services that it provides.
    pub(crate) fn start(
        program: Program,
        services: &Services,
        workdir: &Workdir,
        ends: &ServiceEnds<'_>,
    ) -> Result<Self, TestbedError> {
        let file = program.find()?;
        let own = workdir.path().join(program.name());
        let log = own.join("log");
        let version = program.version(&file);
        let fault = |fault: Fault| fault.at(Node::Receiver);
        fs::create_dir(&own).attempt(format!("create {}", own.display())).map_err(fault)?;
        let mut command = match program {
            Program::Dnsmasq => dnsmasq_command(&file, services, &own),
            Program::Slapd => slapd_command(&file, &own),
        }
        .map_err(|reason| match reason {
            Refusal::Fault(reason) => fault(reason),
            Refusal::Said(what) => {
                TestbedError::Service { program: version.clone(), what, remedy: program.remedy() }
            }
        })?;
        let child = launch(&mut command, &file, &own, &log, ends).map_err(fault)?;
        Ok(Daemon { program, version, child, log })
    }

    /// The daemon's program.
    pub(crate) fn program(&self) -> Program {
        self.program
    }

    /// Its name and version.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Its process ID.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Checks that the daemon is still running.
    pub(crate) fn check(&mut self) -> Result<(), TestbedError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.fault(&format!("ended ({status})"))),
            Err(error) => Err(self.fault(&format!("cannot be looked at: {error}"))),
        }
    }

    /// An error about the daemon, with its last output.
    pub(crate) fn fault(&self, what: &str) -> TestbedError {
        TestbedError::Service {
            program: self.version.clone(),
            what: format!("{what}{}", last_words(&self.log)),
            remedy: self.program.remedy(),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A daemon that was waited for has no process ID any more. All daemons die with this process at the latest.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// The reason why a daemon cannot be started.
enum Refusal {
    /// A step failed.
    Fault(Fault),
    /// The daemon's own error message.
    Said(String),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal::Fault(fault)
    }
}

fn dnsmasq_command(file: &Path, services: &Services, own: &Path) -> Result<Command, Refusal> {
    let config = own.join("dnsmasq.conf");
    write(&config, &dnsmasq::config(services, own))?;
    let mut command = Command::new(file);
    // Run in the foreground as the starting user: a user namespace may have no other user.
    command.arg("--no-daemon").arg(format!("--conf-file={}", config.display()));
    Ok(command)
}

fn slapd_command(file: &Path, own: &Path) -> Result<Command, Refusal> {
    let (config, entries, database) =
        (own.join("slapd.conf"), own.join("entries.ldif"), own.join("database"));
    fs::create_dir(&database).attempt(format!("create {}", database.display()))?;
    let modules = prefix(file).and_then(|prefix| {
        let folders = MODULES.map(|folder| prefix.join(folder));
        folders
            .into_iter()
            .find(|folder| folder.join("back_mdb.so").exists() || folder.join("back_mdb.la").exists())
    });
    write(&config, &slapd::config(&database, modules.as_deref()))?;
    write(&entries, &slapd::entries())?;
    let mut add = Command::new(file);
    add.args(["-T", "add", "-f"]).arg(&config).arg("-l").arg(&entries);
    prepare(&mut add, file, own);
    let filled = add.output().attempt(format!("start {}", file.display()))?;
    if !filled.status.success() {
        let said = String::from_utf8_lossy(&filled.stderr).trim().replace('\n', "\n    ");
        return Err(Refusal::Said(format!("could not fill its directory ({}):\n    {said}", filled.status)));
    }
    let listen = Family::ALL.iter().map(|family| match address(*family, Role::Receiver).0 {
        std::net::IpAddr::V4(address) => format!("ldap://{address}/"),
        std::net::IpAddr::V6(address) => format!("ldap://[{address}]/"),
    });
    let mut command = Command::new(file);
    // Run in the foreground with all log levels (-d), and do not log to syslog (-s).
    command
        .args(["-d", "none", "-s", "0", "-h"])
        .arg(listen.collect::<Vec<_>>().join(" "))
        .arg("-f")
        .arg(config);
    Ok(command)
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    fs::write(path, text).attempt(format!("write {}", path.display()))
}

/// Gives the daemon none of this machine's settings, and a low limit of open files.
fn prepare(command: &mut Command, file: &Path, own: &Path) {
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

fn launch(
    command: &mut Command,
    file: &Path,
    own: &Path,
    log: &Path,
    ends: &ServiceEnds<'_>,
) -> Result<Child, Fault> {
    let output = File::create(log).attempt(format!("write {}", log.display()))?;
    let errors = output.try_clone().attempt(format!("write {}", log.display()))?;
    prepare(command, file, own);
    command.stdout(output).stderr(errors);
    spawn_in_namespace(ends.namespaces[1], command, ends.processors[1])
}
