//! The real program in its own folder, and its output.

use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The key of every agent that listens in a test, and of its coordinators.
pub(crate) const KEY: &str = "0123456789-of-the-tests-alone";

/// Exit codes, as `stacklab --help` lists them.
pub(crate) mod code {
    pub(crate) const DONE: i32 = 0;
    pub(crate) const ELSE: i32 = 1;
    pub(crate) const REQUEST: i32 = 2;
    pub(crate) const TESTBED: i32 = 3;
    pub(crate) const RECORD: i32 = 4;
    pub(crate) const HOST: i32 = 5;
    pub(crate) const NOTHING_VALID: i32 = 6;
    pub(crate) const INVALID: i32 = 7;
    pub(crate) const WORSE: i32 = 8;
    pub(crate) const NOT_COMPARABLE: i32 = 12;
    pub(crate) const INTERRUPTED: i32 = 130;
}

/// A copy of the program. Its processes are identified by the copy's path, independently of other programs on this
/// machine. All its leftovers are in its folders.
pub(crate) struct Program {
    folder: TempDir,
}

impl Program {
    /// Three folders: `bin` with the copy, `work` as the current folder, `tmp` as its TMPDIR. Any user may read the
    /// first and write the others.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("stacklab-test-").tempdir().unwrap();
        for (name, mode) in [("", 0o755), ("bin", 0o755), ("work", 0o777), ("tmp", 0o777)] {
            let path = folder.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let program = Program { folder };
        // Another process makes the copy: a file that this process has open for writing could not be started ("text
        // file busy") while another test forks.
        let source = env!("CARGO_BIN_EXE_stacklab");
        let copied = Command::new("cp").arg(source).arg(program.path()).status().expect("cp is installed");
        assert!(copied.success(), "{source} could not be copied into {}", program.folder.path().display());
        program
    }

    /// The copy.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("bin/stacklab")
    }

    /// The folder that it runs in.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Its TMPDIR.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Writes a file into its folder; any user may read it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Gives its folder to a user, who then owns the files created there.
    pub(crate) fn give_to(&self, user: u32) {
        chown(self.work(), Some(user), Some(user)).unwrap();
    }

    /// Names of the files in its folder.
    pub(crate) fn files(&self) -> Vec<String> {
        names(&self.work())
    }

    /// The program with arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path());
        command.args(args);
        self.placed(command)
    }

    /// A shell script; `$STACKLAB` is the program.
    pub(crate) fn script(&self, shell: &[&str], script: &str) -> Command {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script);
        self.placed(command)
    }

    /// Runs the program until it ends.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(self.command(args))
    }

    /// Starts the program; its output goes to files next to its folders.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.started(self.command(args))
    }

    /// Starts one of its commands in the same way.
    pub(crate) fn started(&self, mut command: Command) -> Running {
        let stdout = self.folder.path().join("stdout");
        let stderr = self.folder.path().join("stderr");
        command.stdout(fs::File::create(&stdout).unwrap()).stderr(fs::File::create(&stderr).unwrap());
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        Running { child, stdout, stderr, command: format!("{command:?}") }
    }

    /// Copies a tool that scripts/setup has unpacked below this tree, with its libraries, to a folder that any user
    /// may read. Returns the PATH for the tool.
    pub(crate) fn path_with(&self, tool: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(tool))
            .find_map(|file| file.canonicalize().ok());
        let found = found.unwrap_or_else(|| panic!("this test needs `{tool}`: scripts/setup test-all"));
        // An installed tool is readable by all users.
        let (Some(folder), Some(usr)) = (found.parent(), found.ancestors().nth(2)) else { return path };
        if usr == Path::new("/usr") || usr == Path::new("/") {
            return path;
        }
        let copy = self.folder.path().join(tool);
        let copied = Command::new("cp").arg("-a").arg(usr).arg(&copy).status().expect("cp is installed");
        assert!(copied.success(), "{} could not be copied into {}", usr.display(), copy.display());
        format!("{}:{path}", copy.join(folder.file_name().expect("it is below usr")).display())
    }

    fn placed(&self, mut command: Command) -> Command {
        command.current_dir(self.work()).env("TMPDIR", self.tmp()).env("STACKLAB", self.path());
        command.env("STACKLAB_KEY", KEY);
        command
    }
}

