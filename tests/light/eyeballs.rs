//! `stacklab eyeballs`: its page, and what an ordinary user needs.

use crate::support;

use serde_json::Value;
use support::program::{Outcome, Program, code, require_root, require_tool};

/// All networks: both families, eight faults of each family's path, three of each record's answer, one record alone, a
/// dead address of each family, and NAT64.
const NETWORKS: usize = 1 + 2 * 8 + 2 * 3 + 2 + 2 + 1;

#[test]
fn the_page_has_a_timeline_of_each_network() {
    require_root();
    require_tool("curl", "curl");
    let program = Program::new();
    let options =
        ["eyeballs", "--scenarios", "all", "--repeat", "1", "--limit", "2", "--format", "html", "--"];
    let curl = ["curl", "-sS", "-o", "/dev/null", "http://{host}/?<script>"];
    let page = program.run(&[&options[..], &curl].concat()).expect(code::DONE).stdout;
    let sections: Vec<&str> = page.split("<section id=").skip(1).collect();
    assert_eq!(sections.len(), NETWORKS, "{page}");
    for section in &sections {
        assert_eq!(section.matches("<svg xmlns=").count(), 1, "{section}");
        assert!(section.contains(">DNS query AAAA</text>"), "{section}");
        assert!(section.contains(">end of the program</text>"), "{section}");
    }
    let dropped = sections.iter().find(|section| section.starts_with("\"ipv6-drop\"")).unwrap();
    assert!(dropped.contains("<h3>IPv6 is dropped: IPv4 after "), "{dropped}");
    assert!(dropped.contains(">IPv6, 2001:db8:2::1</text>"), "{dropped}");
    assert!(dropped.contains("no answer</text>"), "{dropped}");
    assert!(!page.contains("<script"), "the command's words stay text");
}

/// Measures curl as the user "nobody" where /dev/net/tun has this mode.
fn measure_as_nobody(program: &Program, mode: &str) -> Outcome {
    require_root();
    require_tool("curl", "curl");
    require_tool("setpriv", "util-linux");
    // The device is one of the test, so that the machine's keeps its mode.
    let script = "set -e; mkdir devices; mount -t tmpfs -o mode=755 tmpfs devices
        mknod -m $0 devices/tun c 10 200; mount --bind devices/tun /dev/net/tun
        exec setpriv --reuid=65534 --regid=65534 --clear-groups $STACKLAB eyeballs --repeat 1 --limit 5 \
            --format json -- curl -sS -o /dev/null 'http://{host}/'";
    let mut command = program.script(&["unshare", "--mount", "sh", "-c"], script);
    command.arg(mode);
    Outcome::of(command)
}

#[test]
fn an_ordinary_user_measures_a_client() {
    let program = Program::new();
    let outcome = measure_as_nobody(&program, "666").expect(code::DONE).says(&["in a user namespace"]);
    let measured: Value = serde_json::from_str(&outcome.stdout).unwrap();
    for scenario in measured["scenarios"].as_array().unwrap() {
        let run = &scenario["runs"][0];
        assert_eq!(run["end"]["exit_code"], 0, "{scenario}");
        if scenario["name"] == "ipv6-drop" {
            assert!(run["attempts"][0]["established_ms"].is_null(), "{scenario}");
        }
    }
    let summary = &measured["summary"];
    assert_eq!(summary["first_family"], "ipv6");
    // curl's 200 ms. Without a priority of real time the wire may date one of both SYNs late.
    let delay = summary["attempt_delay"]["median_ms"].as_f64().unwrap();
    assert!((150.0..600.0).contains(&delay), "{delay}");
}

#[test]
fn says_how_a_user_gets_the_device() {
    let program = Program::new();
    let outcome = measure_as_nobody(&program, "600").expect(code::TESTBED);
    outcome.says(&["/dev/net/tun: Permission denied", "sudo chmod 666 /dev/net/tun", "run as root (sudo)"]);
}

/// Asks for the HTTPS record (type 65), and connects to its hint of IPv6 (key 6 of RFC 9460) without an AAAA query.
const HINTED: &str = "
import socket, struct, sys
name = b''.join(bytes([len(label)]) + label.encode() for label in sys.argv[1].split('.')) + b'\\0'
resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
resolver.settimeout(2)
resolver.sendto(struct.pack('!6H', 1, 0x100, 1, 0, 0, 0) + name + struct.pack('!2H', 65, 1), ('127.0.0.1', 53))
reply = resolver.recv(4096)
hint = reply.index(struct.pack('!2H', 6, 16)) + 4
address = socket.inet_ntop(socket.AF_INET6, reply[hint:hint + 16])
connection = socket.create_connection((address, 80), 2)
connection.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
while connection.recv(4096): pass
";

#[test]
fn a_client_connects_to_the_hint_of_https() {
    require_root();
    require_tool("python3", "python3");
    let program = Program::new();
    let options = ["eyeballs", "--repeat", "2", "--limit", "3", "--format", "json", "--"];
    let outcome = program.run(&[&options[..], &["python3", "-c", HINTED, "{host}"]].concat());
    let measured: Value = serde_json::from_str(&outcome.expect(code::DONE).stdout).unwrap();
    let clauses = measured["summary"]["clauses"].as_array().unwrap();
    let clause = clauses.iter().find(|clause| clause["asks"] == "query HTTPS records too").unwrap();
    assert_eq!(clause["verdict"], "yes");
    let found = clause["found"].as_str().unwrap();
    assert!(found.starts_with("queried in 2 of 2 runs, SYN to port 80 "), "{found}");
    let runs = measured["scenarios"][0]["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["first_byte"]["family"] == "ipv6"), "{runs:?}");
}
