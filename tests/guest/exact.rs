//! Instructions per message, counted in an emulated machine. The tests need QEMU with plugins and the image linux-6.1;
//! mechanisms and rules also tayga and nft.

use crate::support;

use serde_json::Value;
use std::process::Command;
use support::program::{Outcome, Program, code, require_root, require_tool};

/// The user and group "nobody", in no other group.
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Instructions per message of a family, and of the difference, that a stock kernel is expected within.
const BANDS: [(&str, [f64; 2], [f64; 2]); 2] =
    [("udp", [6_000.0, 10_000.0], [200.0, 700.0]), ("tcp", [12_000.0, 22_000.0], [300.0, 1_300.0])];

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn both(value: &Value) -> [u64; 2] {
    [0, 1].map(|family| value[family].as_u64().unwrap_or_else(|| panic!("no count: {value}")))
}

/// A copy of the kernel's image that any user can read.
fn with_image(program: &Program) {
    let cache = std::env::var("STACKLAB_CACHE").expect("scripts/test sets STACKLAB_CACHE");
    let images = program.work().join("cache/images");
    std::fs::create_dir_all(&images).unwrap();
    let copied =
        Command::new("cp").args(["-r", &format!("{cache}/images/linux-6.1")]).arg(&images).status().unwrap();
    assert!(copied.success(), "there is no image linux-6.1: stacklab image get linux-6.1");
}

/// The totals of a cell, which are the sums of its stages and of its functions.
fn added_up(cell: &Value) -> [u64; 2] {
    let total = both(&cell["total"]);
    for rows in ["stages", "functions"] {
        let counts: Vec<[u64; 2]> =
            cell[rows].as_array().unwrap().iter().map(|row| both(&row["instructions"])).collect();
        let sum = [0, 1].map(|arm| counts.iter().map(|counts| counts[arm]).sum::<u64>());
        assert_eq!(sum, total, "rows add up to the total: {rows}");
    }
    total
}

/// The only cell of `explain --exact` with these words.
fn counted(program: &Program, words: &[&str]) -> Value {
    let words = [&["explain", "--exact"][..], words, &["--format", "json"]].concat();
    let mut command = program.command(&words);
    command.env("STACKLAB_CACHE", program.work().join("cache"));
    let found = json(&Outcome::of(command).expect(code::DONE));
    assert_eq!(found["cells"].as_array().unwrap().len(), 1);
    found["cells"][0].clone()
}

/// Instructions per message of a stage or function, by its name.
fn per_message(cell: &Value, rows: &str, name: &str) -> [f64; 2] {
    let row = cell[rows].as_array().unwrap().iter().find(|row| row["name"] == name);
    let counts = row.map_or([0, 0], |row| both(&row["instructions"]));
    counts.map(|count| count as f64 / cell["messages"].as_u64().unwrap() as f64)
}

#[test]
fn counts_of_mechanisms_add_up_and_show_stages() {
    require_root();
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    require_tool("tayga", "tayga");
    let program = Program::new();
    with_image(&program);
    for (mechanism, stage) in
        [("6in4", "tunnel"), ("siit", "programs in user space"), ("wireguard4", "encryption")]
    {
        let cell = count_mechanism(&program, mechanism);
        let [native, with] = added_up(&cell);
        assert!(with > native, "{mechanism} takes more instructions: {with} against {native}");
        let [before, after] = per_message(&cell, "stages", stage);
        assert!(after > before + 100.0, "{mechanism}: {stage} grows: {before} to {after}");
        let [before, after] = per_message(&cell, "stages", "forward");
        assert!(before > 100.0 && after > 100.0, "{mechanism}: both are forwarded: {before}, {after}");
    }
}

/// The container's device is one of its host's link, whose kernel is one of those that look for its name in the host.
#[test]
fn counts_show_that_macvlan_passes_by_its_host() {
    require_root();
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    let program = Program::new();
    with_image(&program);
    let cell = count_mechanism(&program, "macvlan");
    let [native, with] = added_up(&cell);
    assert!(with < native, "macvlan takes fewer instructions: {with} against {native}");
    let [before, after] = per_message(&cell, "stages", "forward");
    assert!(after > 100.0 && after < 0.7 * before, "one of two hosts forwards: {before}, {after}");
}

