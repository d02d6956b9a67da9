//! This program as an agent, and programs that are not part of stacklab, such as iperf3, which run in hosts for a
//! while.

use crate::kernel::belonging::bind_to_host;
use crate::kernel::cpus;
use crate::kernel::namespace::ChildCpu;
use crate::kernel::sys::limit;
use crate::services::program::with_own_libraries;
use crate::{AtHost, Attempt, Host, Node, Process, TestbedError, Workdir, spawn_in_namespace};
use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use stacklab_model::{Family, Transport};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The arguments with which stacklab is an agent on its standard input and output.
pub const AGENT: [&str; 2] = ["agent", "--stdio"];

/// The loader of programs that an image brings along, in the folder with their libraries.
pub const LOADER: &str = "ld-linux-x86-64.so.2";

/// The command of a program that a guest's image has in this folder, with its own loader and libraries.
pub fn bundled_command(folder: &str, program: &str) -> io::Result<Command> {
    let own = Path::new("/").join(folder);
    let file = own.join(program);
    file.metadata().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    let mut command = Command::new(own.join(LOADER));
    command.arg("--library-path").arg(&own).arg(file);
    Ok(command)
}

/// Finds a program that is not part of stacklab. The error says how to get it.
pub fn find(program: &str, remedy: &str) -> Result<PathBuf, TestbedError> {
    program_in_path(program).ok_or_else(|| TestbedError::no_program(program, remedy))
}

/// The absolute path of a program in a folder, or as [`find`] has it without one.
pub fn find_in(folder: Option<&str>, program: &str, remedy: &str) -> Result<PathBuf, TestbedError> {
    let Some(folder) = folder else { return find(program, remedy) };
    let file = Path::new(folder).join(program);
    let found = std::path::absolute(&file).ok().filter(|file| is_program(file));
    found.ok_or_else(|| {
        TestbedError::no_program(&file.display().to_string(), "build it there: `programs` names its folder")
    })
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Finds a program in PATH and the folders of system programs.
pub fn program_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// Whether the commands of users find a file: by its path where it has one, otherwise as a program in their PATH, which
/// is this process's own, without the folders of system programs.
pub fn is_found_by_commands(file: &str) -> bool {
    if file.contains('/') {
        return Path::new(file).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join(file)))
}

/// What reads the commands of users.
pub(super) const SHELL: &str = "/bin/sh";
const POLL_INTERVAL: Duration = Duration::from_millis(5);

impl Workdir {
    /// Starts the program of a file in a host's namespace, on the host's processors, in its own process group. The
    /// kernel kills it with the calling thread. A program that writes a file of more than a gigabyte is killed.
    pub fn start(
        &self,
        host: &Host,
        program: &'static str,
        file: &Path,
        arguments: &[String],
    ) -> Result<Tool, TestbedError> {
        let own = self.for_host(&host.node().to_string())?;
        let mut command = Command::new(file);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C")
            .env("TMPDIR", &own)
            .current_dir(&own);
        with_own_libraries(&mut command, file);
        limit(&mut command, Resource::RLIMIT_NOFILE, 1024);
        limit(&mut command, Resource::RLIMIT_FSIZE, 1 << 30);
        self.spawn(host, program, command)
    }

    /// Starts a command of the user's own in a host as [`Workdir::start`] does, but in this process's folder and
    /// environment; it is read by a shell. TMPDIR is a folder that is removed with this one. The shell is executed by
    /// an emulator, if one is named: its command up to the program.
    pub fn start_command(
        &self,
        host: &Host,
        called: &'static str,
        command: &str,
        emulator: &[OsString],
    ) -> Result<Tool, TestbedError> {
        let mut words = emulator.to_vec();
        words.push(SHELL.into());
        let mut shell = Command::new(&words[0]);
        shell.args(&words[1..]).args(["-c", command]);
        shell.env("TMPDIR", self.for_host(&host.node().to_string())?);
        limit(&mut shell, Resource::RLIMIT_FSIZE, 1 << 30);
        self.spawn(host, called, shell)
    }

    fn spawn(&self, host: &Host, called: &'static str, mut command: Command) -> Result<Tool, TestbedError> {
        let node = host.node();
        let own = self.for_host(&node.to_string())?;
        let [printed, complained] = [own.join(called), own.join(format!("{called}.errors"))];
        let output = File::create(&printed).map_err(TestbedError::file(&printed))?;
        let errors = File::create(&complained).map_err(TestbedError::file(&complained))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        bind_to_host(&mut command, host.pid()).attempt("find a host's network namespace").at(node)?;
        let process = spawn_in_namespace(host.pid(), &mut command, &cpus::of(host.pid())).at(node)?;
        Ok(Tool { node, program: called, process, printed, complained })
    }
}

/// A running program. Dropping it kills it and the processes that it started, and waits for it.
#[derive(Debug)]
pub struct Tool {
    node: Node,
    program: &'static str,
    process: Process,
    printed: PathBuf,
    complained: PathBuf,
}

impl Tool {
    /// Its name and host: `iperf3 on sender`.
    pub fn name(&self) -> String {
        format!("{} on {}", self.program, self.node)
    }

