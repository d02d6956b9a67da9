//! STAMP (RFC 8762, RFC 8972): with another implementation in both roles and modes, known delays and losses in the
//! right
//! direction, other clocks, and reflectors that lie.

use crate::support;

use serde_json::Value;
use stacklab_model::{Family, LinkConfig};
use stacklab_protocols::stamp::{Arrived, Codec, ErrorEstimate, Reflector, TimeFormat};
use stacklab_testbed::{Testbed, enter};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::program::{Outcome, Program, Running, code, require_root, require_tool};
use support::tun::{Faults, FaultyPath, address};

const SOON: Duration = Duration::from_secs(10);
const KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// Two hosts with a path between them that has faults.
struct Scene {
    _path: FaultyPath,
    testbed: Testbed,
    program: Program,
}

impl Scene {
    fn set(there: Faults, back: Faults) -> Self {
        require_root();
        require_tool("nsenter", "util-linux");
        enter().unwrap_or_else(|error| panic!("{error}"));
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: true };
        let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"]).unwrap();
        let pids = testbed.hosts().each_ref().map(|host| host.pid());
        let program = Program::new();
        Scene { _path: FaultyPath::new(pids, there, back), testbed, program }
    }

    /// A command on a host, sender (0) or receiver (1).
    fn command(&self, host: usize, words: &str) -> std::process::Command {
        let pid = self.testbed.hosts()[host].pid().to_string();
        self.program.script(&["nsenter", "-t", &pid, "-n", "sh", "-c"], &format!("exec {words}"))
    }

    fn measure(&self, family: Family, words: &str) -> Outcome {
        let there = address(family, 1);
        Outcome::of(
            self.command(0, &format!("\"$STACKLAB\" measure echo {there} --peer stamp --json {words}")),
        )
    }

    /// Compares IPv6 with IPv4 to the reflector on the second host.
    fn compare(&self, words: &str) -> Outcome {
        let there =
            Family::ALL.iter().map(|family| address(*family, 1).to_string()).collect::<Vec<_>>().join(",");
        let line = format!("\"$STACKLAB\" measure echo {there} --peer stamp --against ipv4 --json {words}");
        Outcome::of(self.command(0, &line))
    }

    /// A reflector of ours on the second host, on any address.
    fn reflector(&self, words: &str) -> Running {
        let mut running =
            self.program.started(self.command(1, &format!("\"$STACKLAB\" agent --stamp {words}")));
        running.wait_for("STAMP reflector on 0.0.0.0:862", SOON);
        running
    }
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// stamp-suite, which scripts/setup has built.
fn suite() -> String {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin/stamp-suite");
    assert!(tools.exists(), "this test needs stamp-suite: scripts/setup test-all");
    tools.canonicalize().unwrap().display().to_string()
}

#[test]
fn known_delay_and_loss_have_the_right_direction() {
    let there =
        Faults { delay: Duration::from_millis(20), drop_datagram: Some((10, 3)), ..Faults::default() };
    let back = Faults { delay: Duration::from_millis(5), drop_datagram: Some((20, 5)), ..Faults::default() };
    let scene = Scene::set(there, back);
    let reflector = scene.reflector("");
    let mut counted = [0, 0];
    for &family in Family::ALL {
        let outcome = scene.measure(family, "-n 200 --clock-error 0").expect(code::DONE);
        let run = json(&outcome);
        let [forward, backward, both] =
            ["forward", "backward", "round_trip"].map(|way| number(&run["delay_ms"][way]["median"]));
        assert!((20.0..23.0).contains(&forward), "{run:#}");
        assert!((5.0..8.0).contains(&backward), "{run:#}");
        assert!((25.0..29.0).contains(&both), "{run:#}");
        assert_eq!(run["clock"]["estimated"], false, "{run:#}");
        let losses = &run["losses"];
        let [lost, unanswered, after] = ["forward", "backward", "at_the_end"]
            .map(|way| losses[way].as_u64().unwrap_or_else(|| panic!("{run:#}")));
        // The path counts the datagrams of both sessions of a family apart by nothing, with those that end them.
        counted = [counted[0] + lost, counted[1] + unanswered];
        assert!((19..=21).contains(&lost) && (8..=10).contains(&unanswered) && after <= 1, "{run:#}");
        assert_eq!(200 - run["answered"].as_u64().unwrap(), lost + unanswered + after, "{run:#}");
        assert_eq!(run["routers_forward"], 0, "{run:#}");
    }
    assert!(counted[0] >= 39 && counted[1] >= 17, "{counted:?}");
    // Without a word on the clocks, the asymmetry is within the bound, and said to be unknown.
    let run = json(&scene.measure(Family::Ipv6, "-n 50").expect(code::DONE));
    let clock = &run["clock"];
    assert_eq!(clock["estimated"], true, "{run:#}");
    let offset = number(&clock["offset_ms"]);
    let bound = number(&clock["bound_ms"]);
    assert!(offset.abs() <= bound && bound < 14.0 && offset > 5.0, "{run:#}");
    // A reflector that repeats numbers cannot tell.
    drop(reflector);
    let _stateless = scene.reflector("--stamp-stateless");
    let run = json(&scene.measure(Family::Ipv4, "-n 100").expect(code::DONE));
    assert!(run["losses"]["direction_unknown"].as_str().unwrap().contains("stateless"), "{run:#}");
    assert!((13..=16).contains(&run["losses"]["lost"].as_u64().unwrap()), "{run:#}");
}

