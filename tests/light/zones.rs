//! Link-local addresses of IPv6 (RFC 4007): between two namespaces whose ends of one link have other names and indices,
//! and where a second link has the same addresses. The tests need root.

use crate::support;

use serde_json::Value;
use stacklab_model::LinkConfig;
use stacklab_testbed::{Testbed, enter};
use std::path::Path;
use std::process::Command;
use support::listening::Listening;
use support::program::{Outcome, Program, code, require_root, require_tool};

/// The ends of the link: name, index and address, on this host and on the other one.
const HERE: (&str, u32, &str) = ("near", 70, "fe80::1");
const THERE: (&str, u32, &str) = ("far", 90, "fe80::2");

/// Two hosts. Their addresses on the link are those on the testbed's own link, too.
struct Scene {
    testbed: Testbed,
    program: Program,
}

impl Scene {
    fn set() -> Self {
        require_root();
        require_tool("nsenter", "util-linux");
        enter().unwrap_or_else(|error| panic!("{error}"));
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: true };
        let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"]).unwrap();
        let scene = Scene { testbed, program: Program::new() };
        let [here, there] = scene.pids();
        ip(
            &here,
            &format!(
                "link add {} index {} type veth peer name {} index {} netns {there}",
                HERE.0, HERE.1, THERE.0, THERE.1
            ),
        );
        for (pid, (name, _, address)) in [(&here, HERE), (&there, THERE)] {
            // No address but the test's.
            ip(pid, &format!("link set {name} addrgenmode none up"));
            for name in [name, "st0"] {
                ip(pid, &format!("address add {address}/64 dev {name} nodad"));
            }
        }
        scene
    }

    fn pids(&self) -> [String; 2] {
        self.testbed.hosts().each_ref().map(|host| host.pid().to_string())
    }

    fn listen(&self, place: &str) -> Listening {
        let [_, there] = self.pids();
        Listening::in_namespace(&there, place)
    }

    /// The program on this host.
    fn run(&self, words: &str) -> Outcome {
        let [here, _] = self.pids();
        let shell = ["nsenter", "-t", &here, "-n", "sh", "-c"];
        Outcome::of(self.program.script(&shell, &format!("exec \"$STACKLAB\" {words}")))
    }
}