/// The running program.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    command: String,
}

impl Running {
    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills it with SIGKILL and waits. Returns whether the kill ended it.
    pub(crate) fn kill(&mut self) -> bool {
        let _ = self.child.kill();
        self.child.wait().unwrap().signal() == Some(9)
    }

    /// Its standard error output so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Waits for its first output on standard error; fails if it ends before, or stays silent.
    pub(crate) fn wait_for(&mut self, text: &str, limit: Duration) {
        let start = Instant::now();
        while !self.stderr().contains(text) {
            assert!(self.is_running(), "{} ended without saying `{text}`:\n{}", self.command, self.stderr());
            assert!(start.elapsed() < limit, "no `{text}` within {limit:?}:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end; fails if it runs longer than the limit.
    pub(crate) fn end(mut self, limit: Duration) -> Outcome {
        let start = Instant::now();
        while self.is_running() {
            if start.elapsed() > limit {
                self.kill();
                panic!("{} has not ended within {limit:?}:\n{}", self.command, self.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().unwrap();
        let stdout = fs::read_to_string(&self.stdout).unwrap();
        Outcome { status, stdout, stderr: self.stderr(), command: self.command.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A failed test leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program's exit and output.
pub(crate) struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    command: String,
}

impl Outcome {
    /// Runs a command until it ends.
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        Outcome {
            status: output.status,
            stdout: String::from_utf8(output.stdout).expect("the program speaks UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("the program speaks UTF-8"),
            command: format!("{command:?}"),
        }
    }

    /// Fails unless the exit code is this code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// Fails unless standard error contains each of these texts.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` is not on standard error of {self}");
        }
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome { status, stdout, stderr, command } = self;
        write!(f, "{command}: {status}\n--- standard error\n{stderr}\n--- standard output\n{stdout}")
    }
}

/// Sends a signal by its name, without unsafe code.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -s {name} {pid}")]).status().unwrap();
    assert!(sent.success(), "SIG{name} could not be sent to {pid}");
}

/// The processes that this process has started, from any thread.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Opens a record like another program: read only, with SQLite alone.
pub(crate) fn record(path: &Path) -> Connection {
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    opened.unwrap_or_else(|error| panic!("{} does not open: {error}", path.display()))
}

/// The reasons of a record's invalid runs.
pub(crate) fn invalid(path: &Path) -> Vec<String> {
    let record = record(path);
    let mut query = record
        .prepare(
            "SELECT block, probe, family, transport, reasons FROM run WHERE status <> 'valid' ORDER BY id",
        )
        .unwrap();
    let rows = query
        .query_map([], |row| {
            let (block, probe, family): (u32, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (transport, reasons): (String, String) = (row.get(3)?, row.get(4)?);
            Ok(format!("block {block} {probe} {family} {transport}: {reasons}"))
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// The number of runs of a record that meet a condition.
pub(crate) fn count(path: &Path, condition: &str) -> u64 {
    let query = format!("SELECT count(*) FROM run WHERE {condition}");
    record(path).query_row(&query, [], |row| row.get::<_, u32>(0)).unwrap().into()
}

/// Fails with instructions if the tests do not run as root. A test that needs root measures: if it fails after this
/// call, it also reports the other load.
pub(crate) fn require_root() {
    super::others::watch();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    assert_eq!(user.split_whitespace().nth(1), Some("0"), "this test needs root: make test, or as root");
}

/// Fails with the package to install if a tool is missing.
pub(crate) fn require_tool(tool: &str, package: &str) {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok(), "this test needs `{tool}`: install the package {package}");
}
