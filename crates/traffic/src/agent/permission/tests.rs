//! What a coordinator may ask of an agent, and what not.

use super::*;
use crate::fixtures;
use stacklab_model::{ArmSchedule, Family, Transport};

fn ip(text: &str) -> ScopedAddr {
    text.parse().unwrap()
}

fn limited() -> Limits {
    Limits {
        peers: Peers { addresses: vec![ip("10.9.0.2"), ip("2001:db8::2")], networks: Vec::new() },
        own: vec![ip("10.9.0.1"), ip("2001:db8::1")],
        data_ports: DataPorts::default(),
        tuning: false,
        longest: Duration::from_secs(60),
        most_bits_per_second: None,
        idle: Duration::from_secs(60),
    }
}

fn send(to: &str, change: impl FnOnce(&mut TrialSpec)) -> Request {
    let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    change(&mut spec);
    Request::Send(SendArm {
        spec: Box::new(spec),
        from: ip("10.9.0.1"),
        to: format!("{to}:53").parse().unwrap(),
        waiting: None,
    })
}

fn timetable() -> Timetable {
    Timetable {
        arms: 2,
        arm: 0,
        seed: 1,
        starts_ns: sys::now_ns(),
        warmup_slot_ns: 50_000_000,
        slot_ns: 20_000_000,
        slice_ns: 10_000_000,
    }
}

fn refused(limits: Limits, request: &Request) -> Option<String> {
    Permission { limits: Some(limits) }.check(request, 0.0).err()
}

#[test]
fn agent_sends_only_to_its_coordinator_or_as_allowed() {
    assert_eq!(refused(limited(), &send("10.9.0.2", |_| {})), None);
    assert_eq!(refused(limited(), &send("[2001:db8::2]", |_| {})), None);
    assert_eq!(refused(limited(), &send("[::ffff:10.9.0.2]", |_| {})), None);
    for third in ["10.9.0.3", "127.0.0.1", "[::1]", "255.255.255.255", "[2001:db8::3]"] {
        let reason = refused(limited(), &send(third, |_| {})).unwrap();
        assert!(reason.contains("--allow-target"), "{reason}");
    }
    let mut wide = limited();
    wide.peers.networks.push("10.9.0.0/30".parse().unwrap());
    assert_eq!(refused(wide.clone(), &send("10.9.0.3", |_| {})), None);
    assert!(refused(wide, &send("10.9.0.4", |_| {})).is_some());
    let spec = Box::new(fixtures::spec(Family::Ipv4, Transport::Udp));
    let arm = |to: &str| SendArm {
        waiting: None,
        spec: spec.clone(),
        from: ip("10.9.0.1"),
        to: format!("{to}:9").parse().unwrap(),
    };
    let arms = Request::SendInTurns { arms: vec![arm("10.9.0.2"), arm("10.9.0.3")], seed: 1 };
    assert!(refused(limited(), &arms).is_some());
    let in_slots = |to| Request::SendInSlots { arm: arm(to), timetable: timetable() };
    assert_eq!(refused(limited(), &in_slots("10.9.0.2")), None);
    assert!(refused(limited(), &in_slots("10.9.0.3")).unwrap().contains("--allow-target"));
    let listen = |address: &str| Request::Listen { spec: spec.clone(), address: ip(address) };
    assert_eq!(refused(limited(), &listen("2001:db8::1")), None);
    assert!(refused(limited(), &listen("0.0.0.0")).unwrap().contains("only on 10.9.0.1"));
    // Whoever started it on standard input and output may do anything.
    assert_eq!(Permission::default().check(&send("10.9.0.3", |_| {}), 0.0), Ok(()));
}

