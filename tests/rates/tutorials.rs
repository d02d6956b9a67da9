//! The tutorials' commands, run in order in an empty folder. Commands that are left out name the test that covers them.

use crate::support::program::{Outcome, Program, code, require_root, require_tool};

use std::process::Command;

/// Runs a tutorial in a network namespace, where the agent's port is free, and compares the counts of its commands.
fn follow(user: &str, ran: usize, left_out: usize) {
    require_root();
    require_tool("unshare", "util-linux");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = format!("docs/tutorial-{user}.md");
    let mut made = Command::new("scripts/tutorial");
    made.arg(&page).current_dir(root);
    let script = Outcome::of(made).expect(code::DONE).stdout;
    let program = Program::new();
    let bin = program.path();
    let path = format!("{}:{}", bin.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = format!("ip link set lo up\n{script}");
    let mut shell = program.script(&["unshare", "--net", "bash", "-c"], &script);
    shell.env("PATH", path).env_remove("STACKLAB_KEY");
    let outcome = Outcome::of(shell).expect(code::DONE);
    println!("{}", outcome.stdout);
    let counts = format!("{page}: {ran} commands run, {left_out} left out");
    assert_eq!(outcome.stdout.lines().last(), Some(&*counts), "{outcome}");
}

#[test]
fn network_engineers_tutorial_works() {
    follow("network", 11, 2);
}

#[test]
fn researchers_tutorial_works() {
    follow("research", 10, 6);
}

#[test]
fn kernel_developers_tutorial_works() {
    follow("kernel", 5, 4);
}
