//! Real testbeds in real namespaces, verified with `ip` and `tc`.
//!
//! The tests need root. Without it they fail; nothing is skipped.

mod floods;

use serde_json::Value;
use stacklab_model::{Family, LinkConfig, Mechanism, Rate, Role};
use stacklab_testbed::{INTERFACE, NAT, Testbed, abilities, in_namespace};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PLAIN: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };

/// A testbed. Its processes only wait for the end of their input.
fn build(link_config: &LinkConfig) -> Testbed {
    Testbed::build(link_config, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"))
}

/// The output of a command in the network namespace of a process.
fn witness(pid: u32, command: &[&str]) -> String {
    let mut nsenter = Command::new("nsenter");
    nsenter.args(["-t", &pid.to_string(), "-n"]).args(command);
    output(&mut nsenter)
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(pid: u32, command: &[&str]) -> Vec<Value> {
    serde_json::from_str(&witness(pid, command)).unwrap()
}

/// The identity of a process's network namespace, `net:[...]`.
fn namespace_of(pid: u32) -> String {
    fs::read_link(format!("/proc/{pid}/ns/net")).unwrap().to_string_lossy().into_owned()
}

/// Everything that still holds one of the namespaces: a process in it, a thread in it, an open file or a mount.
fn holders(namespaces: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for process in list_entries("/proc".into()).filter(|path| path.join("task").exists()) {
        let threads = list_entries(process.join("task")).map(|thread| thread.join("ns/net"));
        for path in threads.chain(list_entries(process.join("fd"))) {
            if fs::read_link(&path).is_ok_and(|target| namespaces.iter().any(|n| Path::new(n) == target)) {
                found.push(path.display().to_string());
            }
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounted = mounts.lines().filter(|line| namespaces.iter().any(|n| line.contains(n.as_str())));
    found.extend(mounted.map(str::to_owned));
    found
}

fn list_entries(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process is running, not a zombie.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The machine's own interfaces, and the settings that a testbed changes in its namespaces.
fn own_settings() -> String {
    let mut paths = Vec::new();
    for scope in ["all", "default"] {
        for entry in fs::read_dir(format!("/proc/sys/net/ipv6/conf/{scope}")).unwrap() {
            paths.push(entry.unwrap().path());
        }
    }
    paths.push("/proc/sys/net/ipv4/tcp_no_metrics_save".into());
    let mut text = String::new();
    for path in paths {
        text += &format!("{} {}", path.display(), fs::read_to_string(&path).unwrap_or_default());
    }
    text + &output(Command::new("ip").args(["-br", "link"]))
}

/// The line of `tc` about an interface's root queue, without its handle.
fn queue(pid: u32, interface: &str) -> String {
    let all = witness(pid, &["tc", "-d", "qdisc", "show", "dev", interface]);
    let line = all.lines().next().unwrap();
    line.split_whitespace().skip(3).collect::<Vec<_>>().join(" ")
}

/// Timeout for anything that takes no time on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Waits for a condition.
fn soon(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hosts_have_families_mtu_and_permanent_neighbours() {
    for mtu in [1280, 1500, 9000] {
        let testbed = build(&LinkConfig { mtu, ..PLAIN });
        let [sender, receiver] = testbed.hosts();
        for (host, other) in [(sender, receiver), (receiver, sender)] {
            let links = json(host.pid(), &["ip", "-j", "addr", "show", "dev", INTERFACE]);
            let link = links.iter().find(|link| link["ifname"] == INTERFACE).unwrap();
            assert_eq!(link["mtu"], mtu);
            assert_eq!(link["operstate"], "UP");
            for family in Family::ALL {
                let address = host.address(*family).to_string();
                let found =
                    link["addr_info"].as_array().unwrap().iter().find(|info| info["local"] == *address);
                let found = found.unwrap_or_else(|| panic!("{address} is missing in {link}"));
                assert_eq!(found["tentative"], Value::Null);
                let neighbours =
                    json(host.pid(), &["ip", "-j", "neigh", "show", &other.address(*family).to_string()]);
                assert_eq!(neighbours[0]["state"], serde_json::json!(["PERMANENT"]));
            }
            let names = json(host.pid(), &["ip", "-j", "link"])
                .iter()
                .map(|l| l["ifname"].clone())
                .collect::<Vec<_>>();
            assert_eq!(names.iter().filter(|name| **name == *INTERFACE).count(), 1, "{names:?}");
        }
    }
}

#[test]
fn machine_interfaces_and_settings_stay_unchanged() {
    let before = own_settings();
    let testbed = build(&PLAIN);
    assert_eq!(own_settings(), before);
    drop(testbed);
    assert_eq!(own_settings(), before);
}

#[test]
fn the_pipes_of_a_host_are_its_own() {
    let mut testbed = build(&PLAIN);
    for host in testbed.hosts_mut() {
        let (from, mut to) = host.take_streams().unwrap();
        assert!(host.take_streams().is_none());
        writeln!(to, "{}", host.node()).unwrap();
        let mut line = String::new();
        BufReader::new(from).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), host.node().name());
    }
}

#[test]
fn datagrams_cross_both_ways_in_both_families() {
    let testbed = build(&PLAIN);
    let [sender, receiver] = testbed.hosts();
    for family in Family::ALL {
        for (from, to) in [(sender, receiver), (receiver, sender)] {
            let here = bind(from.pid(), from.address(*family));
            let there = bind(to.pid(), to.address(*family));
            there.set_read_timeout(Some(TIMEOUT)).unwrap();
            here.send_to(b"datagram", there.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 16];
            let (bytes, source) = there.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..bytes], source), (&b"datagram"[..], here.local_addr().unwrap()));
        }
    }
}

/// A socket in the network namespace of a process.
fn bind(pid: u32, address: IpAddr) -> UdpSocket {
    in_namespace(pid, move || UdpSocket::bind(SocketAddr::new(address, 0)).unwrap()).unwrap()
}

/// Packets and bytes an interface has sent.
fn read_sent_counts(pid: u32) -> (u64, u64) {
    let links = json(pid, &["ip", "-j", "-s", "link", "show", "dev", "st0"]);
    let counter = |name: &str| links[0]["stats64"]["tx"][name].as_u64().unwrap();
    (counter("packets"), counter("bytes"))
}

#[test]
fn a_new_link_is_silent() {
    let testbed = build(&PLAIN);
    let before = testbed.hosts().each_ref().map(|host| read_sent_counts(host.pid()));
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(testbed.hosts().each_ref().map(|host| read_sent_counts(host.pid())), before);
}

#[test]
fn mtu_and_queue_change_at_both_ends_and_go_back() {
    for rate in [None, Some(Rate(100_000_000))] {
        let mut testbed = build(&LinkConfig { rate, ..PLAIN });
        let first = list_link_ends(&testbed);
        testbed.set_link(Some(9000), Some(7)).unwrap();
        for (mtu, queues) in list_link_ends(&testbed) {
            assert_eq!(mtu, 9000);
            assert!(queues.contains("pfifo") && queues.contains("limit 7p"), "{queues}");
            assert_eq!(queues.contains("tbf"), rate.is_some(), "{queues}");
        }
        // Impossible link settings are refused. `None` restores the original settings.
        assert!(testbed.set_link(Some(1279), None).is_err());
        testbed.set_link(None, None).unwrap();
        assert_eq!(list_link_ends(&testbed), first);
    }
}

/// The MTU and the queues of each end of the link.
fn list_link_ends(testbed: &Testbed) -> [(u64, String); 2] {
    testbed.hosts().each_ref().map(|host| {
        let mtu = json(host.pid(), &["ip", "-j", "link", "show", "st0"])[0]["mtu"].as_u64().unwrap();
        (mtu, witness(host.pid(), &["tc", "-d", "qdisc", "show", "dev", "st0"]))
    })
}

#[test]
fn threads_move_between_half_and_all_processors() {
    let mut testbed = Testbed::build(&PLAIN, Path::new("sh"), &["-c", "cat"]).unwrap();
    assert!(testbed.has_own_processors(), "this test needs two processors");
    let [sender, receiver] = list_processors(&testbed);
    assert_ne!(sender, receiver);
    testbed.divide(false).unwrap();
    let all = read_processors("self");
    assert_eq!(list_processors(&testbed), [all.clone(), all]);
    testbed.divide(true).unwrap();
    assert_eq!(list_processors(&testbed), [sender, receiver]);
}

/// The processors that each host may use.
fn list_processors(testbed: &Testbed) -> [String; 2] {
    testbed.hosts().each_ref().map(|host| read_processors(&host.pid().to_string()))
}

fn read_processors(process: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).unwrap().to_owned()
}