/// What was found of a metric.
fn find_comparison(found: &Value, metric: &str) -> Value {
    let comparisons = found["comparisons"].as_array().unwrap_or_else(|| panic!("{found:#}"));
    let of_metric = comparisons.iter().find(|one| one["metric"] == metric);
    let compared = of_metric.unwrap_or_else(|| panic!("{metric}: {found:#}")).clone();
    assert_eq!([&compared["baseline"]["family"], &compared["candidate"]["family"]], ["ipv4", "ipv6"]);
    compared
}

fn find_means(compared: &Value) -> [f64; 2] {
    ["baseline_estimate", "candidate_estimate"].map(|arm| number(&compared[arm]["mean"]))
}

#[test]
fn delay_of_one_family_is_found_by_comparison() {
    let there = Faults { only: Some(Family::Ipv6), delay: Duration::from_millis(12), ..Faults::default() };
    let scene = Scene::set(there, Faults { delay: Duration::from_millis(3), ..Faults::default() });
    let _reflector = scene.reflector("");
    let kept = scene.program.work().join("both.stacklab");
    let outcome = scene.compare(&format!("-t 8 --out {}", kept.display())).expect(code::DONE);
    let found = json(&outcome);
    let round_trip = find_comparison(&found, "path_round_trip");
    assert_eq!(round_trip["verdict"], serde_json::json!({ "better": "ipv4" }), "{round_trip:#}");
    let [ipv4, ipv6] = find_means(&round_trip);
    assert!((3.0..7.0).contains(&ipv4) && (11.0..16.0).contains(&(ipv6 - ipv4)), "{ipv4} {ipv6}");
    assert_eq!(find_means(&find_comparison(&found, "echo_loss")), [0.0; 2], "{found:#}");
    assert_eq!(found["invalid_runs"], serde_json::json!([]), "{found:#}");
    let report = scene.program.run(&["report", kept.to_str().unwrap()]).expect(code::DONE);
    assert!(report.stdout.contains("path round trip, UDP, IPv6 vs IPv4, 44 B: IPv4 better"), "{report}");
}

#[test]
fn loss_of_one_family_is_found_by_comparison() {
    let back = Faults { only: Some(Family::Ipv6), drop_datagram: Some((5, 1)), ..Faults::default() };
    let scene = Scene::set(Faults::default(), back);
    let _reflector = scene.reflector("");
    let found = json(&scene.compare("-t 20 --pps 200").expect(code::DONE));
    let [ipv4, ipv6] = find_means(&find_comparison(&found, "echo_loss"));
    assert!(ipv4 == 0.0 && (0.17..0.23).contains(&ipv6), "{found:#}");
}

#[test]
fn comparison_without_answers_ends_with_advice() {
    let scene = Scene::set(Faults::default(), Faults::default());
    scene
        .compare("-t 5")
        .expect(code::HOST)
        .says(&["nothing serves UDP port 862", "start a STAMP reflector"]);
    let key = scene.program.write("key", KEY);
    let _reflector = scene.reflector(&format!("--stamp-key-file {}", key.display()));
    scene.compare("-t 5").expect(code::HOST).says(&["did not answer", "--key-file"]);
    scene.compare("-n 50").expect(code::REQUEST).says(&["-n", "--against"]);
    scene.compare("--pps 1 -t 10").expect(code::REQUEST).says(&["--pps", "-t 96"]);
    scene.compare(&format!("-t 4 --key-file {}", key.display())).expect(code::DONE);
}