fn count_mechanism(program: &Program, mechanism: &str) -> Value {
    counted(program, &["udp", "--factor", "mechanism", "--levels", &format!("native,{mechanism}")])
}

/// Instructions per message in nftables' loop over the rules, with either number of rules; `None` if the sockets of one
/// share a slot of the kernel's table by their ports, so that it looks for the receiver twice.
fn count_rules(program: &Program, family: &str, rules: [u32; 2]) -> Option<[f64; 2]> {
    let levels = format!("{},{}", rules[0], rules[1]);
    let cell = counted(program, &["udp", "--path", "link", "--family", family, "--rules", &levels]);
    added_up(&cell);
    let [before, after] = per_message(&cell, "functions", "compute_score");
    if (after - before).abs() > 1.0 {
        println!("note: {family}, {levels} rules: sockets share a slot: {before} and {after}");
        return None;
    }
    // Filtering changes what packets pass, not the sending and receiving of them.
    for stage in ["transport transmit", "transport receive", "socket", "system call", "forward"] {
        let [before, after] = per_message(&cell, "stages", stage);
        assert!((after - before).abs() < 1.0, "{family}, {levels} rules: {stage}: {before} and {after}");
    }
    Some(per_message(&cell, "functions", "nft_do_chain"))
}

/// The same with the first of these pairs whose sockets share no slot, and that pair.
fn count_any_rules(program: &Program, family: &str, pairs: [[u32; 2]; 2]) -> ([u32; 2], [f64; 2]) {
    let counted = pairs.into_iter().find_map(|rules| Some((rules, count_rules(program, family, rules)?)));
    counted.unwrap_or_else(|| panic!("{family}: the sockets of {pairs:?} rules share a slot"))
}

#[test]
fn exact_counts_grow_equally_with_each_nftables_rule() {
    require_root();
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    require_tool("nft", "nftables");
    let program = Program::new();
    with_image(&program);
    for family in ["ipv4", "ipv6"] {
        let ([_, most], [one, many]) = count_any_rules(&program, family, [[1, 100], [1, 99]]);
        let each = (many - one) / f64::from(most - 1);
        assert!(each > 20.0, "{family}: a rule takes {each} instructions");
        // Each count boots a machine: one family is enough to show that nothing but the number of rules matters.
        if family == "ipv6" {
            let ([_, some], [none, with]) = count_any_rules(&program, family, [[0, 10], [0, 11]]);
            assert!(none < 0.001, "packets pass no rules: {none}");
            let expected = one + f64::from(some - 1) * each;
            assert!((with - expected).abs() < 0.1, "{family}: {one}, {with} with {some} rules, {many}");
        }
    }
}

#[test]
fn exact_counts_are_the_same_for_root_and_other_users() {
    require_root();
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    with_image(&program);
    let root = count_as(&program, &[]);
    let nobody = count_as(&program, &AS_NOBODY);
    assert_eq!(root.stdout, nobody.stdout, "the same program and kernel give the same counts");

    let found = json(&root);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), BANDS.len());
    for (cell, (transport, of_family, of_difference)) in cells.iter().zip(BANDS) {
        assert_eq!((&cell["probe"], &cell["arms"][1]["size"]), (&transport.into(), &128.into()));
        let total = added_up(cell);
        let messages = cell["messages"].as_u64().unwrap() as f64;
        let [ipv4, ipv6] = total.map(|total| total as f64 / messages);
        for figure in [ipv4, ipv6] {
            assert!((of_family[0]..of_family[1]).contains(&figure), "{transport}: {ipv4} and {ipv6}");
        }
        assert!(
            (of_difference[0]..of_difference[1]).contains(&(ipv6 - ipv4)),
            "{transport}: {ipv4} and {ipv6}"
        );
        // Rounds differ by timer interrupts.
        for round in cell["rounds"].as_array().unwrap().iter().map(both) {
            for family in [0, 1] {
                let deviation = 5.0 * round[family] as f64 / total[family] as f64 - 1.0;
                assert!(deviation.abs() < 0.01, "{transport}: a round deviates by {deviation}");
            }
        }
    }
    let functions = cells[0]["functions"].as_array().unwrap();
    let twins = functions.iter().find(|row| row["name"] == "udp_sendmsg / udpv6_sendmsg").unwrap();
    assert_eq!(twins["stage"], "transport transmit");
    assert!(both(&twins["instructions"]).iter().all(|count| *count > 0), "{twins}");
}

