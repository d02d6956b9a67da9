//! A study on a machine behind ssh: the program that is copied there, its addresses, and what is left behind.

use super::remote::{LINK_LOCAL, STUDY, Scene};
use crate::support::program::code;
use crate::support::records::{figure, runs};

use stacklab_model::{Family, Metric, Probe, Transport};
use stacklab_store::Record;
use std::fs;
use std::path::PathBuf;

#[test]
fn a_study_runs_on_a_machine_behind_ssh() {
    let scene = Scene::set();
    check_addresses(&scene);
    check_link_local_addresses(&scene);
    check_program_is_this_one(&scene);
    check_cleaning(&scene);
}

/// The program is copied when the user asks, and both machines measure over the addresses of the study.
fn check_addresses(scene: &Scene) {
    // Nothing is installed on another machine without asking.
    scene.fails(&["ssh:lab", "--copy-agent", "not there"]);
    assert_eq!(fs::read_dir(scene.path("home")).unwrap().count(), 0);

    let begin = ["run", "study.toml", "--out", "x.stacklab", "--seed", "1", "--copy-agent"];
    let first = scene.run(&begin).expect(code::DONE);
    assert!(first.stderr.contains("localhost and ssh:lab on their own network"), "{}", first.stderr);
    let record = scene.program.work().join("x.stacklab");
    let all = runs(&record);
    assert_eq!(all.len(), 2 * 2 * 2 * 3);
    for run in &all {
        let metric = if run.trial.probe == Probe::Stream { Metric::Throughput } else { Metric::Rtt };
        assert!(figure(run, metric) > 0.0, "{}", run.trial);
        let [sender, receiver] = [0, 1].map(|side| run.host_reports[side].endpoint.local.ip().to_string());
        let [own, other] = match run.trial.cell.family {
            Family::Ipv4 => ["198.18.0.1", "198.18.0.2"],
            Family::Ipv6 => ["2001:2:0:1::1", "2001:2:0:1::2"],
        };
        assert_eq!((sender.as_str(), receiver.as_str()), (own, other));
        assert!([Transport::Tcp, Transport::Udp].contains(&run.trial.cell.transport));
    }
    let hosts = Record::read(&record).unwrap().hosts().unwrap();
    assert_eq!(hosts.iter().map(|host| host.kind.as_str()).collect::<Vec<_>>(), ["localhost", "ssh"]);
}

/// A machine is reached by a link-local address and measured over it, each with the zone of the host that uses it.
fn check_link_local_addresses(scene: &Scene) {
    let hosts = ["[[host]]\nos = \"localhost\"", "os = \"ssh:lab\"", "\"2001:2:0:1::2\""];
    let there = "os = \"ssh:root@fe80::2%st0\"";
    let zoned = ["[[host]]\nos = \"localhost\"\nipv6 = \"fe80::1%st0\"", there, "\"fe80::2%st0\""];
    let text = hosts.iter().zip(zoned).fold(STUDY.to_owned(), |text, (from, to)| text.replace(from, to));
    let text = text.replace("os = [\"ssh:lab\"]", "os = [\"ssh:root@fe80::2%st0\"]");
    scene.program.write("zoned.toml", &text);
    scene.run(&["run", "zoned.toml", "--out", "zoned.stacklab", "--seed", "1"]).expect(code::DONE);
    let all = runs(&scene.program.work().join("zoned.stacklab"));
    let zoned: Vec<_> = all.iter().filter(|run| run.trial.cell.family == Family::Ipv6).collect();
    assert_eq!(zoned.len(), 2 * 2 * 3);
    for run in zoned {
        let local = [0, 1].map(|side| run.host_reports[side].endpoint.local.ip().to_string());
        assert_eq!(local, LINK_LOCAL);
    }
    for (address, expected, said) in [
        ("\"fe80::2%st9\"", code::HOST, ["st9", "ssh:root@fe80::2%st0"]),
        ("\"fe80::2\"", code::REQUEST, ["fe80::2 is link-local", "\"fe80::2%eth0\""]),
    ] {
        scene.program.write("zoned.toml", text.replace("\"fe80::2%st0\"", address));
        scene.run(&["run", "zoned.toml", "--out", "no.stacklab"]).expect(expected).says(&said);
    }
}

/// The copied program.
fn copied_agent(scene: &Scene) -> PathBuf {
    let folder = scene.path("home/.cache/stacklab/bin");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    let [agent] = &files[..] else { panic!("one file is there") };
    agent.clone()
}

/// The same program is used again; another one in its place is not, whatever it says of itself.
fn check_program_is_this_one(scene: &Scene) {
    scene.run(&["run", "short.toml", "--out", "y.stacklab", "--seed", "1"]).expect(code::DONE);
    let version = scene.run(&["--version"]).stdout;
    fs::write(copied_agent(scene), format!("#!/bin/sh\necho {version}\n")).unwrap();
    scene.fails(&["ssh:lab", "is not this program", "--copy-agent"]);
}

/// What was put there is taken away again, and nothing else.
fn check_cleaning(scene: &Scene) {
    let agent = copied_agent(scene);
    let folder = agent.parent().unwrap();
    fs::write(folder.join("own"), "").unwrap();
    let cleaned = scene.run(&["ssh-clean", "lab"]).expect(code::DONE).stdout;
    let name = agent.file_name().unwrap().to_str().unwrap();
    assert_eq!(cleaned, format!("ssh:lab: removed ~/.cache/stacklab/bin/{name}\n"));
    assert!(!agent.exists() && folder.join("own").exists());
    fs::remove_file(folder.join("own")).unwrap();
    let cleaned = scene.run(&["ssh-clean", "ssh:lab"]).expect(code::DONE).stdout;
    assert_eq!(cleaned, "ssh:lab: no copy of stacklab found\n");
    assert!(!scene.path("home/.cache/stacklab").exists());
    let outcome = scene.run(&["ssh-clean", "-oProxyCommand=id"]).expect(code::REQUEST);
    assert!(outcome.stdout.is_empty(), "{}", outcome.stdout);
}
