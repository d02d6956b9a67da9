//! Transition mechanisms between two routers: what this kernel can do with namespaces alone, and the tunnels inside a real
//! guest. They need root, tayga and the images of user-mode Linux and Linux 6.1; where one is missing they fail.

mod support;

use stacklab_model::{Factor, Family, Mechanism, Metric, Role, RunRecord};
use stacklab_store::Record;
use std::process::Command;
use support::program::{Program, code, require_root, require_tool};
use support::records::{figure, runs, side};
use support::routed::model;

/// How close to the header model a link of known rate must come.
const TOLERANCE: f64 = 0.01;
/// What the guests can fill with the smallest messages, emulated and with one processor, Mbit/s.
const RATE: f64 = 5.0;

fn study(mechanisms: &[&str], sizes: &[u32]) -> String {
    format!(
        r#"
title = "Mechanisms over a middle link of known rate"
[testbed]
topology = "routed"
rate = "{RATE} Mbit/s"
[factors]
mechanism = {mechanisms:?}
family = ["ipv4", "ipv6"]
transport = ["udp"]
framing = ["message"]
size = {sizes:?}
[probe.stream]
metrics = ["throughput", "loss", "path_mtu", "fragments", "reassembled", "link_bytes", "link_bytes_beyond", "cpu_router1"]
length = {{ time = "400ms" }}
warmup = "200ms"
interval = "100ms"
[runs]
min = 2
max = 2
"#
    )
}

/// What a record says that was seen on the middle link.
fn seen(path: &std::path::Path) -> String {
    Record::read(path).unwrap().campaign().unwrap().bed
}

/// Runs a study. Gives its runs, how many hosts its record has, and what the program said beside its report.
fn measured(study: &str, more: &[&str]) -> (Vec<RunRecord>, usize, String) {
    let (runs, hosts, said, _) = measured_and_seen(study, more);
    (runs, hosts, said)
}

/// The same, and what the record says that was seen on the middle links.
fn measured_and_seen(study: &str, more: &[&str]) -> (Vec<RunRecord>, usize, String, String) {
    require_root();
    require_tool("tayga", "tayga");
    let program = Program::new();
    program.write("mechanisms.toml", study);
    let done = program.run(&[&["run", "mechanisms.toml", "--out", "m.stacklab"], more].concat());
    let done = done.expect(code::DONE);
    let path = program.work().join("m.stacklab");
    (runs(&path), Record::read(&path).unwrap().hosts().unwrap().len(), done.stderr, seen(&path))
}

/// What every run must show.
fn check(run: &RunRecord) {
    let cell = &run.trial.cell;
    let mechanism = Mechanism::of(cell);
    let (limit, bytes) = model(run, RATE);
    let left = mechanism.leaves(cell.family, 1500).unwrap();
    assert_eq!(figure(run, Metric::PathMtu), f64::from(left), "{cell}");
    let link_bytes = figure(run, Metric::LinkBytes);
    assert!((link_bytes / bytes - 1.0).abs() < TOLERANCE, "{cell}: {link_bytes} B on the link, not {bytes}");
    let throughput = figure(run, Metric::Throughput);
    assert!((throughput / limit - 1.0).abs() < TOLERANCE, "{cell}: {throughput} Mbit/s, not {limit}");
}

#[test]
fn tunnels_inside_user_mode_linux_carry_what_the_header_model_says() {
    let (runs, hosts, said, seen) = measured_and_seen(
        &study(&["native", "6in4", "6to4", "gre4", "gre6", "4in6"], &[128, 1024, 1408, 1536]),
        &["--in-vm"],
    );
    assert!(said.contains("inside a guest (uml)"), "{said}");
    for headers in [
        // Protocol 41, by its two kinds of addresses; protocol 47 over either family; protocol 4 in IPv6.
        "ipv4 198.18.0.1 > 198.18.0.2 / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / ipv6 2002:c612:1:1::1 > 2002:c612:2:2::1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / gre / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / gre / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / gre / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / ipv4 198.18.1.1 > 198.18.2.1 / udp",
    ] {
        assert!(seen.contains(headers), "{headers}: {seen}");
    }
    // Each of the four hosts has its facts in the record.
    assert_eq!(hosts, 6 * 4);
    let cells = 4 * (2 + 1 + 1 + 2 + 2 + 1);
    assert_eq!(runs.len(), 2 * cells);
    runs.iter().filter(|run| run.trial.cell.size < 1536).for_each(check);
    for run in runs.iter().filter(|run| run.trial.cell.size == 1536) {
        let sent = &side(run, Role::Sender).sent;
        let messages = (sent.warmup + sent.measured + sent.markers) as f64;
        let fragments = figure(run, Metric::Fragments);
        assert!((fragments / messages - 2.0).abs() < 0.01, "{}: {fragments} of {messages}", run.trial.cell);
        let (limit, _) = model(run, RATE);
        // Where the tunnel carries less than its entrance takes in, a lost fragment loses its datagram.
        let throughput = figure(run, Metric::Throughput);
        assert!((0.97..1.01).contains(&(throughput / limit)), "{}: {throughput} of {limit}", run.trial.cell);
    }
}

#[test]
fn translators_on_this_kernel_carry_what_the_header_model_says() {
    let (runs, ..) = measured(&study(&["nat64", "siit", "464xlat"], &[128, 1024, 1408]), &[]);
    assert_eq!(runs.len(), 2 * 9);
    runs.iter().for_each(check);
}

