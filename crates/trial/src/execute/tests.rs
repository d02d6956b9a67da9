//! Limits of a trial.

use super::*;
use crate::fixtures;
use stacklab_model::{Direction, Length, Pacing, Probe, Transport};
use stacklab_traffic::timing::{END_LIMIT, MAX_DURATION, OPEN_LIMIT, SEND_LIMIT};
use std::io;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

/// An agent that answers nothing, and does not end.
fn frozen(host: &str) -> AgentClient {
    let (input, output) = io::pipe().unwrap();
    // Kept open for as long as the test runs.
    std::mem::forget(output);
    AgentClient::new(host, input, io::sink(), &NEVER)
}

#[test]
fn trial_limit_is_half_a_minute_beyond_its_length() {
    let path = fixtures::path(Family::Ipv4);
    let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    (spec.probe.length, spec.probe.warmup_ns) = (Length::Time(2_000_000_000), 500_000_000);
    let one = crate::transfers::of(&path, &spec, Direction::Forward);
    assert_eq!(Time::new(length(&one), 1).limit, Duration::from_millis(32_500));
    // Transfers at the same time share it, too.
    let both = crate::transfers::of(&path, &spec, Direction::Both);
    assert_eq!(Time::new(length(&both), 1).limit, Duration::from_millis(32_500));
    // Arms in turns and the pauses between their slices.
    let arms = [one, both].concat();
    assert_eq!(Time::new(length_in_turns(&arms), 1).limit, Duration::from_millis(30_000 + 2 * 3 * 2_500));
    // A sender gives up earlier, with its own reason.
    assert!(SEND_LIMIT < SLACK && OPEN_LIMIT + 2 * END_LIMIT < SLACK);
    // An untrusted schedule must not cause a panic.
    for per_second in [-1.0, 0.0, f64::NAN] {
        let mut odd = spec.clone();
        (odd.probe.length, odd.probe.pacing) = (Length::Packets(10), Pacing::Schedule(per_second));
        assert_eq!(longest(&odd), MAX_DURATION + Duration::from_millis(500));
    }
    spec.probe.probe = Probe::EchoUnderLoad;
    assert!(length(&crate::transfers::of(&path, &spec, Direction::Forward)) < Duration::from_secs(4));
}

#[test]
fn steps_share_a_trials_time_and_name_a_frozen_host() {
    let path = fixtures::path(Family::Ipv4);
    let spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    let transfer = crate::transfers::of(&path, &spec, Direction::Forward).remove(0);
    let time = Time { limit: Duration::from_millis(200), ..Time::new(Duration::ZERO, 1) };
    let mut sender = frozen("the sender");
    let mut receiver = frozen("the receiver");
    let listening = listen(&mut [&mut sender, &mut receiver], &transfer, time);
    let error = Failure::default().keep(listening).err().unwrap();
    assert!(matches!(&error, AgentError::Silent { host, .. } if host == "the receiver"), "{error:?}");
    let taken = time.began.elapsed();
    assert!((Duration::from_millis(200)..Duration::from_secs(20)).contains(&taken), "{taken:?}");
    // Nothing is left for what would come next.
    assert_eq!(time.remaining_time(), Duration::ZERO);
    let pending = sender.start(Request::Facts, "send").unwrap();
    // A patient one is waited for longer.
    let mut patient = frozen("the patient");
    let began = Instant::now();
    patient.be_patient(10);
    assert!(patient.ask(Request::Facts, "wait", Duration::from_millis(20)).is_err());
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert!(Time { patience: 1_000_000, ..time }.remaining_time() > Duration::from_millis(190));
    let error = finish(&mut sender, pending, "send", time).unwrap_err();
    assert!(matches!(&error, AgentError::Silent { host, .. } if host == "the sender"), "{error:?}");
}