#[test]
fn link_local_address_is_of_the_coordinators_zone() {
    let own = vec![ip("fe80::1%3"), ip("10.9.0.1")];
    let peers =
        Peers { addresses: vec![ip("fe80::2%3"), ip("10.9.0.2")], networks: vec!["::/0".parse().unwrap()] };
    let limits = Limits { own, peers, ..limited() };
    let permission = Permission { limits: Some(limits) };
    let done = |request| {
        let request = permission.in_own_addresses(request);
        permission.check(&request, 0.0).map(|()| request)
    };
    let spec = Box::new(fixtures::spec(Family::Ipv6, Transport::Udp));
    let listen = |address| Request::Listen { spec: spec.clone(), address: ip(address) };
    assert_eq!(done(listen("fe80::1")), Ok(listen("fe80::1%3")));
    assert_eq!(done(listen("fe80::1%3")), Ok(listen("fe80::1%3")));
    for other in ["fe80::1%4", "fe80::1%eth0", "fe80::9", "fe80::9%3"] {
        assert!(done(listen(other)).unwrap_err().contains("only on fe80::1%3, 10.9.0.1"), "{other}");
    }
    let send = |from, to: &str| {
        Request::Send(SendArm { spec: spec.clone(), from: ip(from), to: to.parse().unwrap(), waiting: None })
    };
    assert_eq!(done(send("fe80::1", "[fe80::2]:9")), Ok(send("fe80::1%3", "[fe80::2]:9")));
    for (from, to) in [
        ("fe80::1", "[fe80::9]:9"),
        ("fe80::1%4", "[fe80::2]:9"),
        ("fe80::9", "[fe80::2]:9"),
        // Only the agent's own address says the zone.
        ("10.9.0.1", "[fe80::2%3]:9"),
        ("2001:db8::1", "[fe80::2]:9"),
    ] {
        let refused = done(send(from, to)).unwrap_err();
        assert!(refused.contains("--allow-target"), "{from} {to}: {refused}");
    }
    let arm = |from| SendArm {
        spec: spec.clone(),
        from: ip(from),
        to: "[fe80::2]:9".parse().unwrap(),
        waiting: None,
    };
    let turns = |from| Request::SendInTurns { arms: vec![arm(from)], seed: 1 };
    assert_eq!(done(turns("fe80::1")), Ok(turns("fe80::1%3")));
    // Whoever started it on standard input and output names zones of this host.
    assert_eq!(Permission::default().in_own_addresses(listen("fe80::1%eth0")), listen("fe80::1%eth0"));
}

/// Limits with a rate of 10 Mbit/s.
fn bounded() -> Limits {
    Limits { most_bits_per_second: Some(10e6), ..limited() }
}

/// A stream of 1250 bytes, 10 kbit, at this rate.
fn send_at_rate(rate: f64) -> Request {
    send("10.9.0.2", |spec| {
        spec.message_bytes = 1250;
        spec.probe.pacing = Pacing::Schedule(rate);
    })
}

/// Two arms of such streams, which take turns.
fn in_turns(rates: [f64; 2]) -> Request {
    let arms = rates.map(|rate| match send_at_rate(rate) {
        Request::Send(arm) => arm,
        other => panic!("{other:?}"),
    });
    Request::SendInTurns { arms: arms.to_vec(), seed: 1 }
}

#[test]
fn a_trial_is_no_longer_than_the_limit() {
    let long = send("10.9.0.2", |spec| spec.probe.length = Length::Time(61_000_000_000));
    assert!(refused(limited(), &long).unwrap().contains("--max-duration"));
    let warm = send("10.9.0.2", |spec| {
        spec.probe.length = Length::Time(60_000_000_000);
        spec.probe.warmup_ns = 1_000_000_000;
    });
    assert!(refused(limited(), &warm).unwrap().contains("--max-duration"));
    let slow = send("10.9.0.2", |spec| {
        spec.probe.length = Length::Packets(100);
        spec.probe.pacing = Pacing::Schedule(1.0);
    });
    assert!(refused(limited(), &slow).is_some());
}

#[test]
fn all_streams_together_keep_to_the_rate() {
    assert_eq!(refused(bounded(), &send_at_rate(1000.0)), None);
    assert!(refused(bounded(), &send_at_rate(1001.0)).unwrap().contains("10 Mbit/s"));
    // All flows of a stream keep one schedule, and arms in turns send one at a time.
    assert_eq!((takes(&send_at_rate(600.0)), takes(&in_turns([400.0, 600.0]))), (6e6, 6e6));
    let beside = |request: &Request| {
        Permission { limits: Some(bounded()) }.check(request, takes(&send_at_rate(600.0))).err()
    };
    assert_eq!(beside(&send_at_rate(400.0)), None);
    assert!(beside(&send_at_rate(401.0)).unwrap().contains("of which 6 are taken by other streams"));
    assert!(beside(&in_turns([400.0, 401.0])).is_some());
}

