//! What comes from the other end of a measurement: requests, answers, handshakes, messages.

use crate::Bytes;
use serde_json::Value;
use stacklab_agent::auth::{AddressPair, Gate};
use stacklab_agent::fuzzing::{admit_response, handshake_lines};
use stacklab_agent::key::Key;
use stacklab_fleet::fuzzing as fleet;
use stacklab_model::{
    ArmSchedule, Cell, Direction, Ends, Family, HostReport, Length, Pacing, Probe, ProbeSpec, SizeOf,
    Transport, TrialSpec,
};
use stacklab_traffic::agent::{Limits, Peers, Permission};
use stacklab_traffic::fuzzing::{
    Arrival, Header, Lines, MAX_ANSWER_LENGTH, MAX_REQUEST_LENGTH, SequenceWindow, count,
};
use stacklab_traffic::protocol::{Answer, Numbered, Request};
use stacklab_trial::{Path, figures, validate};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::time::Duration;

/// The two hosts' addresses.
const COORDINATOR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
const AGENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));

/// Requests to an agent. What is understood reads back as it is written; a trial that is accepted keeps its bounds; a
/// listening agent sends to its coordinator alone and receives on its own address.
pub fn agent_request(data: &[u8]) {
    let limits = Limits {
        peers: Peers { addresses: vec![COORDINATOR.into()], networks: Vec::new() },
        own: vec![AGENT.into()],
        tuning: false,
        longest: Duration::from_secs(60),
        most_bits_per_second: Some(1e9),
        idle: Duration::from_secs(60),
    };
    let permissions = [Permission::default(), Permission { limits: Some(limits), ..Permission::default() }];
    for line in Lines::new(data, MAX_REQUEST_LENGTH).map_while(Result::ok) {
        let request = match Numbered::<Request>::read(&line) {
            Ok(request) => request,
            Err(answer) => {
                assert!(matches!(answer.body, Answer::Failed { .. }));
                continue;
            }
        };
        let written = serde_json::to_string(&request).expect("a request has a line");
        assert_eq!(Numbered::<Request>::read(&written).expect("it was written here"), request);
        for permission in &permissions {
            if permission.check(&request.body, 0.0).is_ok() {
                keeps_bounds(&request.body, permission.limits.is_some());
            }
        }
    }
}

/// Asserts the bounds of an accepted request, in numbers of their own.
fn keeps_bounds(request: &Request, is_limited: bool) {
    let may_send = |to: IpAddr| assert!(!is_limited || to.to_canonical() == COORDINATOR, "{to}");
    let specs: Vec<&TrialSpec> = match request {
        Request::Listen { spec, address } | Request::Wait { spec, address } => {
            assert!(!is_limited || address.ip().to_canonical() == AGENT, "{address}");
            vec![spec]
        }
        Request::Open { spec, to, .. } => {
            may_send(to.ip());
            vec![spec]
        }
        Request::SendInTurns { arms, .. } => {
            arms.iter().for_each(|arm| may_send(arm.to.ip()));
            arms.iter().map(|arm| &*arm.spec).collect()
        }
        Request::Send(arm) | Request::SendInSlots { arm, .. } => {
            may_send(arm.to.ip());
            vec![&arm.spec]
        }
        _ => Vec::new(),
    };
    for spec in specs {
        let flows = u64::from(spec.flows);
        let bytes = u64::from(spec.message_bytes);
        assert!((1..=10_000).contains(&flows) && bytes <= 16 << 20 && flows * bytes <= 2 << 30, "{spec:?}");
        assert!(spec.transport == Transport::Tcp || bytes <= 65_535, "{spec:?}");
        assert!(bytes >= 32 || spec.probe.probe == Probe::Connect, "{spec:?}");
        assert!(spec.poll_ns <= 1_000_000_000, "{spec:?}");
        if let Pacing::Schedule(rate) | Pacing::Shifted(rate) | Pacing::Share(rate) = spec.probe.pacing {
            assert!(rate.is_finite() && rate > 0.0, "{spec:?}");
        }
        if let (true, Length::Time(ns)) = (is_limited, spec.probe.length) {
            assert!(u128::from(ns) + u128::from(spec.probe.warmup_ns) <= 60_000_000_000, "{spec:?}");
        }
    }
}

/// Answers to a coordinator: what is understood has no control character, and reads back as it is written.
pub fn agent_answer(data: &[u8]) {
    for line in Lines::new(data, MAX_ANSWER_LENGTH).map_while(Result::ok) {
        match Numbered::<Answer>::read(&line) {
            Ok(answer) => {
                let written = serde_json::to_string(&answer).expect("an answer has a line");
                assert_eq!(Numbered::<Answer>::read(&written).expect("it was written here"), answer);
                all_plain(&serde_json::to_value(&answer).expect("an answer is a value"));
            }
            Err(start) => {
                assert!(start.chars().count() <= 80 && !start.contains(char::is_control), "{start:?}")
            }
        }
    }
}

