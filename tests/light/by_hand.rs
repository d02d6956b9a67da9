//! Routed testbeds that `stacklab lab` keeps up for work by hand. The tests need root, tayga and Debian's build of
//! user-mode Linux.

use crate::support;

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::process::Command;
use support::program::{Program, require_root};
use support::studies::TestStudy;

fn study(mechanisms: &[&str]) -> String {
    TestStudy::new("A testbed for work by hand")
        .topology("routed")
        .rate("5 Mbit/s")
        .mechanisms(mechanisms)
        .families()
        .transports(&["udp"])
        .sizes(&[128])
        .stream(&["throughput"])
        .time("1s")
        .text()
}

/// A folder of its own for `stacklab lab`. The testbed is removed with the folder, however its test ends.
struct ByHand<'a>(&'a Program);

impl ByHand<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.0.path());
        command.current_dir(self.0.work()).env("XDG_RUNTIME_DIR", self.0.work()).arg("lab").args(args);
        command
    }

    /// The exit code, the output and the errors.
    fn lab(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let done = self.command(args).output().unwrap();
        let [output, errors] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (done.status.code(), output, errors)
    }

    /// The process that keeps the testbed alive.
    fn holder(&self) -> u64 {
        let up = std::fs::read(self.0.work().join("stacklab-lab/testbed.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&up).unwrap()["holder"]["pid"].as_u64().unwrap()
    }
}

impl Drop for ByHand<'_> {
    fn drop(&mut self) {
        self.lab(&["down"]);
    }
}

/// The number of folders with guests' files that a process has.
fn folders_of(process: u64) -> usize {
    let own = format!("stacklab-guests-{process}-");
    let all = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count()
}