#[test]
fn dropping_leaves_no_process_and_no_namespace() {
    let testbed = build(&PLAIN);
    let pids = testbed.hosts().each_ref().map(|host| host.pid());
    let namespaces = pids.map(namespace_of);
    assert_ne!(namespaces[0], namespaces[1]);
    assert!(!namespaces.contains(&namespace_of(std::process::id())));
    assert_eq!(holders(&namespaces).len(), 2);
    drop(testbed);
    assert!(!pids.into_iter().any(exists));
    assert_eq!(holders(&namespaces), Vec::<String>::new());
}

#[test]
fn missing_program_is_an_error_that_names_it() {
    let error = Testbed::build(&PLAIN, Path::new("/nonexistent/agent"), &[""; 0]).unwrap_err().to_string();
    for part in ["/nonexistent/agent", Role::Sender.name(), "No such file"] {
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
}

#[test]
fn program_that_ends_at_once_is_an_error() {
    // The link cannot be built or used, whether its namespace is entered before or after the process ended.
    let mut failures = 0;
    for _ in 0..20 {
        if let Err(error) = Testbed::build(&PLAIN, Path::new("true"), &[""; 0]) {
            failures += 1;
            assert!(error.to_string().starts_with("cannot "), "{error}");
        }
    }
    assert!(failures > 0);
}

#[test]
fn abilities_are_found_by_doing_and_leave_nothing() {
    let before = own_settings();
    let all = abilities();
    let number = all.len();
    let found: BTreeMap<_, _> = all.into_iter().map(|ability| (ability.name, ability)).collect();
    assert_eq!(own_settings(), before);
    assert_eq!(found.len(), number, "two have one name: {:?}", found.keys());
    for name in ["network namespace", "ipv6", "veth", "offload control", "tbf", NAT] {
        assert_eq!(found[name].result, Ok(()), "{name}");
    }
    for (mechanism, device) in Mechanism::devices() {
        assert!(found.contains_key(device.ability), "{mechanism} needs {}", device.ability);
    }
    for ability in found.values() {
        assert!(!ability.what_for.is_empty() && !ability.remedy.is_empty(), "{}", ability.name);
    }
    // `ip` and `tc` must report the same abilities.
    for (name, command) in [
        ("veth", "ip link add x type veth"),
        ("bridge", "ip link add x type bridge"),
        ("wireguard", "ip link add x type wireguard"),
        ("tun", "ip tuntap add mode tun"),
        ("sit", "ip link add x type sit local 192.0.2.1 remote 192.0.2.2"),
        ("ipip", "ip link add x type ipip local 192.0.2.1 remote 192.0.2.2"),
        ("gre", "ip link add x type gre local 192.0.2.1 remote 192.0.2.2"),
        ("ip6tnl", "ip link add x type ip6tnl local 2001:db8::1 remote 2001:db8::2"),
        ("vxlan", "ip link add x type vxlan id 1 remote 192.0.2.1 dstport 4789"),
        ("geneve", "ip link add x type geneve id 1 remote 192.0.2.1"),
        ("tbf", "tc qdisc add dev lo root tbf rate 1gbit burst 16k limit 200k"),
        ("htb", "tc qdisc add dev lo root htb"),
        ("netem", "tc qdisc add dev lo root netem"),
    ] {
        let result = &found[name].result;
        if result.as_ref().is_err_and(|reason| reason.contains("is not loaded")) {
            continue; // asking `ip` would load the module
        }
        let said = Command::new("unshare").arg("-n").args(command.split(' ')).output().unwrap();
        let said_so = String::from_utf8_lossy(&said.stderr);
        assert_eq!(result.is_ok(), said.status.success(), "{name}: {result:?}, but {command}: {said_so}");
    }
}

/// The path of the `hold` example, which `cargo test` builds together with this test.
fn hold() -> PathBuf {
    let target = std::env::current_exe().unwrap();
    let path = target.parent().unwrap().parent().unwrap().join("examples/hold");
    assert!(path.exists(), "{} is missing: cargo build -p stacklab-testbed --examples", path.display());
    path
}

/// Starts a command that runs `hold`. Returns its privilege and the process IDs of its hosts.
fn spawn_hold(command: &mut Command) -> (Child, String, Vec<u32>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    let privilege = words.next().expect("hold failed; see its standard error");
    (child, privilege, words.map(|pid| pid.parse().unwrap()).collect())
}

/// Kills the process that holds a testbed with SIGKILL, and checks that everything is gone.
fn killed_leaves_nothing(mut child: Child, hosts: &[u32]) {
    assert_eq!(hosts.len(), 2);
    let namespaces: Vec<String> = hosts.iter().map(|pid| namespace_of(*pid)).collect();
    assert_eq!(holders(&namespaces).len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    soon("the hosts die with their parent", || !hosts.iter().any(|pid| runs(*pid)));
    assert_eq!(holders(&namespaces), Vec::<String>::new());
}

#[test]
fn a_parent_killed_hard_leaves_nothing() {
    let (child, privilege, hosts) = spawn_hold(&mut Command::new(hold()));
    assert_eq!(privilege, "Root");
    killed_leaves_nothing(child, &hosts);
}

#[test]
fn an_ordinary_user_has_a_testbed_in_a_user_namespace() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.path().join("hold");
    fs::copy(hold(), &copy).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let (child, privilege, hosts) = spawn_hold(Command::new("setpriv").args(nobody).arg(&copy));
    assert_eq!(privilege, "UserNamespace");
    for pid in &hosts {
        assert!(queue(*pid, "st0").contains("rate 100Mbit"), "{}", queue(*pid, "st0"));
    }
    killed_leaves_nothing(child, &hosts);
}