#[test]
fn another_implementation_answers_in_both_modes() {
    let scene = Scene::set(Faults::default(), Faults::default());
    let key = scene.program.write("key", KEY);
    let suite = suite();
    for &family in Family::ALL {
        for stateful in [false, true] {
            for closed in [false, true] {
                let there = address(family, 1);
                let state = if stateful { "--stateful-reflector" } else { "" };
                let mode = if closed { format!("-A A --hmac-key {KEY}") } else { String::new() };
                let words = format!("{suite} -i --local-addr {there} {state} {mode} 1>&2");
                let mut reflector = scene.program.started(scene.command(1, &words));
                reflector.wait_for("Reflector listening", SOON);
                let with = if closed { format!("--key-file {}", key.display()) } else { String::new() };
                // Its own times are in one format, whichever it is asked in.
                let times = if stateful { "ptp" } else { "ntp" };
                let words = format!(
                    "-n 100 --clock-error 0 --stamp-session 77 --stamp-times --stamp-format {times} -S ef {with}"
                );
                let run = json(&scene.measure(family, &words).expect(code::DONE));
                assert_eq!((&run["sent"], &run["answered"]), (&100.into(), &100.into()), "{run:#}");
                assert_eq!((&run["strays"], &run["implausible"]), (&0.into(), &0.into()), "{run:#}");
                assert_eq!(run["authenticated"], closed);
                assert!(number(&run["delay_ms"]["round_trip"]["median"]) < 20.0, "{run:#}");
                assert_eq!(run["class_of_service"]["arrived"], 46, "{run:#}");
                assert_eq!(run["timestamp_information"]["method_in"], 2, "{run:#}");
                assert_eq!(run["routers_forward"], 0, "{run:#}");
                if stateful {
                    assert_eq!(
                        (&run["losses"]["forward"], &run["losses"]["backward"]),
                        (&0.into(), &0.into()),
                        "{run:#}"
                    );
                } else {
                    assert!(run["losses"]["direction_unknown"].is_string(), "{run:#}");
                }
            }
        }
    }
}

#[test]
fn another_implementation_is_answered_in_both_modes() {
    let there = Faults { delay: Duration::from_millis(12), ..Faults::default() };
    let scene = Scene::set(there, Faults::default());
    let key = scene.program.write("key", KEY);
    let suite = suite();
    for (state, closed) in [("", false), ("--stamp-stateless", false), ("", true)] {
        let with = if closed { format!("--stamp-key-file {}", key.display()) } else { String::new() };
        let _reflector = scene.reflector(&format!("{state} {with}"));
        for &family in Family::ALL {
            let here = address(family, 0);
            let there = address(family, 1);
            let mode = if closed { format!("-A A --hmac-key {KEY}") } else { String::new() };
            let words = format!(
                "{suite} --remote-addr {there} --local-addr {here} -c 50 -d 10 -L 1 {mode} --output-format json 2>/dev/null"
            );
            let outcome = Outcome::of(scene.command(0, &words)).expect(code::DONE);
            let line = outcome
                .stdout
                .lines()
                .rfind(|line| line.starts_with('{'))
                .unwrap_or_else(|| panic!("{outcome}"));
            let run: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&run["packets_sent"], &run["packets_received"]), (&50.into(), &50.into()), "{run:#}");
        }
    }
}

#[test]
fn missing_reflector_or_other_key_is_told() {
    let scene = Scene::set(Faults::default(), Faults::default());
    scene.measure(Family::Ipv6, "-n 5").expect(code::HOST).says(&["nothing serves UDP port 862"]);
    let [key, other, short] = [KEY, "ff0102030405060708090a0b0c0d0e0f", "ab"]
        .map(|text| scene.program.write(&text[..2], text).display().to_string());
    let _reflector = scene.reflector(&format!("--stamp-key-file {key}"));
    for words in ["-n 5".to_owned(), format!("-n 5 --key-file {other}")] {
        scene.measure(Family::Ipv4, &words).expect(code::HOST).says(&["did not answer", "--key-file"]);
    }
    scene.measure(Family::Ipv4, &format!("-n 5 --key-file {key}")).expect(code::DONE);
    scene
        .measure(Family::Ipv4, &format!("-n 5 --key-file {short}"))
        .expect(code::REQUEST)
        .says(&["32 hexadecimal digits"]);
    scene.measure(Family::Ipv4, "-n 5 -l 45").expect(code::REQUEST).says(&["use 44, or at least 48"]);
    scene.measure(Family::Ipv4, "-n 5 -R").expect(code::REQUEST);
}