/// Messages of a fleet: requests, answers, and the pieces of a stream over NATS. What is understood reads back as it is
/// written, answers have no control characters, and a stream has what was sent, up to a message that was lost.
pub fn fleet_message(data: &[u8]) {
    for line in Lines::new(data, MAX_REQUEST_LENGTH).map_while(Result::ok) {
        if let Some(written) = fleet::request(&line) {
            assert_eq!(fleet::request(&written).as_ref(), Some(&written));
        }
        if let Some((written, reason)) = fleet::answer(&line) {
            assert_eq!(fleet::answer(&written).as_ref(), Some(&(written.clone(), reason.clone())));
            all_plain(&serde_json::from_str(&written).expect("an answer is a value"));
            assert!(crate::is_plain(&reason), "{reason:?}");
        }
    }
    let mut bytes = Bytes(data);
    let mut messages = Vec::new();
    let mut expected = Vec::new();
    let mut is_whole = true;
    while !bytes.is_over() {
        let choice = bytes.number(1);
        let number = messages.len() as u64;
        let sent = bytes.some((choice >> 3) as usize);
        let numbered = [&number.to_be_bytes(), sent].concat();
        match choice % 8 {
            // Lost, repeated, cut short.
            0 => messages.push([&(number + 1).to_be_bytes(), sent].concat()),
            1 => messages.extend([numbered.clone(), numbered]),
            2 => messages.push(numbered[..sent.len().min(7)].to_vec()),
            _ => messages.push(numbered),
        }
        if is_whole && choice % 8 != 0 && choice % 8 != 2 {
            expected.extend_from_slice(sent);
        }
        is_whole &= choice % 8 > 2 && !sent.is_empty();
    }
    assert_eq!(fleet::stream(messages), expected);
}

