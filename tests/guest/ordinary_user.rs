//! An ordinary user measures a tunnel in user-mode Linux. The test needs root, to become that user, and the image uml.

use crate::support;

use stacklab_model::Factor;
use std::process::Command;
use support::program::{Outcome, Program, code, count, invalid, require_root, require_tool};
use support::studies::TestStudy;

/// The user and group "nobody", in no other group.
const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn study() -> TestStudy {
    TestStudy::new("a tunnel, without root")
        .topology("routed")
        .rate("5 Mbit/s")
        .mechanisms(&["native", "6in4"])
        .family("ipv6")
        .transports(&["udp"])
        .size_of("write")
        .sizes(&[640])
        .stream(&["throughput", "path_mtu"])
        .time("200ms")
        .warmup("50ms")
        .blocks(2)
        .compare(Factor::Mechanism, "native", "6in4")
}

#[test]
fn an_ordinary_user_measures_a_tunnel_in_a_guest() {
    require_root();
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    // The image may lie where this user cannot read, below root's home.
    let cache = std::env::var("STACKLAB_CACHE").expect("scripts/test sets STACKLAB_CACHE");
    let images = program.work().join("cache/images");
    std::fs::create_dir_all(&images).unwrap();
    let copied =
        Command::new("cp").args(["-a", &format!("{cache}/images/uml")]).arg(&images).status().unwrap();
    assert!(copied.success(), "there is no image uml: stacklab image get uml");
    let given =
        Command::new("chown").args(["-R", "65534:65534"]).arg(program.work().join("cache")).status().unwrap();
    assert!(given.success());
    program.write("study.toml", study().text());
    program.give_to(NOBODY);

    let stacklab = program.path().display().to_string();
    let run = [stacklab.as_str(), "run", "study.toml", "--out", "x.stacklab"];
    let mut command = program.script(&[&AS_NOBODY[..], &run].concat(), "--in-vm=uml");
    command.env("STACKLAB_CACHE", program.work().join("cache"));
    Outcome::of(command).expect(code::DONE);
    let path = program.work().join("x.stacklab");
    assert_eq!(invalid(&path), [""; 0]);
    assert_eq!(count(&path, "status = 'valid' AND replica = ''"), 4);
}