#[test]
fn a_limited_rate_needs_a_probe_that_has_one() {
    for (probe, pacing, fits) in [
        (Probe::Stream, Pacing::Flood, false),
        (Probe::Stream, Pacing::Lockstep, false),
        (Probe::EchoOpenLoop, Pacing::Lockstep, false),
        (Probe::Connect, Pacing::Schedule(1.0), false),
        (Probe::Echo, Pacing::Lockstep, true),
    ] {
        let request = send("10.9.0.2", |spec| (spec.probe.probe, spec.probe.pacing) = (probe, pacing));
        assert_eq!(refused(bounded(), &request).is_none(), fits, "{probe} {pacing}");
    }
}

#[test]
fn opening_and_ending_flows_keeps_to_the_rate() {
    // What opens and ends flows is sent at the rate, too: 3 markers of each, or too many of them.
    for transport in Transport::ALL.iter().copied() {
        assert_eq!(refused(bounded(), &slow_stream(transport, 100, 1000)), None);
        let reason = refused(bounded(), &slow_stream(transport, 10_000, 60_000)).unwrap();
        assert!(reason.contains("10000 flows of 60000 bytes") && reason.contains("(-P)"), "{reason}");
    }
    assert_eq!(takes(&slow_stream(Transport::Udp, 100, 1000)), 240_000.0);
    assert_eq!(refused(bounded(), &open(100)), None);
    assert!(refused(bounded(), &open(10_000)).unwrap().contains("10 Mbit/s"));
}

#[test]
fn socket_options_need_a_permission() {
    for tuning in [
        Tuning { busy_poll_us: Some(50), ..Tuning::default() },
        Tuning { congestion_control: Some("no_such_module".to_owned()), ..Tuning::default() },
        Tuning { receive_buffer: Some(1 << 30), ..Tuning::default() },
        Tuning { send_buffer: Some((16 << 20) + 1), ..Tuning::default() },
    ] {
        let request = send("10.9.0.2", |spec| spec.tuning = tuning.into());
        assert!(refused(limited(), &request).unwrap().contains("--allow tuning"));
        assert_eq!(refused(Limits { tuning: true, ..limited() }, &request), None);
        // Over standard input and output it is allowed.
        assert_eq!(Permission::default().check(&request, 0.0), Ok(()));
    }
}

#[test]
fn the_number_of_flows_is_always_bounded() {
    let huge = send("10.9.0.2", |spec| spec.flows = u32::MAX);
    assert!(Permission::default().check(&huge, 0.0).unwrap_err().contains("flows"));
}