/// Counts as another user, whom the prefix makes of root.
fn count_as(program: &Program, prefix: &[&str]) -> Outcome {
    let stacklab = program.path().display().to_string();
    let line = [prefix, &[stacklab.as_str(), "explain", "--exact", "--format", "json"]].concat();
    let mut command = program.script(&line[..line.len() - 1], line[line.len() - 1]);
    command.env("STACKLAB_CACHE", program.work().join("cache"));
    Outcome::of(command).expect(code::DONE)
}

#[test]
fn exact_counts_without_emulator_say_how_to_get_one() {
    let program = Program::new();
    with_image(&program);
    std::fs::create_dir(program.work().join("tools")).unwrap();
    refuse_to_count(&program).says(&["qemu-system-x86_64", "apt-get install"]);
    for (script, words) in [
        (
            "echo QEMU emulator version 12.0.0",
            "QEMU 12.0.0 may have another plugin interface than QEMU 6 to 11.1",
        ),
        ("echo QEMU emulator version 7.2.0", "QEMU 7.2.0 was built without plugins"),
        (
            "echo QEMU emulator version 7.2.0; echo '-plugin'; echo no memory >&2",
            "QEMU ended at once: no memory",
        ),
    ] {
        let qemu = program.write("tools/qemu-system-x86_64", format!("#!/bin/sh\n{script}\n"));
        let made = Command::new("chmod").arg("755").arg(&qemu).status().unwrap();
        assert!(made.success());
        refuse_to_count(&program).says(&[words]);
    }
}

/// What is said where the folder `tools` has all programs that there are.
fn refuse_to_count(program: &Program) -> Outcome {
    let mut command = program.command(&["explain", "--exact", "udp"]);
    command.env("PATH", program.work().join("tools"));
    command.env("STACKLAB_CACHE", program.work().join("cache"));
    Outcome::of(command).expect(code::TESTBED)
}

#[test]
fn exact_counts_need_built_in_drivers_in_the_kernel() {
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    let program = Program::new();
    let cache = std::env::var("STACKLAB_CACHE").expect("scripts/test sets STACKLAB_CACHE");
    let kernel = format!("{cache}/images/linux-6.1/kernel");
    let outcome = program.run(&["explain", "--exact", "udp", "--kernel", &kernel]).expect(code::TESTBED);
    outcome.says(&["the guest ended without a report", "no port named stacklab"]);
}

#[test]
fn exact_counts_refuse_what_they_cannot_count() {
    let program = Program::new();
    for (words, says) in [
        (
            &["sctp"][..],
            "no study `sctp`: --exact counts udp, tcp, echo, connect, or the programs of a study",
        ),
        (&["--size", "0"], "1 to 16384 bytes"),
        (&["--size", "128,65000"], "messages of 65000 bytes"),
        (&["--seconds", "9s"], "cannot be used with"),
        (&["--factor", "io"], "not io"),
        (&["--path", "6in4"], "6in4 does not carry ipv4"),
        (&["--path", "ds_lite"], "loopback, or link"),
        (&["--rules", "10"], "--path link"),
    ] {
        let words = [&["explain", "--exact"][..], words].concat();
        program.run(&words).expect(code::REQUEST).says(&[says]);
    }
    program.run(&["explain", "--exact", "--kernel", "uml"]).expect(code::TESTBED).says(&["linux-6.1"]);
    let own = std::env::current_dir().unwrap();
    let [folder, file] = [own.clone(), own.join("Cargo.toml")].map(|path| path.display().to_string());
    for (kernel, code, says) in [
        (folder.as_str(), code::TESTBED, "is not a Linux source tree"),
        (&file, code::TESTBED, "is not a kernel for x86-64"),
        ("linux.6", code::REQUEST, "neither a system such as linux-6.1"),
    ] {
        program.run(&["explain", "--exact", "--kernel", kernel]).expect(code).says(&[says]);
    }
    program.run(&["explain", "--size", "64,128"]).expect(code::REQUEST).says(&["add --exact"]);
}
