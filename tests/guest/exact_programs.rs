//! Instructions per request of programs, counted in user space. The tests need root, qemu-user and a C compiler.

use crate::support;

use serde_json::Value;
use std::process::Command;
use support::program::{Outcome, Program, code, require_root, require_tool};

/// Rounds of the planted loop for each answer, of two instructions each.
const ROUNDS: i64 = 500;

/// Instructions that the starts of two runs differ by at most.
const MAX_OF_START: i64 = 400;

/// A folder with the program `planted`.
fn with_planted() -> Program {
    require_root();
    require_tool("qemu-x86_64", "qemu-user");
    let program = Program::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/support/planted.c");
    let file = program.work().join("planted");
    let compiled = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(file).arg(source).status().unwrap();
    assert!(compiled.success());
    program
}

/// A study of a server with and without the loop, whose client is a script.
fn study(looping: &str) -> String {
    let mut text = "title = \"A planted loop\"\n".to_owned();
    for (name, how, rounds) in [("plain", "serve", 0), ("loop", looping, ROUNDS)] {
        text += &format!(
            "[[program]]\nname = \"{name}\"\nserver = \"./planted {how} {{host}} {{port}} {rounds}\"\n\
             client = \"./ask {{host}} {{port}} {{requests}}\"\n"
        );
    }
    text + "[factors]\nfamily = [\"ipv4\", \"ipv6\"]\n[probe.program]\nmetrics = [\"duration\"]\n\
            [[comparison]]\nfactor = \"program\"\nbaseline = \"plain\"\ncandidate = \"loop\"\n"
}

