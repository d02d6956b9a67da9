//! Real machines whose network under test is Wi-Fi, as a tool there says that prints what iw prints. It needs root.

use super::remote::{PORT, Scene};
use crate::support;

use stacklab_model::Station;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use support::program::code;
use support::records::runs;

/// What iw would say of an adapter.
const IW: &str = r#"#!/bin/sh
case "$*" in
*info) echo "	channel 36 (5180 MHz), width: 80 MHz, center1: 5210 MHz" ;;
*link) echo "Connected to 02:00:00:00:00:03 (on st0)"; echo "	SSID: office"; echo "	signal: -50 dBm" ;;
*) echo "Power save: off" ;;
esac
"#;

/// Lays another network between both hosts, and has ssh know the receiver there by the name `cable`.
fn lay_cable(scene: &Scene) {
    let [sender, receiver] = scene.testbed.hosts().each_ref().map(|host| host.pid().to_string());
    let script = format!(
        "ip link add cable0 type veth peer name cable0 netns {receiver} && ip address add 198.18.9.1/24 dev cable0 && \
         ip link set cable0 up && nsenter -t {receiver} -n sh -c 'ip address add 198.18.9.2/24 dev cable0 && \
         ip link set cable0 up'"
    );
    let laid = Command::new("nsenter").args(["-t", &sender, "-n", "sh", "-c", &script]).status().unwrap();
    assert!(laid.success());
    let [config, known, key] =
        ["config", "known", "host.pub"].map(|name| fs::read_to_string(scene.path(name)).unwrap());
    scene.write("config", &format!("Host cable\nHostName 198.18.9.2\n{config}"));
    scene.write("known", &format!("{known}[198.18.9.2]:{PORT} {key}"));
}

#[test]
fn adapter_is_recorded_and_does_not_carry_ssh() {
    let scene = Scene::set();
    lay_cable(&scene);
    let iw = scene.write("bin/iw", IW);
    fs::set_permissions(iw, fs::Permissions::from_mode(0o755)).unwrap();
    let options = ["--out", "x.stacklab", "--seed", "1", "--copy-agent"];
    let said = ["st0 of localhost is Wi-Fi", "ssh to ssh:lab goes over it", "HostName"];
    scene.run(&[&["run", "short.toml"], &options[..]].concat()).expect(code::REQUEST).says(&said);
    let short = fs::read_to_string(scene.program.work().join("short.toml")).unwrap();
    scene.program.write("cable.toml", short.replace("ssh:lab", "ssh:cable"));
    let done = scene.run(&[&["run", "cable.toml"], &options[..]].concat()).expect(code::DONE);
    assert!(done.stderr.contains("Wi-Fi at st0 of localhost"), "{}", done.stderr);
    let all = runs(&scene.program.work().join("x.stacklab"));
    assert_eq!(all.len(), 2);
    for run in all {
        let [Some(station), None] = [0, 1].map(|side| run.host_reports[side].station.as_ref()) else {
            panic!("{}: {:?}", run.trial, run.host_reports)
        };
        let Station { ssid, bssid, frequency, width, signal_dbm, .. } = &station.after;
        assert_eq!((ssid.as_str(), bssid.as_str()), ("office", "02:00:00:00:00:03"));
        assert_eq!((*frequency, *width, *signal_dbm, station.seed), (5180, 80, Some(-50), None));
    }
}
