//! Trials over Wi-Fi in virtual time repeat to the bit, however busy the machine is. The test needs root and the
//! user-mode Linux that is made here (uml-full).

use crate::support;
use crate::wifi::wpa2;
use crate::wifi_medium::Load;
use crate::wifi_saturation::flood;

use stacklab_model::wifi::WifiSettings;
use stacklab_model::{Family, Metric, Value};
use stacklab_testbed::{MediumReport, WifiHosted, WifiSpec, enter};
use stacklab_traffic::protocol::AgentClient;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;
use support::program::{Program, require_root};

static NEVER_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A trial: what was measured, and what the medium has counted up to its end.
type Course = (BTreeMap<Metric, Value>, MediumReport);

/// Trials of both families on a network of this seed, each after a pause. Returns their courses, and what was on air.
fn course(seed: u64, pause: Duration) -> (Vec<Course>, Vec<u8>) {
    let program = Program::new();
    let settings = WifiSettings { seed, ..WifiSettings::default() };
    let security = wpa2("sixteen bytes ok");
    let spec = WifiSpec::new(settings, security.clone(), [security.clone(), security]).unwrap().captured();
    let (mut hosted, [sender, access_point, _], _) =
        WifiHosted::boot(&"uml-full".parse().unwrap(), &spec, &program.path(), 0).unwrap();
    let mut agents = [("sender", sender), ("access point", access_point)]
        .map(|(name, (read, write))| AgentClient::new(name, read, write, &NEVER_INTERRUPTED));
    let mut courses = Vec::new();
    for family in Family::ALL {
        sleep(pause);
        hosted.look(Some(seed)).unwrap().unwrap();
        let run = flood(*family, 1408, &mut agents);
        assert!(run.is_valid(), "{:?}", run.status);
        courses.push((run.values, hosted.medium_report().unwrap()));
    }
    (courses, fs::read(hosted.capture().unwrap()).unwrap())
}

#[test]
fn trials_of_one_seed_are_equal_to_the_bit() {
    require_root();
    enter().unwrap();
    let first = course(1, Duration::ZERO);
    let second = {
        let _load = Load::begin();
        course(1, Duration::from_millis(700))
    };
    for ((one, other), family) in first.0.iter().zip(&second.0).zip(Family::ALL) {
        println!("note: {family}: {:?}, {} frames", one.0[&Metric::Throughput], one.1.frames.delivered);
        assert_eq!(one, other, "{family}");
    }
    assert_eq!(first.0.len(), 2);
    assert!(first.1 == second.1, "captures of {} and {} bytes differ", first.1.len(), second.1.len());
    assert_ne!(course(2, Duration::ZERO).0[0].1.digest, first.0[0].1.digest, "of another seed");
}