/// A reflector in this test: it changes what ours would answer, by a function of the answer and its number.
fn liar(ahead: Duration, change: fn(u32, &mut Vec<u8>)) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let place = socket.local_addr().unwrap();
    thread::spawn(move || {
        let error = ErrorEstimate::new(TimeFormat::Ptp, None);
        let mut reflector = Reflector::new(Codec::new(None), error, true);
        let mut room = [0; 2000];
        for count in 0.. {
            let Ok((length, peer)) = socket.recv_from(&mut room) else { return };
            let arrived = Arrived { peer, unix_ns: read_clock(ahead), ttl: 250, traffic_class: 0 };
            let mut message = room[..length].to_vec();
            let pending = reflector.reflect(&mut message, &arrived).unwrap();
            reflector.finish(pending, read_clock(ahead), &mut message);
            change(count, &mut message);
            socket.send_to(&message, peer).unwrap();
        }
    });
    place
}

/// Nanoseconds since 1970 by a clock that is ahead.
fn read_clock(ahead: Duration) -> u64 {
    (SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + ahead).as_nanos() as u64
}

fn measure_liar(place: SocketAddr, words: &str) -> Outcome {
    let port = place.port().to_string();
    let args = [
        &["measure", "echo", "127.0.0.1", "--peer", "stamp", "--json", "-p", &port][..],
        &words.split(' ').collect::<Vec<_>>(),
    ];
    Program::new().run(&args.concat())
}

#[test]
fn clock_offset_is_found_and_a_wrong_promise_is_told() {
    let place = liar(Duration::from_secs(37), |_, _| {});
    let run = json(&measure_liar(place, "-n 50").expect(code::DONE));
    let clock = &run["clock"];
    let offset = number(&clock["offset_ms"]);
    let bound = number(&clock["bound_ms"]);
    assert!((offset - 37_000.0).abs() <= bound && bound < 20.0, "{run:#}");
    assert!(number(&run["delay_ms"]["round_trip"]["median"]) < 20.0, "{run:#}");
    assert_eq!(run["routers_forward"], 5, "{run:#}");
    // The reflector is on this host.
    assert_eq!(run["answer_ttl"], 64, "{run:#}");
    // Times in the format of PTP are answered in it, and say the same.
    let run = json(&measure_liar(place, "-n 50 --stamp-format ptp").expect(code::DONE));
    let offset = number(&run["clock"]["offset_ms"]);
    assert!((offset - 37_000.0).abs() <= number(&run["clock"]["bound_ms"]), "{run:#}");
    let outcome = measure_liar(place, "-n 50 --clock-error 1ms").expect(code::INVALID);
    assert_eq!(json(&outcome)["clock"]["contradicted"], true);
}

#[test]
fn answers_that_lie_are_told_apart_and_not_counted() {
    // T1 is another one: no packet of this session was sent then.
    let place = liar(Duration::ZERO, |count, message| message[32] ^= u8::from(count % 5 == 2));
    let run = json(&measure_liar(place, "-n 50").expect(code::DONE));
    assert_eq!((&run["answered"], &run["strays"]), (&40.into(), &10.into()), "{run:#}");
    // T3 before T2.
    let place = liar(Duration::ZERO, |_, message| message[4..12].fill(1));
    let run = json(&measure_liar(place, "-n 20").expect(code::INVALID));
    assert_eq!((&run["implausible"], &run["delay_ms"]), (&20.into(), &Value::Null), "{run:#}");
    // More answered than was sent; cut off; of another session.
    let place = liar(Duration::ZERO, |_, message| message[0] = 9);
    let run = json(&measure_liar(place, "-n 20").expect(code::DONE));
    assert!(run["losses"]["direction_unknown"].as_str().unwrap().contains("did not begin"), "{run:#}");
    let changes: [fn(u32, &mut Vec<u8>); 2] =
        [|_, message| message.truncate(43), |_, message| message[15] ^= 1];
    for change in changes {
        let outcome = measure_liar(liar(Duration::ZERO, change), "-n 10").expect(code::HOST);
        assert_eq!(json(&outcome)["answered"], 0);
    }
}