#[test]
fn a_timetable_ends_and_does_not_sleep_for_ever() {
    let spec = Box::new(fixtures::spec(Family::Ipv4, Transport::Udp));
    let arm = SendArm { spec, from: ip("10.9.0.1"), to: "10.9.0.2:9".parse().unwrap(), waiting: None };
    let good = timetable();
    let check =
        |timetable| Permission::default().check(&Request::SendInSlots { arm: arm.clone(), timetable }, 0.0);
    assert_eq!(check(good), Ok(()));
    for bad in [
        Timetable { starts_ns: u64::MAX, ..good },
        Timetable { slot_ns: u64::MAX, ..good },
        Timetable { slot_ns: 0, ..good },
        Timetable { slice_ns: 30_000_000, ..good },
    ] {
        assert!(check(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn notices_idleness_and_endless_trials() {
    // Hours pass by the given time alone: what the machine does meanwhile takes seconds.
    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let activity = Activity::new();
    let passed = |after, longest, slack, idle| activity.passed(Instant::now() + after, longest, slack, idle);
    assert_eq!(passed(Duration::ZERO, HOUR, Duration::ZERO, HOUR), None);
    activity.begin(3, None, 0.0);
    assert_eq!(passed(2 * HOUR, DAY, Duration::ZERO, HOUR), None);
    assert!(passed(2 * HOUR, HOUR, Duration::ZERO, DAY).unwrap().contains("trial"));
    activity.end(3);
    assert_eq!(passed(Duration::ZERO, HOUR, Duration::ZERO, HOUR), None);
    // One whose length is known lasts no longer than that and the slack, whatever others may.
    activity.begin(4, Some(HOUR), 0.0);
    assert!(passed(2 * HOUR, DAY, Duration::ZERO, HOUR).unwrap().contains("trial"));
    assert_eq!(passed(2 * HOUR, DAY, DAY, HOUR), None);
    activity.end(4);
    assert!(passed(2 * HOUR, DAY, Duration::ZERO, HOUR).unwrap().contains("was idle"));
}

#[test]
fn a_request_ends_idleness() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let activity = Activity::new();
    thread::sleep(Duration::from_millis(2));
    let before = Instant::now();
    assert!(activity.passed(before, DAY, Duration::ZERO, Duration::from_millis(1)).is_some());
    activity.asked();
    assert_eq!(activity.passed(before, DAY, Duration::ZERO, Duration::from_millis(1)), None);
}

#[test]
fn a_trial_by_itself_lasts_as_long_as_its_traffic() {
    let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    (spec.probe.length, spec.probe.warmup_ns) = (Length::Time(2_000_000_000), 500_000_000);
    let listen = |spec: &TrialSpec| Request::Listen {
        spec: Box::new(spec.clone()),
        address: "198.18.0.2".parse().unwrap(),
    };
    assert_eq!(lasts(&listen(&spec)), Some(Duration::from_millis(2500)));
    assert_eq!(lasts(&Request::Facts), None);
    // The other arms are not known here.
    spec.schedule = ArmSchedule::TokenPassing(None);
    assert_eq!(lasts(&listen(&spec)), None);
}

#[test]
fn what_all_requests_send_is_added_while_they_last() {
    let activity = Activity::new();
    activity.begin(1, None, 4e6);
    activity.begin(2, None, 6e6);
    assert_eq!(activity.bits_per_second(), 10e6);
    activity.end(1);
    assert_eq!(activity.bits_per_second(), 6e6);
}

/// A stream of one message in five seconds, in this number of flows.
fn slow_stream(transport: Transport, flows: u32, bytes: u32) -> Request {
    send("10.9.0.2", move |spec| {
        (spec.transport, spec.flows, spec.message_bytes) = (transport, flows, bytes);
        (spec.probe.probe, spec.probe.pacing) = (Probe::Stream, Pacing::Schedule(0.2));
        spec.probe.length = Length::Time(1_000_000_000);
    })
}

fn open(flows: u32) -> Request {
    let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    spec.flows = flows;
    Request::Open { spec: Box::new(spec), address: ip("10.9.0.1"), to: "10.9.0.2:9".parse().unwrap() }
}

fn spec_of(address: &ScopedAddr) -> Box<TrialSpec> {
    Box::new(fixtures::spec(Family::of(address.ip()), Transport::Udp))
}

fn listen(address: &ScopedAddr, of: &ScopedAddr) -> Request {
    Request::Listen { spec: spec_of(of), address: address.clone() }
}

fn wait(address: &ScopedAddr, of: &ScopedAddr) -> Request {
    Request::Wait { spec: spec_of(of), address: address.clone() }
}

fn send_from(from: &ScopedAddr, to: &ScopedAddr, waiting: Option<u64>) -> Request {
    let to = SocketAddr::new(to.ip(), 5202);
    Request::Send(SendArm { spec: spec_of(from), from: from.clone(), to, waiting })
}

#[test]
fn agent_behind_a_translator_uses_its_own_address() {
    // Own address, how the coordinator names it, the coordinator as seen here, and as it names itself.
    for [own, named, seen, itself] in [
        ["10.0.2.2", "fd64::a00:202", "198.18.0.7", "fd01::2"],
        ["2001:db8::1", "192.0.2.1", "2001:db8:64::7", "198.18.0.2"],
    ] {
        let [own, named, seen, itself] = [own, named, seen, itself].map(ip);
        let peers = Peers { addresses: vec![ip("fe80::2%3"), seen.clone()], networks: Vec::new() };
        let limits = Limits { own: vec![ip("fe80::1%3"), own.clone()], peers, ..limited() };
        let permission = Permission { limits: Some(limits) };
        let done = |request| {
            let request = permission.in_own_addresses(request);
            permission.check(&request, 0.0).map(|()| request)
        };
        let unnamed: ScopedAddr = Family::of(named.ip()).unspecified().into();
        assert!(done(listen(&named, &named)).unwrap_err().contains("refused to listen"));
        assert_eq!(done(listen(&unnamed, &named)), Ok(listen(&own, &own)));
        assert_eq!(done(wait(&unnamed, &named)), Ok(wait(&own, &own)));
        // Where the coordinator has opened the flows, and not otherwise.
        assert_eq!(done(send_from(&named, &itself, Some(1))), Ok(send_from(&own, &seen, Some(1))));
        assert!(done(send_from(&named, &itself, None)).unwrap_err().contains("--allow-target"));
    }
}