fn ip(pid: &str, words: &str) {
    let mut command = Command::new("nsenter");
    command.args(["-t", pid, "-n", "ip"]).args(words.split_whitespace());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// Interface, own and other address of each host's report, ports left out.
fn ends(run: &Value) -> Vec<[String; 3]> {
    let mut ends = Vec::new();
    for report in run["ends"].as_array().unwrap() {
        let endpoint = &report["endpoint"];
        let interface = endpoint["interface"].as_str().unwrap().to_owned();
        let [local, peer] = ["local", "peer"]
            .map(|end| endpoint[end].as_str().unwrap().rsplit_once(':').unwrap().0.to_owned());
        ends.push([interface, local, peer]);
    }
    ends
}

#[test]
fn every_probe_measures_over_a_link_local_address() {
    let scene = Scene::set();
    let there = scene.listen("[fe80::2%far]");
    assert!(there.agent.stderr().contains("listening on [fe80::2%far]:"), "{}", there.agent.stderr());
    assert!(there.agent.stderr().contains("measure tcp fe80::2%INTERFACE"), "{}", there.agent.stderr());
    // Each host says zones by its own indices.
    let own = ["near", "[fe80::1%70]", "[fe80::2%70]"].map(str::to_owned);
    let other = ["far", "[fe80::2%90]", "[fe80::1%90]"].map(str::to_owned);
    for (words, reverse) in [
        ("udp fe80::2%near -n 200", false),
        ("udp fe80::2%70 -n 200 -P 3 -R", true),
        ("udp [fe80::2%near] -t 0.1 --bidir", false),
        ("tcp fe80::2%near -n 50 --from fe80::1%near", false),
        ("tcp fe80::2%near -n 50 -P 2 -R", true),
        ("echo fe80::2%near -n 50", false),
        ("echo fe80::2%near -n 50 --tcp -R", true),
        ("connect fe80::2%near -n 20", false),
        ("connect fe80::2%near -n 20 -R", true),
    ] {
        let run = json(&scene.run(&format!("measure {words} --json -p {}", there.port)).expect(code::DONE));
        let found = ends(&run);
        let expected = if reverse { [&other, &own] } else { [&own, &other] };
        // A receiver of connections may not know the last one's peer any more.
        assert_eq!(found[..2].iter().collect::<Vec<_>>(), expected, "{words}");
    }
    // The other link has the same address, but nobody listens there.
    let unheard = scene.run(&format!("measure udp fe80::2%st0 -n 10 -p {}", there.port)).expect(code::HOST);
    let _ = unheard.says(&["[fe80::2%st0]:", "refused"]);
}

#[test]
fn agent_on_any_address_answers_in_the_zone_reached() {
    let scene = Scene::set();
    let there = scene.listen("");
    for (zone, interface) in [("near", "far"), ("st0", "st0")] {
        for words in ["udp", "tcp", "udp -R", "tcp -R"] {
            let (probe, options) = words.split_once(' ').unwrap_or((words, ""));
            let words = format!("measure {probe} fe80::2%{zone} -n 50 {options} --json -p {}", there.port);
            let found = ends(&json(&scene.run(&words).expect(code::DONE)));
            let [here, other] = if options.is_empty() { [0, 1] } else { [1, 0] };
            assert_eq!([&*found[here][0], &*found[other][0]], [zone, interface], "{words}");
        }
    }
    // Beside an IPv4 address, shown by a second connection.
    for (options, out) in [("", "there.stacklab"), ("-R", "back.stacklab")] {
        let both = format!("fe80::2%near,198.18.0.2 --against ipv4 -t 1.5 --out {out} {options}");
        let outcome = scene.run(&format!("measure udp {both} --json -p {}", there.port)).expect(code::DONE);
        let found = json(&outcome);
        assert!(found["comparisons"][0]["effect"]["pairs"].as_u64().unwrap() >= 2, "{outcome}");
        assert_eq!(found["invalid_runs"].as_array().map(Vec::len), Some(0), "{outcome}");
        // The record names the other host as it was given.
        let hosts = stacklab_store::Record::read(&scene.program.work().join(out)).unwrap().hosts().unwrap();
        assert!(hosts.iter().any(|host| host.kind == "fe80::2%near,198.18.0.2"), "{outcome}");
    }
}

#[test]
fn a_wrong_zone_is_said_with_what_would_be_right() {
    let scene = Scene::set();
    for (words, said) in [
        (
            "measure udp fe80::2%far",
            &["fe80::2%far: this host has no interface far; it has lo, ", "near"][..],
        ),
        ("measure udp fe80::2%90", &["fe80::2%90: this host has no interface 90"]),
        (
            "measure tcp fe80::2",
            &["fe80::2: a link-local address needs its zone", "fe80::2%INTERFACE", "near"],
        ),
        ("measure tcp 198.18.0.2,fe80::2", &["fe80::2: a link-local address needs its zone"]),
        ("measure echo 2001:2:0:1::2%st0", &["2001:2:0:1::2%st0: only link-local", "leave out `%st0`"]),
        ("measure echo 198.18.0.2%st0", &["198.18.0.2%st0: only link-local", "leave out `%st0`"]),
        ("measure udp fe80::2%near --from fe80::1%st0", &["fe80::1%st0", "one zone", "fe80::2"]),
        (
            "measure udp fe80::2%near --from fe80::1",
            &["--from", "fe80::1: a link-local address needs its zone"],
        ),
        ("agent --listen fe80::2", &["--listen", "needs its zone", "near"]),
        ("agent --listen [fe80::1%far]:7000", &["--listen", "no interface far; it has lo, "]),
        ("agent --listen [2001:2:0:1::1%st0]:7000", &["--listen", "leave out `%st0`"]),
    ] {
        let _ = scene.run(words).expect(code::REQUEST).says(said);
    }
    // A zone of this host that does not have the address.
    let _ = scene.run("agent --listen fe80::77%near").expect(code::ELSE).says(&["[fe80::77%near]:5202"]);
}