fn write_script(program: &Program, text: &str) {
    program.write("ask", text);
    let file = program.work().join("ask");
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn count(program: &Program, words: &[&str]) -> Outcome {
    program.run(&[&["explain", "--exact", "study.toml", "--requests", "20"], words].concat())
}

fn count_as_json(program: &Program, words: &[&str]) -> Value {
    let outcome = count(program, &[words, &["--format", "json"]].concat()).expect(code::DONE);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// What 20 requests more take, in each round.
fn increases(end: &Value) -> Vec<i64> {
    let rounds = end["rounds"].as_array().unwrap();
    rounds.iter().map(|round| round[1].as_i64().unwrap() - round[0].as_i64().unwrap()).collect()
}

/// The same of a function, over all three rounds.
fn increase_of(end: &Value, name: &str) -> i64 {
    let rows = end["functions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {end}"));
    row["instructions"].as_i64().unwrap()
}

#[test]
fn a_planted_loop_is_found_to_the_instruction() {
    let program = with_planted();
    program.write("study.toml", study("serve"));
    write_script(&program, "#!/bin/sh\nexec ./planted ask \"$@\"\n");
    let found = count_as_json(&program, &[]);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(found["pairs"], serde_json::json!([[0, 1], [2, 3]]));
    for pair in cells.chunks(2) {
        let [plain, with_loop] = pair else { panic!("{found}") };
        // Its instructions, in each round, and few others: those of a shell's start depend on names in its environment.
        for (end, expected) in [("server", 20 * 2 * ROUNDS), ("client", 0)] {
            let [before, after] = [plain, with_loop].map(|cell| increases(&cell[end]));
            for (before, after) in before.iter().zip(&after) {
                assert!((after - before - expected).abs() < MAX_OF_START, "{end}: {before} {after}");
            }
        }
        let [before, after] = [plain, with_loop].map(|cell| increase_of(&cell["server"], "planted_loop"));
        assert_eq!(after - before, 3 * 20 * 2 * ROUNDS);
        assert_eq!(increase_of(&plain["client"], "main"), increase_of(&with_loop["client"], "main"));
    }
    let text = count(&program, &["--family", "ipv6"]).expect(code::DONE).stdout;
    assert!(text.contains("IPv6 loop compared with IPv6 plain: ") && !text.contains("IPv4"), "{text}");
}

#[test]
fn a_campaign_keeps_the_counts_of_its_programs() {
    let program = with_planted();
    let more = "instructions = true\n[blocks]\nmin = 2\nmax = 2\n";
    program.write("study.toml", study("serve").replace("\"ipv4\", ", "") + more);
    write_script(&program, "#!/bin/sh\nexec ./planted ask \"$@\"\n");
    program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    let json = program.run(&["report", "x.stacklab", "--format", "json"]).expect(code::DONE).stdout;
    let found: Value = serde_json::from_str(&json).unwrap();
    let counts = &found["explanations"][0]["programs"];
    assert_eq!(counts["requests"], serde_json::json!([100, 200]), "{found}");
    let cells = counts["cells"].as_array().unwrap();
    let [plain, with_loop] = [0, 1].map(|arm| increase_of(&cells[arm]["server"], "planted_loop"));
    assert_eq!(with_loop - plain, 3 * 100 * 2 * ROUNDS);
    let text = program.run(&["report", "x.stacklab"]).expect(code::DONE).stdout;
    assert!(text.contains("Instructions, beside time") && text.contains("server, more"), "{text}");
}

#[test]
fn children_and_threads_are_counted() {
    let program = with_planted();
    // Neither variables of the emulator nor children of another user are in the way.
    let client = "#!/bin/sh\nexport LD_LIBRARY_PATH=/none QEMU_LD_PREFIX=/none\n\
                  setpriv --reuid=65534 --clear-groups sh -c 'true | true' || exit 7\n./planted ask \"$@\"\ntrue\n";
    write_script(&program, client);
    for how in ["serve-in-child", "serve-in-threads"] {
        program.write("study.toml", study(how));
        let found = count_as_json(&program, &["--family", "ipv6"]);
        let server = &found["cells"][1]["server"];
        // Each call takes three instructions, and threads share the loop.
        let calls = if how == "serve-in-threads" { 2 } else { 1 };
        let expected = 3 * 20 * (2 * ROUNDS + 3 * calls);
        assert_eq!(increase_of(server, "planted_loop"), expected, "{how}");
    }
}

#[test]
fn programs_that_cannot_be_counted_say_why() {
    let program = with_planted();
    program.write("study.toml", study("serve"));
    for (client, code, why) in [
        (
            "#!/bin/sh\nexit 3\n",
            code::NOTHING_VALID,
            "IPv4 plain: the client on sender ended with an error (exit status: 3)",
        ),
        (
            "#!/bin/sh\n./planted ask $1 $2 5\n",
            code::NOTHING_VALID,
            "does it make as many as {requests} says?",
        ),
        (
            "#!/bin/sh\nLD_DEBUG=no,none ./planted ask \"$@\"\n",
            code::NOTHING_VALID,
            "it starts ./planted with LD_DEBUG=no,none, whose comma cannot be passed on",
        ),
        ("#!/bin/sh\nkill -SEGV $$\n", code::NOTHING_VALID, "uncaught target signal 11"),
    ] {
        write_script(&program, client);
        let outcome = count(&program, &["--family", "ipv4"]).expect(code);
        assert!(outcome.stderr.contains(why), "{outcome}");
    }
    program.write("study.toml", study("serve").replace("{requests}", "5"));
    let outcome = count(&program, &[]).expect(code::REQUEST);
    assert!(outcome.stderr.contains("client of `plain` does not take a number of requests"), "{outcome}");
    let outcome = program.run(&["explain", "--exact", "quickstart"]).expect(code::REQUEST);
    assert!(outcome.stderr.contains("has no [[program]] tables"), "{outcome}");
    for (words, why) in [
        (["study.toml", "--size", "64"], "--size and --kernel are for messages"),
        (["udp", "--requests", "5"], "--requests is for the programs of a study"),
        (["upd", "--rules", "5"], "there is no study `upd`: --exact counts udp, tcp, echo, connect"),
    ] {
        let outcome = program.run(&[&["explain", "--exact"], &words[..]].concat()).expect(code::REQUEST);
        assert!(outcome.stderr.contains(why), "{outcome}");
    }
    program.write("study.toml", study("serve"));
    let mut command = program.command(&["explain", "--exact", "study.toml"]);
    command.env("PATH", "/nonexistent");
    let outcome = Outcome::of(command).expect(code::TESTBED);
    assert!(
        outcome.stderr.contains("no program `qemu-x86_64`") && outcome.stderr.contains("apt-get"),
        "{outcome}"
    );
}