#[test]
fn what_user_mode_linux_lacks_is_had_in_a_virtual_machine() {
    let (runs, _, said) = measured(&study(&["6rd", "wireguard4", "wireguard6"], &[1024]), &["--in-vm"]);
    assert!(said.contains("inside a guest (linux-6.1)"), "{said}");
    assert_eq!(runs.len(), 2 * 5);
    for run in &runs {
        let (_, bytes) = model(run, RATE);
        let link_bytes = figure(run, Metric::LinkBytes);
        assert!(
            (link_bytes / bytes - 1.0).abs() < TOLERANCE,
            "{}: {link_bytes}, not {bytes}",
            run.trial.cell
        );
    }
}

#[test]
fn each_link_has_its_own_rate_mtu_delay_and_loss_both_ways() {
    let study = r#"
title = "A long middle link, and ends of their own"
[testbed]
topology = "routed"
rate = "50 Mbit/s"
delay = "10ms"
loss = "10 %"
near = { rate = "100 Mbit/s", delay = "5ms" }
far = { mtu = 9000 }
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
framing = ["message"]
size = [512]
[probe.stream]
metrics = ["loss", "one_way_delay"]
packet_rate = 1000
length = { time = "2s" }
warmup = "100ms"
interval = "100ms"
[runs]
min = 2
max = 2
"#;
    let (runs, _, _, seen) = measured_and_seen(study, &[]);
    for link in
        ["near link: 100 Mbit/s, delay 5 ms", "middle link: delay 10 ms, loss 10 %", "far link: MTU 9000"]
    {
        assert!(seen.contains(link), "{link}: {seen}");
    }
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let (loss, delay) = (figure(run, Metric::Loss), figure(run, Metric::OneWayDelay));
        // Of 2000 packets; four standard deviations are 2.7 %.
        assert!((0.073..0.127).contains(&loss), "{}: {loss}", run.trial);
        assert!((15.0..20.0).contains(&delay), "{}: {delay} ms", run.trial);
        let mtus = run.sides.iter().map(|side| (side.endpoint.interface_mtu, side.endpoint.path_mtu));
        assert_eq!(mtus.collect::<Vec<_>>(), [(1500, Some(1500)), (9000, Some(1500))], "{}", run.trial);
    }
}

#[test]
fn what_cannot_be_had_is_named_before_anything_starts() {
    let program = Program::new();
    program.write("m.toml", study(&["native", "6rd"], &[128]));
    let mut command = Command::new(program.path());
    command.current_dir(program.work()).env("STACKLAB_CACHE", program.work().join("nothing"));
    let done = command.args(["run", "m.toml", "--in-vm", "--out", "m.stacklab"]).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("6rd") || said.contains("--in-vm"), "{said}");
    assert!(said.contains("stacklab image get linux-6.1"), "{said}");
    assert!(!program.work().join("m.stacklab").exists());
}

#[test]
fn a_testbed_by_hand_is_entered_and_leaves_nothing() {
    require_root();
    let program = Program::new();
    program.write("m.toml", study(&["native", "nat64"], &[128]));
    let cache = program.work();
    let lab = |args: &[&str]| {
        let mut command = Command::new(program.path());
        command.current_dir(program.work()).env("STACKLAB_CACHE", &cache).env_remove("XDG_RUNTIME_DIR");
        let done = command.arg("lab").args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    /// The testbed goes with the test, however that ends.
    struct Down<F: Fn(&[&str]) -> (Option<i32>, String, String)>(F);
    impl<F: Fn(&[&str]) -> (Option<i32>, String, String)> Drop for Down<F> {
        fn drop(&mut self) {
            (self.0)(&["down"]);
        }
    }
    let _down = Down(lab);
    let (up, said, _) = lab(&["up", "m.toml", "--mechanism", "nat64"]);
    assert_eq!(up, Some(0), "{said}");
    let holder = std::fs::read_to_string(cache.join("stacklab-lab.json")).unwrap();
    let holder: serde_json::Value = serde_json::from_str(&holder).unwrap();
    let folders = || {
        let own = format!("stacklab-guests-{}-", holder["holder"]);
        let all = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count()
    };
    assert_eq!(folders(), 1, "its translator's settings");
    assert!(said.contains("nat64 between the routers") && said.contains("2001:2:0:64::c612:201"), "{said}");
    let (again, _, why) = lab(&["up", "m.toml"]);
    assert!(again != Some(0) && why.contains("is up already"), "{why}");
    let (entered, addresses, _) = lab(&["enter", "router1", "ip", "-br", "addr", "show", "dev", "st1"]);
    assert!(entered == Some(0) && addresses.contains("2001:2:0:ffff::1/64"), "{addresses}");
    let (unknown, _, why) = lab(&["enter", "router3"]);
    assert!(unknown != Some(0) && why.contains("sender, router1, router2, receiver"), "{why}");
    assert_eq!(lab(&["down"]).0, Some(0));
    assert!(!cache.join("stacklab-lab.json").exists());
    assert_eq!(folders(), 0);
    assert!(lab(&["enter", "sender", "true"]).2.contains("no testbed is up"));
}

#[test]
fn cells_hold_what_each_mechanism_carries() {
    let program = Program::new();
    program.write("m.toml", study(&["native", "6in4", "4in6"], &[128]));
    let plan = program.run(&["plan", "m.toml"]).expect(code::DONE).stdout;
    assert!(plan.contains("Cells       4"), "{plan}");
    for (family, mechanism) in [(Family::Ipv6, "6in4"), (Family::Ipv4, "4in6")] {
        assert!(
            plan.contains(&format!("{family} udp message 128 B {}={mechanism}", Factor::Mechanism)),
            "{plan}"
        );
    }
}