    /// Waits until it has ended, but not longer than until `until`, nor once `stop` says so. `None` if it has not.
    pub fn wait(&mut self, until: Instant, stop: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
        loop {
            let status = self.process.status()?;
            if status.is_some() || stop() || Instant::now() >= until {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Its CPU time, once `wait` has found that it has ended.
    pub fn cpu(&self) -> Option<ChildCpu> {
        self.process.cpu()
    }

    /// Asks it to end (SIGINT), as its user would.
    pub fn interrupt(&mut self) -> io::Result<()> {
        self.process.signal(Signal::SIGINT)
    }

    /// Asks it and the processes that it started to end (SIGTERM), as a service is asked.
    pub fn terminate(&mut self) -> io::Result<()> {
        self.process.signal(Signal::SIGTERM)
    }

    /// Calls `watch` every `interval` until the program has ended, which the kernel reports at once, and gives the time
    /// of its end. `None` if `watch` said so or it is `until` before: it is killed then.
    pub fn watch(
        &mut self,
        until: Instant,
        interval: Duration,
        mut watch: impl FnMut() -> ControlFlow<()>,
    ) -> io::Result<Option<Instant>> {
        let pid = Pid::from_raw(self.process.id() as i32);
        let ended: OnceLock<nix::Result<Instant>> = OnceLock::new();
        let mut is_killed = false;
        thread::scope(|scope| {
            let watching = thread::current();
            let ended = &ended;
            scope.spawn(move || {
                // It stays a child that can be waited for.
                let waited = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
                let _ = ended.set(waited.map(|_| Instant::now()));
                watching.unpark();
            });
            while ended.get().is_none() && Instant::now() < until && watch().is_continue() {
                thread::park_timeout(interval);
            }
            is_killed = ended.get().is_none();
            if is_killed {
                // Else the thread above would wait for it.
                let _ = self.process.signal(Signal::SIGKILL);
            }
        });
        match ended.into_inner() {
            Some(Err(error)) => Err(error.into()),
            Some(Ok(at)) if !is_killed => Ok(Some(at)),
            _ => Ok(None),
        }
    }

    /// Kills it and the processes that it started.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
    }

    /// Whether a socket of its namespace waits for connections or datagrams on a port.
    pub fn is_listening(&self, transport: Transport, port: u16) -> bool {
        is_listening(self.process.id(), transport, port)
    }

    /// What it has printed so far, at most `most` bytes.
    pub fn printed_text(&self, most: usize) -> String {
        start_of(&self.printed, most)
    }

    /// What it has printed so far as errors, at most `most` bytes.
    pub fn errors(&self, most: usize) -> String {
        start_of(&self.complained, most)
    }

    /// The end of what it has printed so far, and then of its errors, at most `most` bytes each.
    pub fn printed_last(&self, most: usize) -> String {
        [&self.printed, &self.complained].map(|file| end_of(file, most)).concat()
    }
}

/// Whether a socket waits for connections or datagrams on a port, in the network namespace of a living process.
pub fn is_listening(pid: u32, transport: Transport, port: u16) -> bool {
    Family::ALL.iter().any(|family| is_listening_in(pid, transport, *family, port))
}

/// The same for sockets of one family. A socket for both is one of IPv6.
pub fn is_listening_in(pid: u32, transport: Transport, family: Family, port: u16) -> bool {
    let (name, state) = match transport {
        Transport::Tcp => ("tcp", "0A"),
        Transport::Udp => ("udp", "07"),
    };
    let suffix = if family == Family::Ipv6 { "6" } else { "" };
    let sockets = fs::read_to_string(format!("/proc/{pid}/net/{name}{suffix}")).unwrap_or_default();
    listens(&sockets, state, port)
}

fn end_of(file: &Path, most: usize) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(file)
        && let Ok(length) = file.seek(SeekFrom::End(0))
    {
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(most as u64)));
        let _ = file.take(most as u64).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn start_of(file: &Path, most: usize) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(file) {
        let _ = file.take(most as u64).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a table of the kernel's sockets (/proc/net/tcp) has one on this port in this state.
fn listens(table: &str, state: &str, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().and_then(|local| local.rsplit_once(':')).map(|(_, port)| port);
        let found = local.and_then(|port| u16::from_str_radix(port, 16).ok());
        found == Some(port) && words.nth(1) == Some(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_their_folder_alone() {
        let in_bin = find_in(Some("/bin"), "sh", "").unwrap();
        assert_eq!(in_bin, Path::new("/bin/sh"));
        let error = find_in(Some("base/src"), "sh", "").unwrap_err().to_string();
        assert!(error.contains("no program `base/src/sh`") && error.contains("`programs`"), "{error}");
        assert_eq!(find_in(None, "sh", "").unwrap(), program_in_path("sh").unwrap());
    }

    #[test]
    fn a_listening_socket_is_found_by_its_port_and_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
            0: 0100007F:1451 00000000:0000 0A 00000000:00000000 00:00000000\n   \
            1: 0100007F:1452 0100007F:1451 01 00000000:00000000 00:00000000\n";
        assert!(listens(table, "0A", 5201));
        assert!(!listens(table, "0A", 5202) && !listens(table, "07", 5201) && !listens("", "0A", 5201));
    }

    #[test]
    fn commands_find_files_by_path_or_in_path() {
        assert!(is_found_by_commands("sh") && is_found_by_commands("/bin/sh"));
        // Relative to this process's folder, and without a right to execute it.
        assert!(is_found_by_commands("./Cargo.toml") && is_found_by_commands("src/lib.rs"));
        for missing in ["Cargo.toml", "./none", "/nonexistent/sh", "", "none-of-such-a-name"] {
            assert!(!is_found_by_commands(missing), "{missing}");
        }
    }
}
