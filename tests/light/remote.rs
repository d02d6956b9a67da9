//! Real machines over ssh: a real sshd in the test's own namespace; the program reaches it from another namespace. The
//! tests need root.

use crate::support;

use stacklab_model::LinkConfig;
use stacklab_store::Record;
use stacklab_testbed::{Testbed, enter};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::program::{Outcome, Program, code, require_root, require_tool};
use support::records::runs;

/// Both hosts of the test's testbed: this machine, and the machine behind ssh.
pub(crate) const PORT: &str = "2222";
/// The link-local addresses of both, each host's interface being st0.
pub(super) const LINK_LOCAL: [&str; 2] = ["fe80::1", "fe80::2"];
/// Maximum time until sshd listens.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time until an error is reported.
const SOON: Duration = Duration::from_secs(15);

pub(super) const STUDY: &str = r#"
title = "Over ssh"
[testbed]
offloads = true
[[host]]
os = "localhost"
interface = "st0"
[[host]]
os = "ssh:lab"
ipv4 = "198.18.0.2"
ipv6 = "2001:2:0:1::2"
[factors]
os = ["ssh:lab"]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size = [512]
[probe.stream]
metrics = ["throughput"]
length = { time = "50ms" }
warmup = "10ms"
[probe.echo]
metrics = ["rtt"]
length = { time = "50ms" }
warmup = "10ms"
[blocks]
schedule = "sequential"
min = 3
max = 3
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
"#;

/// Two namespaces, sshd in the second, and a user's ssh configuration for the first.
pub(crate) struct Scene {
    pub program: Program,
    pub testbed: Testbed,
    folder: tempfile::TempDir,
    sshd: Option<Child>,
}

/// The path of sshd, installed or unpacked by scripts/setup.
fn sshd() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/openssh/usr/sbin/sshd");
    [PathBuf::from("/usr/sbin/sshd"), unpacked]
        .into_iter()
        .find(|path| path.exists())
        .expect("there is no sshd: scripts/setup test-all unpacks it")
}