#[test]
fn testbed_by_hand_in_a_guest_leaves_nothing() {
    require_root();
    let program = Program::new();
    program.write("m.toml", study(&["6in4", "native"]));
    program.write("word", "of this machine\n");
    let hand = ByHand(&program);
    let (up, said, why) = hand.lab(&["up", "m.toml", "--mechanism", "6in4", "--in-vm"]);
    assert_eq!(up, Some(0), "{why}");
    assert!(said.contains("inside user-mode Linux") && said.contains("2001:2:0:2::1"), "{said}");
    let holder = hand.holder();
    assert_eq!(folders_of(holder), 1, "what the guest was started from");

    let enter = |words: &[&str]| hand.lab(&[&["enter"], words].concat());
    let (_, tunnel, why) = enter(&["router1", "ip", "-details", "link", "show", "dev", "tunnel"]);
    assert!(tunnel.contains("sit"), "{tunnel}{why}");
    let (_, own, _) =
        enter(&["sender", "sh", "-c", "ls -d /sys/class/net/st*; cat word; echo $STACKLAB_HOST"]);
    assert_eq!(own, "/sys/class/net/st0\nof this machine\nsender\n");
    let send = "exec 3<>/dev/udp/2001:2:0:2::1/7; echo over >&3";
    let heard = std::thread::scope(|scope| {
        let capture = ["receiver", "timeout", "20", "tcpdump", "-nc", "1", "-i", "st0", "udp"];
        let heard = scope.spawn(move || enter(&capture));
        // Until it listens, and a little longer.
        while !heard.is_finished() {
            enter(&["sender", "bash", "-c", send]);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        heard.join().unwrap()
    });
    assert!(heard.0 == Some(0) && heard.1.contains("2001:2:0:2::1.7: UDP, length 5"), "{heard:?}");

    let (code, out, errors) = enter(&["router2", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((code, out.as_str(), errors.as_str()), (Some(7), "out\n", "err\n"));
    let mut cat = hand.command(&["enter", "sender", "sha256sum"]);
    let mut cat =
        cat.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut cat.stdin.take().unwrap(), &vec![7; 300_000]).unwrap();
    let sum = String::from_utf8(cat.wait_with_output().unwrap().stdout).unwrap();
    assert!(sum.starts_with("08f16647"), "{sum}");
    let typed = "lab enter sender sh -c 'tty; stty size'";
    let mut script = Command::new("script");
    let line = format!("stty rows 9 cols 44; {} {typed}", program.path().display());
    script.current_dir(program.work()).env("XDG_RUNTIME_DIR", program.work()).args([
        "-qec",
        &line,
        "/dev/null",
    ]);
    let shown =
        String::from_utf8(script.stdin(std::process::Stdio::null()).output().unwrap().stdout).unwrap();
    assert!(shown.contains("/dev/pts/") && shown.contains("9 44"), "{shown:?}");
    let (lost, _, why) = enter(&["sender", "no-such-program"]);
    assert!(lost != Some(0) && why.contains("no-such-program"), "{why}");

    assert_eq!(hand.lab(&["down"]).0, Some(0));
    assert_eq!(folders_of(holder), 0);
    let left: Vec<String> =
        program.files().into_iter().filter(|name| name.contains("stacklab-lab")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_testbed_by_hand_is_entered_and_leaves_nothing() {
    require_root();
    let program = Program::new();
    program.write("m.toml", study(&["native", "nat64"]));
    let hand = ByHand(&program);
    let (up, said, why) = hand.lab(&["up", "m.toml", "--mechanism", "nat64"]);
    assert_eq!(up, Some(0), "{why}");
    let holder = hand.holder();
    assert_eq!(folders_of(holder), 1, "its translator's settings");
    assert!(
        said.contains("nat64 (tayga, stateless) between the routers")
            && said.contains("lab enter sender ping -c 3 2001:2:0:64::c612:201"),
        "{said}"
    );
    let router = said.lines().find(|line| line.starts_with("router2")).unwrap();
    assert!(router.contains("st1 2001:2:0:ffff::2") && router.ends_with("  tunnel"), "{router}");
    let (again, _, why) = hand.lab(&["up", "m.toml"]);
    assert!(again != Some(0) && why.contains("is up already"), "{why}");
    let (entered, addresses, _) = hand.lab(&["enter", "router1", "ip", "-br", "addr", "show", "dev", "st1"]);
    assert!(entered == Some(0) && addresses.contains("2001:2:0:ffff::1/64"), "{addresses}");
    // Processes left in the background there, whether they react to a termination request or not.
    let leave =
        "sleep 600 >/dev/null 2>&1 & echo $!; sh -c 'trap \"\" TERM; sleep 601' >/dev/null 2>&1 & echo $!";
    let (left, pids, _) = hand.lab(&["enter", "receiver", "sh", "-c", leave]);
    assert!(left == Some(0) && pids.lines().count() == 2 && pids.lines().all(is_running), "{pids}");
    let (unknown, _, why) = hand.lab(&["enter", "router3"]);
    assert!(unknown != Some(0) && why.contains("sender, router1, router2, receiver"), "{why}");
    assert_eq!(hand.lab(&["down"]).0, Some(0));
    assert!(!pids.lines().any(is_running), "{pids}");
    assert!(!program.work().join("stacklab-lab/testbed.json").exists());
    assert_eq!(folders_of(holder), 0);
    assert!(hand.lab(&["enter", "sender", "true"]).2.contains("no testbed is up"));
}

/// Whether a process is there, and has not only left its number.
fn is_running(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).join("ns/net").exists()
}

/// Start time and network namespace of a process, as the state has them.
fn identity(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let started = fields.split(' ').nth(19).unwrap().parse().unwrap();
    (started, std::fs::metadata(format!("/proc/{pid}/ns/net")).unwrap().ino())
}

#[test]
fn a_state_that_names_another_process_leads_nowhere() {
    require_root();
    let program = Program::new();
    program.write("m.toml", study(&["native"]));
    let hand = ByHand(&program);
    // It ends with this test.
    let words = ["--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"];
    let mut other = Command::new("setpriv").args(words).spawn().unwrap();
    let pid = other.id();
    let own_network = std::fs::metadata("/proc/self/ns/net").unwrap().ino();
    while identity(pid).1 == own_network {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let (started, network) = identity(pid);
    let folder = program.work().join("stacklab-lab");
    let state = folder.join("testbed.json");

    // A process that holds no testbed is not ended.
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let holder = serde_json::json!({"pid": pid, "started": started, "network": network});
    let forged = serde_json::json!({"holder": holder, "testbed": "x", "hosts": [], "files": true});
    std::fs::write(&state, forged.to_string()).unwrap();
    assert!(hand.lab(&["down"]).2.contains("no testbed is up"));
    assert!(other.try_wait().unwrap().is_none() && !state.exists());

    assert_eq!(hand.lab(&["up", "m.toml"]).0, Some(0));
    let kept = std::fs::read_to_string(&state).unwrap();
    let real: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let sender = &real["hosts"][0]["place"]["process"];
    let (real_started, real_network) = identity(u32::try_from(sender["pid"].as_u64().unwrap()).unwrap());
    assert_eq!((&sender["started"], &sender["network"]), (&real_started.into(), &real_network.into()));
    // The sender's process has ended, and its number is another one's, which was begun then or is there.
    for (started, network) in [(real_started, network), (started, real_network)] {
        let mut changed = real.clone();
        changed["hosts"][0]["place"]["process"] =
            serde_json::json!({"pid": pid, "started": started, "network": network});
        std::fs::write(&state, changed.to_string()).unwrap();
        let (entered, said, why) = hand.lab(&["enter", "sender", "echo", "inside"]);
        assert!(entered != Some(0) && said.is_empty() && why.contains("its process has ended"), "{why}");
    }
    std::fs::write(&state, &kept).unwrap();
    // Under sudo -E the folder may be another user's.
    std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
    for args in [&["enter", "sender", "true"][..], &["down"], &["up", "m.toml"]] {
        let (done, _, why) = hand.lab(args);
        assert!(done != Some(0) && !why.contains("is up already"), "{args:?}: {why}");
    }
    assert!(hand.lab(&["up", "m.toml"]).2.contains("this user alone"));
    std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
    assert_eq!(hand.lab(&["enter", "sender", "true"]).0, Some(0));
    assert_eq!(hand.lab(&["down"]).0, Some(0));
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}
