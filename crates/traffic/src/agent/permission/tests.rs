//! What a coordinator may ask of an agent, and what not.

use super::*;
use crate::fixtures;
use crate::protocol::PortsToOpen;
use stacklab_model::{ArmSchedule, Family, SenderPriority, Transport};

fn ip(text: &str) -> ScopedAddr {
    text.parse().unwrap()
}

fn limited() -> Limits {
    Limits {
        peers: Peers { addresses: vec![ip("10.9.0.2"), ip("2001:db8::2")], networks: Vec::new() },
        own: vec![ip("10.9.0.1"), ip("2001:db8::1")],
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

fn make_arm(family: Family, from: &str, to: &str) -> SendArm {
    let spec = Box::new(fixtures::spec(family, Transport::Udp));
    SendArm { spec, from: ip(from), to: to.parse().unwrap(), waiting: None }
}

fn send_in_slots(arm: SendArm) -> Request {
    Request::SendInSlots { arm, timetable: timetable() }
}

/// The request as the agent does it, in its own addresses and zones.
fn admit(permission: &Permission, request: Request) -> Result<Request, String> {
    let request = permission.in_own_addresses(request);
    permission.check(&request, 0.0).map(|()| request)
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

fn explain_refusal(limits: Limits, request: &Request) -> Option<String> {
    Permission { limits: Some(limits), ..Permission::default() }.check(request, 0.0).err()
}

#[test]
fn agent_sends_only_to_its_coordinator_or_as_allowed() {
    assert_eq!(explain_refusal(limited(), &send("10.9.0.2", |_| {})), None);
    assert_eq!(explain_refusal(limited(), &send("[2001:db8::2]", |_| {})), None);
    assert_eq!(explain_refusal(limited(), &send("[::ffff:10.9.0.2]", |_| {})), None);
    for third in ["10.9.0.3", "127.0.0.1", "[::1]", "255.255.255.255", "[2001:db8::3]"] {
        let reason = explain_refusal(limited(), &send(third, |_| {})).unwrap();
        assert!(reason.contains("--allow-target"), "{reason}");
    }
    let mut wide = limited();
    wide.peers.networks.push("10.9.0.0/30".parse().unwrap());
    assert_eq!(explain_refusal(wide.clone(), &send("10.9.0.3", |_| {})), None);
    assert!(explain_refusal(wide, &send("10.9.0.4", |_| {})).is_some());
    let [good, bad] = ["10.9.0.2:9", "10.9.0.3:9"].map(|to| make_arm(Family::Ipv4, "10.9.0.1", to));
    let arms = Request::SendInTurns { arms: vec![good.clone(), bad.clone()], seed: 1 };
    assert!(explain_refusal(limited(), &arms).is_some());
    assert_eq!(explain_refusal(limited(), &send_in_slots(good)), None);
    assert!(explain_refusal(limited(), &send_in_slots(bad)).unwrap().contains("--allow-target"));
    let own = ip("10.9.0.1");
    assert_eq!(explain_refusal(limited(), &listen(&ip("2001:db8::1"), &own)), None);
    assert!(explain_refusal(limited(), &listen(&ip("0.0.0.0"), &own)).unwrap().contains("only on 10.9.0.1"));
    // Whoever started it on standard input and output may do anything.
    assert_eq!(Permission::default().check(&send("10.9.0.3", |_| {}), 0.0), Ok(()));
}

#[test]
fn agent_spreads_no_stream_over_other_addresses() {
    let spread = send("10.9.0.2", |spec| spec.destinations = 1000);
    assert!(explain_refusal(limited(), &spread).unwrap().contains("1000 addresses"));
    assert_eq!(Permission::default().check(&spread, 0.0), Ok(()));
}

#[test]
fn agent_makes_no_connections_for_others() {
    let asked = PortsToOpen { address: ip("10.9.0.1"), count: 100, messages: 100, message_bytes: 64 };
    let request = Request::OpenPorts(asked);
    assert!(explain_refusal(limited(), &request).unwrap().contains("refused to open many sockets"));
    assert_eq!(Permission::default().check(&request, 0.0), Ok(()));
}

#[test]
fn agent_takes_no_realtime_priority_for_others() {
    let first = send("10.9.0.2", |spec| spec.sender_priority = SenderPriority::Realtime);
    assert!(explain_refusal(limited(), &first).unwrap().contains("realtime priority"));
    assert_eq!(Permission::default().check(&first, 0.0), Ok(()));
}

#[test]
fn link_local_address_is_of_the_coordinators_zone() {
    let own = vec![ip("fe80::1%3"), ip("10.9.0.1")];
    let peers =
        Peers { addresses: vec![ip("fe80::2%3"), ip("10.9.0.2")], networks: vec!["::/0".parse().unwrap()] };
    let limits = Limits { own, peers, ..limited() };
    let permission = Permission { limits: Some(limits), ..Permission::default() };
    let whole = listen_at("fe80::1%3");
    assert_eq!(admit(&permission, listen_at("fe80::1")), Ok(whole.clone()));
    assert_eq!(admit(&permission, whole.clone()), Ok(whole));
    for other in ["fe80::1%4", "fe80::1%eth0", "fe80::9", "fe80::9%3"] {
        let refused = admit(&permission, listen_at(other)).unwrap_err();
        assert!(refused.contains("only on fe80::1%3, 10.9.0.1"), "{other}");
    }
    let arm = make_arm(Family::Ipv6, "fe80::1", "[fe80::2]:9");
    let whole = make_arm(Family::Ipv6, "fe80::1%3", "[fe80::2]:9");
    assert_eq!(admit(&permission, Request::Send(arm.clone())), Ok(Request::Send(whole.clone())));
    for (from, to) in [
        ("fe80::1", "[fe80::9]:9"),
        ("fe80::1%4", "[fe80::2]:9"),
        ("fe80::9", "[fe80::2]:9"),
        // Only the agent's own address says the zone.
        ("10.9.0.1", "[fe80::2%3]:9"),
        ("2001:db8::1", "[fe80::2]:9"),
    ] {
        let request = Request::Send(make_arm(Family::Ipv6, from, to));
        let refused = admit(&permission, request).unwrap_err();
        assert!(refused.contains("--allow-target"), "{from} {to}: {refused}");
    }
    let turns = Request::SendInTurns { arms: vec![arm], seed: 1 };
    let whole = Request::SendInTurns { arms: vec![whole], seed: 1 };
    assert_eq!(admit(&permission, turns), Ok(whole));
    // Whoever started it on standard input and output names zones of this host.
    let named = listen_at("fe80::1%eth0");
    assert_eq!(Permission::default().in_own_addresses(named.clone()), named);
}

/// A request to listen on a link-local address.
fn listen_at(address: &str) -> Request {
    let address = ip(address);
    listen(&address, &address)
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
    assert!(explain_refusal(limited(), &long).unwrap().contains("--max-duration"));
    let warm = send("10.9.0.2", |spec| {
        spec.probe.length = Length::Time(60_000_000_000);
        spec.probe.warmup_ns = 1_000_000_000;
    });
    assert!(explain_refusal(limited(), &warm).unwrap().contains("--max-duration"));
    let slow = send("10.9.0.2", |spec| {
        spec.probe.length = Length::Packets(100);
        spec.probe.pacing = Pacing::Schedule(1.0);
    });
    assert!(explain_refusal(limited(), &slow).is_some());
}

#[test]
fn all_streams_together_keep_to_the_rate() {
    assert_eq!(explain_refusal(bounded(), &send_at_rate(1000.0)), None);
    assert!(explain_refusal(bounded(), &send_at_rate(1001.0)).unwrap().contains("10 Mbit/s"));
    // All flows of a stream keep one schedule, and arms in turns send one at a time.
    assert_eq!((takes(&send_at_rate(600.0)), takes(&in_turns([400.0, 600.0]))), (6e6, 6e6));
    assert_eq!(refuse_beside_others(&send_at_rate(400.0)), None);
    let reason = refuse_beside_others(&send_at_rate(401.0)).unwrap();
    assert!(reason.contains("of which 6 are taken by other streams"));
    assert!(refuse_beside_others(&in_turns([400.0, 401.0])).is_some());
}

fn refuse_beside_others(request: &Request) -> Option<String> {
    let permission = Permission { limits: Some(bounded()), ..Permission::default() };
    permission.check(request, takes(&send_at_rate(600.0))).err()
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
        assert_eq!(explain_refusal(bounded(), &request).is_none(), fits, "{probe} {pacing}");
    }
}

#[test]
fn opening_and_ending_flows_keeps_to_the_rate() {
    // What opens and ends flows is sent at the rate, too: 3 markers of each, or too many of them.
    for transport in Transport::ALL.iter().copied() {
        assert_eq!(explain_refusal(bounded(), &slow_stream(transport, 100, 1000)), None);
        let reason = explain_refusal(bounded(), &slow_stream(transport, 10_000, 60_000)).unwrap();
        assert!(reason.contains("10000 flows of 60000 bytes") && reason.contains("(-P)"), "{reason}");
    }
    assert_eq!(takes(&slow_stream(Transport::Udp, 100, 1000)), 240_000.0);
    assert_eq!(explain_refusal(bounded(), &open(100)), None);
    assert!(explain_refusal(bounded(), &open(10_000)).unwrap().contains("10 Mbit/s"));
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
        assert!(explain_refusal(limited(), &request).unwrap().contains("--allow tuning"));
        assert_eq!(explain_refusal(Limits { tuning: true, ..limited() }, &request), None);
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
    let arm = make_arm(Family::Ipv4, "10.9.0.1", "10.9.0.2:9");
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
    let passed = |after, longest, slack, idle| {
        activity.find_passed_limit(Instant::now() + after, longest, slack, idle)
    };
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
    assert!(activity.find_passed_limit(before, DAY, Duration::ZERO, Duration::from_millis(1)).is_some());
    activity.note_request();
    assert_eq!(activity.find_passed_limit(before, DAY, Duration::ZERO, Duration::from_millis(1)), None);
}

#[test]
fn a_trial_by_itself_lasts_as_long_as_its_traffic() {
    let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    (spec.probe.length, spec.probe.warmup_ns) = (Length::Time(2_000_000_000), 500_000_000);
    assert_eq!(lasts(&listen_for(&spec)), Some(Duration::from_millis(2500)));
    assert_eq!(lasts(&Request::Facts), None);
    // The other arms are not known here.
    spec.schedule = ArmSchedule::TokenPassing(None);
    assert_eq!(lasts(&listen_for(&spec)), None);
}

fn listen_for(spec: &TrialSpec) -> Request {
    Request::Listen { spec: Box::new(spec.clone()), address: ip("198.18.0.2") }
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
        let permission = Permission { limits: Some(limits), ..Permission::default() };
        let unnamed: ScopedAddr = Family::of(named.ip()).unspecified_address().into();
        let refused = admit(&permission, listen(&named, &named)).unwrap_err();
        assert!(refused.contains("refused to listen"));
        assert_eq!(admit(&permission, listen(&unnamed, &named)), Ok(listen(&own, &own)));
        assert_eq!(admit(&permission, wait(&unnamed, &named)), Ok(wait(&own, &own)));
        // Where the coordinator has opened the flows, and not otherwise.
        let opened = send_from(&named, &itself, Some(1));
        assert_eq!(admit(&permission, opened), Ok(send_from(&own, &seen, Some(1))));
        let refused = admit(&permission, send_from(&named, &itself, None)).unwrap_err();
        assert!(refused.contains("--allow-target"));
    }
}