impl Scene {
    pub(super) fn set() -> Self {
        require_root();
        for (tool, package) in
            [("ssh", "openssh-client"), ("ssh-keygen", "openssh-client"), ("nsenter", "util-linux")]
        {
            require_tool(tool, package);
        }
        enter().unwrap_or_else(|error| panic!("{error}"));
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: true };
        let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (host, address) in testbed.hosts().iter().zip(LINK_LOCAL) {
            let mut ip = Command::new("nsenter");
            ip.args(["-t", &host.pid().to_string(), "-n", "ip", "address", "add"]);
            assert!(ip.args([&format!("{address}/64"), "dev", "st0", "nodad"]).status().unwrap().success());
        }
        let mut scene = Scene { program: Program::new(), testbed, folder, sshd: None };
        scene.write_keys();
        scene.start();
        scene.program.write("study.toml", STUDY);
        // One cell, two runs.
        let (begin, _) = STUDY.split_once("[probe.echo]").unwrap();
        let begin =
            begin.replace(r#"["ipv4", "ipv6"]"#, r#"["ipv4"]"#).replace(r#"["tcp", "udp"]"#, r#"["udp"]"#);
        scene.program.write("short.toml", format!("{begin}[blocks]\nmin = 2\nmax = 2\n"));
        scene
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same, as it stands in a file or a script.
    fn place(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn write_keys(&self) {
        for name in ["host", "user", "stranger"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(self.path(name))
                .status()
                .unwrap();
            assert!(made.success());
        }
        let [host, user] = ["host.pub", "user.pub"].map(|name| fs::read_to_string(self.path(name)).unwrap());
        self.write("authorized", &user);
        self.write("known", &format!("[198.18.0.2]:{PORT},[fe80::2%st0]:{PORT} {host}"));
        self.allow("user");
        // The program runs `ssh` as the user would; the test's user has a different configuration from the user who
        // runs the test.
        fs::create_dir_all(self.path("bin")).unwrap();
        let ssh = self.write(
            "bin/ssh",
            &format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", self.path("config").display()),
        );
        fs::set_permissions(ssh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(self.path("home")).unwrap();
    }

    /// Makes the user offer a key.
    fn allow(&self, key: &str) {
        self.write(
            "config",
            &format!(
                "Host lab\nHostName 198.18.0.2\nHost *\nPort {PORT}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking yes\n",
                self.place(key),
                self.place("known"),
            ),
        );
    }

    /// Starts sshd in the second namespace, with the test's own users.
    fn start(&mut self) {
        let sshd = sshd();
        self.write(
            "passwd",
            &format!(
                "root:*:0:0:root:{}:/bin/sh\nsshd:*:101:65534::/run/sshd:/bin/false\n",
                self.place("home")
            ),
        );
        self.write("shadow", "root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n");
        let mut config = format!(
            "Port {PORT}\nListenAddress 0.0.0.0\nListenAddress fe80::2%st0\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n",
            self.place("host"),
            self.place("authorized"),
        );
        for (option, program) in [("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")] {
            let beside = sshd.parent().unwrap().join("../lib/openssh").join(program);
            if beside.exists() {
                config += &format!("{option} {}\n", beside.display());
            }
        }
        self.link_tools();
        let mut search = self.place("tools");
        if self.path("banner").exists() {
            config += &format!("Banner {}\n", self.place("banner"));
            search = format!("{}:{search}", self.place("there"));
        }
        config += &format!("SetEnv PATH={search}\n");
        self.write("sshd_config", &config);
        let script = format!(
            "mount --bind {} /etc/passwd && mount --bind {} /etc/shadow && mkdir -p /run/sshd && exec {} -D -e -f {}",
            self.place("passwd"),
            self.place("shadow"),
            sshd.display(),
            self.place("sshd_config"),
        );
        let log = fs::File::create(self.path("log")).unwrap();
        let receiver = self.testbed.hosts()[1].pid().to_string();
        let child = Command::new("nsenter")
            .args(format!("-t {receiver} -n unshare -m setpriv --pdeathsig KILL sh -c").split(' '))
            .arg(&script)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.sshd = Some(child);
        let start = Instant::now();
        while !self.log().contains("listening") {
            assert!(start.elapsed() < TIMEOUT, "sshd does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A stacklab that is installed here is not installed there.
    fn link_tools(&self) {
        let tools = self.path("tools");
        if !tools.exists() {
            fs::create_dir(&tools).unwrap();
            for tool in fs::read_dir("/usr/bin").unwrap().flatten() {
                if !tool.file_name().to_string_lossy().starts_with("stacklab") {
                    symlink(tool.path(), tools.join(tool.file_name())).unwrap();
                }
            }
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    fn stop(&mut self) {
        if let Some(mut sshd) = self.sshd.take() {
            sshd.kill().unwrap();
            sshd.wait().unwrap();
        }
    }

    /// The program in the first namespace, which it treats as this machine.
    fn command(&self, args: &[&str]) -> Command {
        let sender = self.testbed.hosts()[0].pid().to_string();
        let program = self.program.path();
        let mut command = Command::new("nsenter");
        command.args(["-t", &sender, "-n"]).arg(program).args(args).current_dir(self.program.work());
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("TMPDIR", self.program.tmp());
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(self.command(args))
    }

    pub(super) fn fails(&self, expected: &[&str]) {
        let start = Instant::now();
        let outcome = self.run(&["run", "study.toml", "--out", "no.stacklab"]).expect(code::HOST);
        let _ = outcome.says(expected);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert!(!self.program.files().contains(&"no.stacklab".to_owned()));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A machine's banner, its login script, and a program named stacklab that it has already.
#[test]
fn what_a_machine_prints_changes_no_terminal() {
    const TITLE: &str = "\u{1b}]0;owned\u{7}";
    let mut scene = Scene::set();
    scene.stop();
    scene.write("banner", &format!("{TITLE}\r\nbanner\n"));
    fs::create_dir_all(scene.path("home/.ssh")).unwrap();
    scene.write(
        "home/.ssh/rc",
        &format!("printf '%s' '{TITLE}\nroot password: \u{1b}[2J' >&2\nyes | head -c 1000000 >&2\n"),
    );
    fs::create_dir_all(scene.path("there")).unwrap();
    let other = scene.write("there/stacklab", &format!("#!/bin/sh\necho 'stacklab 0.0.1{TITLE}'\n"));
    fs::set_permissions(other, fs::Permissions::from_mode(0o755)).unwrap();
    scene.start();
    let run = ["run", "short.toml", "--out", "x.stacklab", "--copy-agent"];
    let refused = scene.run(&run[..4]).expect(code::HOST).stderr;
    check_harmless(&refused);
    assert!(
        refused.contains("another version of stacklab is there (stacklab 0.0.1\u{fffd}]0;owned"),
        "{refused}"
    );
    let done = scene.run(&run).expect(code::DONE);
    check_harmless(&done.stderr);
    check_harmless(&done.stdout);
    assert!(done.stderr.contains("\nssh:lab: root password: \u{fffd}[2J"), "{}", done.stderr);
    scene.allow("stranger");
    let refused = scene.run(&["ssh-clean", "lab"]).expect(code::HOST).stderr;
    check_harmless(&refused);
    assert!(refused.contains("\n  | banner\n") && refused.contains("Permission denied"), "{refused}");
}

fn check_harmless(text: &str) {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(text.len() < 10_000, "{} bytes", text.len());
}

#[test]
fn unreachable_machine_is_said_within_seconds() {
    let mut scene = Scene::set();
    scene.allow("stranger");
    scene.fails(&["ssh:lab", "Permission denied", "ssh lab true"]);
    scene.allow("user");
    scene.write("known", "");
    scene.fails(&["ssh:lab", "Host key verification failed"]);
    scene.stop();
    scene.fails(&["ssh:lab", "Connection refused"]);
}

#[test]
fn lost_machine_ends_the_campaign_which_is_resumed() {
    let mut scene = Scene::set();
    let long = STUDY.replace("min = 3", "min = 30").replace("max = 3", "max = 30");
    scene.program.write("study.toml", long);
    let command = scene.command(&["run", "study.toml", "--out", "x.stacklab", "--seed", "1", "--copy-agent"]);
    let running = scene.program.started(command);
    let record = scene.program.work().join("x.stacklab");
    let start = Instant::now();
    while Record::read(&record).and_then(|record| record.runs()).map_or(0, |runs| runs.len()) < 5 {
        assert!(start.elapsed() < Duration::from_secs(30), "nothing was measured:\n{}", running.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The daemon's child process for this connection ends when a machine disappears.
    let connections = support::program::children(scene.sshd.as_ref().unwrap().id());
    connections.iter().for_each(|pid| support::program::signal(*pid, "KILL"));
    let outcome = running.end(Duration::from_secs(30)).expect(code::HOST);
    assert!(outcome.stderr.contains("ssh:lab") && outcome.stderr.contains("--resume"), "{}", outcome.stderr);
    scene.stop();
    scene.start();
    let resumed = scene.run(&["run", "--resume", "--out", "x.stacklab"]).expect(code::DONE);
    assert!(resumed.stdout.contains("throughput"), "{}", resumed.stdout);
    assert_eq!(runs(&record).len(), 2 * 2 * 2 * 30);
}