fn all_plain(value: &Value) {
    match value {
        Value::String(text) => assert!(!text.contains(char::is_control), "{text:?}"),
        Value::Array(all) => all.iter().for_each(all_plain),
        Value::Object(all) => all.iter().for_each(|(key, value)| {
            assert!(!key.contains(char::is_control), "{key:?}");
            all_plain(value);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The reports of both hosts of a trial that was accepted: `[trial, direction, [[sender's, receiver's], ..]]`. Figures
/// are finite.
pub fn host_reports(data: &[u8]) {
    type Reports = Vec<[HostReport; 2]>;
    let Ok((spec, direction, reports)) = serde_json::from_slice::<(TrialSpec, Direction, Reports)>(data)
    else {
        return;
    };
    // A coordinator asks for trials that agents accept, and has the reports of all transfers.
    let transfers = direction.senders().len() + usize::from(spec.probe.probe == Probe::EchoUnderLoad);
    if spec.check().is_err() || reports.len() != transfers {
        return;
    }
    let path = Path {
        sender: COORDINATOR.into(),
        receiver: AGENT.into(),
        mtu: 1500,
        planned_mtu: true,
        offloads: false,
        rate: None,
        shared: false,
        nat: None,
        opener: None,
        customers: Vec::new(),
    };
    let reports = reports.into_iter().map(|[sender, receiver]| Ends { sender, receiver }).collect();
    let made = figures(&path, &spec, direction, Ok(reports), Default::default(), &validate::Limits::NONE);
    for (metric, value) in &made.values {
        if let stacklab_model::Value::Measured(figure) = value {
            assert!(figure.is_finite(), "{metric} is {figure}");
        }
    }
}

/// The gates of an open agent and of one with a key. The own challenge is always the same, so that a corpus can answer
/// it.
static GATES: LazyLock<[Gate; 2]> = LazyLock::new(|| {
    let key = Key::of("0123456789abcdef012345", "the target").expect("it is long enough");
    [Gate::new(None), Gate::new(Some(key))]
});
/// What the gates challenge with.
const CHALLENGE: &str = "00";

/// Lines of handshakes, of both ends. What is understood reads back; nobody is admitted with more addresses than the
/// connection's and those of tickets, and nobody here has a ticket.
pub fn greeting(data: &[u8]) {
    for written in handshake_lines(data) {
        assert!(handshake_lines(written.as_bytes()).contains(&written), "{written}");
    }
    let here = AddressPair { peer: COORDINATOR.into(), local: AGENT.into() };
    for gate in &*GATES {
        if let Some(addresses) =
            admit_response(gate, [&CHALLENGE.to_owned(), &String::new()], here.clone(), data)
        {
            assert_eq!(addresses, std::slice::from_ref(&here));
        }
    }
}

/// The same of the header of small datagrams, of which some arrived at a time that the bytes behind it say.
fn check_short_header(data: &[u8], token: u32) {
    let Some((message, rest)) = data.split_at_checked(18) else { return };
    let Some(header) = Header::read_front(message, 18, token) else { return };
    let mut arrived = [0; 8];
    arrived.iter_mut().zip(rest).for_each(|(byte, seen)| *byte = *seen);
    // No clock here has run for longer.
    let arrived_ns = u64::from_be_bytes(arrived) >> 1;
    let completed = header.complete_send_time(arrived_ns);
    assert_eq!(completed.sent_ns % (1 << 40), header.sent_ns);
    let mut written = [0xff; 18];
    completed.write(&mut written);
    assert_eq!(Header::read_front(&written, 18, token), Some(header));
    assert_eq!(Header::read_front(&written, 18, !token), None);
    assert_eq!(Header::read_front(&written, 19, token), None);
}

/// A message of a trial: its header reads back as it is written. The rest of the bytes are sequence numbers, of which a
/// window tells first arrivals from further ones.
pub fn message_header(data: &[u8]) {
    if let Some(token) = data.get(..4) {
        let token = u32::from_be_bytes(token.try_into().expect("four bytes"));
        if let Some(header) = Header::read(data, token) {
            let mut written = [0xff; 32];
            header.write(&mut written);
            Header::write_reflection_time(&mut written, Header::reflected_ns(data));
            assert_eq!(Header::read(&written, token), Some(header));
            assert_eq!(Header::read(&written, !token), None);
            assert_eq!(Header::reflected_ns(&written), Header::reflected_ns(data));
        }
        check_short_header(data, token);
    }
    let mut bytes = Bytes(data.get(32..).unwrap_or_default());
    // The smallest window, of many flows.
    let mut window = SequenceWindow::new(10_000);
    let mut seen = HashSet::new();
    for _ in 0..64 {
        if bytes.is_over() {
            break;
        }
        let width = [1, 2, 3, 8][(bytes.number(1) % 4) as usize];
        let sequence = bytes.number(width);
        let is_new = seen.insert(sequence);
        match window.arrive(sequence) {
            Arrival::First | Arrival::Reordered => assert!(is_new, "{sequence} counts twice"),
            Arrival::Duplicate => assert!(!is_new, "{sequence} counts never"),
            Arrival::BeyondWindow => {}
        }
    }
}

/// Messages of a trial in order of arrival, with times: each counts as one of the trial's, once, or as a stray.
pub fn arrivals(data: &[u8]) {
    const BYTES: usize = 48;
    let mut bytes = Bytes(data);
    let choice = bytes.number(1);
    let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, BYTES as u32);
    let probe = ProbeSpec {
        probe: if choice & 1 == 0 { Probe::Stream } else { Probe::Echo },
        pacing: Pacing::Flood,
        length: Length::Packets(10),
        warmup_ns: 0,
        interval_ns: 1_000_000,
        metrics: Vec::new(),
    };
    let mut spec = TrialSpec::new(0x5354_4c42, &cell, probe);
    spec.message_bytes = BYTES as u32;
    spec.flows = 1 + (choice >> 1 & 3) as u32;
    if choice & 8 != 0 {
        spec.schedule = ArmSchedule::TokenPassing(None);
    }
    spec.clock_offset_ns = if choice & 16 != 0 { bytes.number(8) as i64 } else { 0 };
    if spec.check().is_err() {
        return;
    }
    let mut messages = Vec::new();
    let mut now_ns = 1_000_000_000_u64;
    while !bytes.is_over() && messages.len() < 64 {
        // Times are this host's: within a century.
        now_ns += 1_u64 << (bytes.number(1) % 56);
        let kind = bytes.number(1);
        let mut message = if kind & 1 == 0 { spec.token.to_be_bytes().to_vec() } else { Vec::new() };
        // Mostly of the right length.
        message.extend(bytes.some(if kind & 6 == 6 { 9 } else { 28 }));
        if kind & 8 == 0 {
            message.resize(BYTES, 0);
        }
        messages.push((message, now_ns));
    }
    let given = messages.len() as u64;
    let received = count(&spec, messages);
    let counted = received.warmup + received.measured + received.strays;
    assert!(counted + received.duplicates + received.beyond_window <= given, "{received:?}");
    assert!(received.bytes == received.measured * BYTES as u64, "{received:?}");
}
