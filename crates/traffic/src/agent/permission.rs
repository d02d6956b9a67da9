//! What an agent does for whoever asks. One that a coordinator started itself, on standard input and output, does all: that
//! coordinator may run programs on the host anyway. One that listens does what it was told to allow.

use crate::engine::peers::Peers;
use crate::protocol::message::{Request, SendArm, Timetable};
use crate::sys;
use stacklab_model::{Length, Pacing, Probe, ScopedAddr, TrialSpec, Tuning, print_duration};
use std::net::SocketAddr;
use std::time::Duration;

/// How far ahead of the host's clock a timetable may begin, and the longest slot.
const LONGEST_LEAD_NS: u64 = 60_000_000_000;
const LONGEST_SLOT_NS: u64 = 2 * 3600 * 1_000_000_000;
/// Largest socket buffer that anybody may ask for, bytes.
const LARGEST_BUFFER: u32 = 16 << 20;

/// What an agent may be asked to do.
#[derive(Debug, Clone, Default)]
pub struct Permission {
    /// The limits of an agent that listens; `None`: whatever can be done.
    pub limits: Option<Limits>,
}

/// The limits of an agent that listens.
#[derive(Debug, Clone)]
pub struct Limits {
    /// To whom the agent may send, and from whom it receives: the coordinator's addresses, and networks that the operator allows.
    pub peers: Peers,
    /// The agent's own addresses, on which it may receive: those at which the coordinator reached it, as the kernel says them.
    pub own: Vec<ScopedAddr>,
    /// Whether socket options may be set that need privileges or change the host: buffers beyond the system's limits, busy polling,
    /// any congestion control.
    pub tuning: bool,
    /// Longest trial, with its warm-up.
    pub longest: Duration,
    /// Highest rate of the payload of all streams together that it sends, bits per second; floods are then refused.
    pub most_bits_per_second: Option<f64>,
    /// How long a coordinator may ask nothing.
    pub idle: Duration,
}

impl Permission {
    /// The request with the zones of this agent's own link-local addresses: a coordinator that reached it over TCP does not know them, and
    /// they are those in which it did.
    pub fn in_own_zones(&self, mut request: Request) -> Request {
        let Some(limits) = &self.limits else { return request };
        let complete = |address: &mut ScopedAddr| {
            let is_it = |own: &&ScopedAddr| address.lacks_zone() && own.ip() == address.ip();
            if let Some(own) = limits.own.iter().find(is_it) {
                *address = own.clone();
            }
        };
        match &mut request {
            Request::Listen { address, .. } => complete(address),
            Request::Send { from, .. } => complete(from),
            Request::SendInTurns { arms, .. } => arms.iter_mut().for_each(|arm| complete(&mut arm.from)),
            Request::SendInSlots { arm, .. } => complete(&mut arm.from),
            Request::Hello { .. }
            | Request::Facts
            | Request::NoiseFloor
            | Request::Count { .. }
            | Request::Clock
            | Request::Collect { .. } => {}
        }
        request
    }

    /// Whether a request, in this agent's zones, may be done while others send this many bits of payload per second.
    ///
    /// # Errors
    /// Why not, and what would allow it.
    pub fn check(&self, request: &Request, sending: f64) -> Result<(), String> {
        match request {
            Request::Listen { spec, address } => {
                self.check_trial(spec)?;
                match &self.limits {
                    Some(limits) if !limits.own.contains(address) => {
                        Err(format!("refused to listen on {address}: only on {}", list(&limits.own)))
                    }
                    _ => Ok(()),
                }
            }
            Request::Send { spec, from, to } => self.check_send(spec, from, *to, sending),
            Request::SendInTurns { arms, .. } => arms
                .iter()
                .try_for_each(|SendArm { spec, from, to }| self.check_send(spec, from, *to, sending)),
            Request::SendInSlots { arm: SendArm { spec, from, to }, timetable } => {
                check_timetable(timetable)?;
                self.check_send(spec, from, *to, sending)
            }
            Request::Hello { .. }
            | Request::Facts
            | Request::NoiseFloor
            | Request::Count { .. }
            | Request::Clock
            | Request::Collect { .. } => Ok(()),
        }
    }

    fn check_send(
        &self,
        spec: &TrialSpec,
        from: &ScopedAddr,
        to: SocketAddr,
        sending: f64,
    ) -> Result<(), String> {
        self.check_trial(spec)?;
        let Some(limits) = &self.limits else { return Ok(()) };
        // As the sender takes it: link-local addresses are in the zone of its own one.
        let to = ScopedAddr::new(to.ip(), from.zone());
        if !limits.peers.hold(&to) {
            return Err(format!(
                "refused to send to {to}: only to the coordinator's own address ({}); where the agent was started, --allow-target names others",
                list(&limits.peers.addresses)
            ));
        }
        let Some(most) = limits.most_bits_per_second else { return Ok(()) };
        match (spec.probe.probe, bits_per_second(spec)) {
            // As fast as the coordinator answers, and no faster.
            (Probe::Echo | Probe::EchoLoaded, None) if spec.probe.pacing == Pacing::Lockstep => Ok(()),
            (Probe::Stream | Probe::Paced | Probe::EchoOpen, Some(own)) if sending + own <= most => Ok(()),
            _ => {
                let others = if sending > 0.0 {
                    format!(", of which {} are taken by other streams", sending / 1e6)
                } else {
                    String::new()
                };
                Err(format!(
                    "refused to send faster than {} Mbit/s in all streams together{others}: ask for a rate, as in -b",
                    most / 1e6
                ))
            }
        }
    }

    fn check_trial(&self, spec: &TrialSpec) -> Result<(), String> {
        spec.check()?;
        let Some(limits) = &self.limits else { return Ok(()) };
        // If it is not known, a trial that lasts longer ends the agent's process.
        let lasts_ns = announced_ns(spec).unwrap_or(0);
        let longest = limits.longest;
        if u128::from(lasts_ns) + u128::from(spec.probe.warmup_ns) > longest.as_nanos() {
            let most = print_duration(longest.as_nanos() as u64);
            return Err(format!(
                "refused a trial of more than {most}: where the agent was started, --longest allows more"
            ));
        }
        if limits.tuning { Ok(()) } else { check_tuning(&spec.tuning) }
    }
}

/// Nanoseconds of a trial's measured part; `None` for a count of messages without a rate.
fn announced_ns(spec: &TrialSpec) -> Option<u64> {
    match (spec.probe.length, spec.probe.pacing) {
        (Length::Time(ns), _) => Some(ns),
        (Length::Packets(messages), Pacing::Schedule(per_second)) => {
            Some((messages as f64 / per_second * 1e9) as u64)
        }
        (Length::Packets(_), _) => None,
    }
}

/// Bits of payload per second that all flows of a sender send together; `None` without a schedule.
fn bits_per_second(spec: &TrialSpec) -> Option<f64> {
    match spec.probe.pacing {
        Pacing::Schedule(per_second) => Some(per_second * f64::from(spec.message_bytes) * 8.0),
        _ => None,
    }
}

/// Bits of payload per second that a request sends on a schedule.
pub(super) fn takes(request: &Request) -> f64 {
    let of = |spec: &TrialSpec| bits_per_second(spec).unwrap_or(0.0);
    match request {
        Request::Send { spec, .. } => of(spec),
        // One at a time.
        Request::SendInTurns { arms, .. } => arms.iter().map(|arm| of(&arm.spec)).fold(0.0, f64::max),
        Request::SendInSlots { arm, .. } => of(&arm.spec),
        _ => 0.0,
    }
}

/// Refuses socket options that change more of the host than the socket.
fn check_tuning(tuning: &Tuning) -> Result<(), String> {
    let refused =
        |what: String| Err(format!("refused {what}: where the agent was started, --allow tuning permits it"));
    for (name, asked) in [("send", tuning.send_buffer), ("receive", tuning.receive_buffer)] {
        if let Some(asked) = asked.filter(|asked| *asked > LARGEST_BUFFER) {
            return refused(format!("a {name} buffer of {asked} bytes, more than {LARGEST_BUFFER}"));
        }
    }
    if tuning.busy_poll_us.is_some_and(|us| us > 0) {
        return refused("busy polling".to_owned());
    }
    match &tuning.congestion_control {
        Some(name) if !sys::has_congestion_control(name) => refused(format!(
            "the congestion control {name:?}, for which the kernel would have to load a module"
        )),
        _ => Ok(()),
    }
}

/// A timetable that keeps no thread asleep without end.
fn check_timetable(timetable: &Timetable) -> Result<(), String> {
    let Timetable { starts_ns, warmup_slot_ns, slot_ns, slice_ns, .. } = *timetable;
    let lead_ns = starts_ns.saturating_sub(sys::now_ns());
    let slots = [warmup_slot_ns, slot_ns, slice_ns].iter().all(|ns| (1..=LONGEST_SLOT_NS).contains(ns));
    if lead_ns > LONGEST_LEAD_NS || !slots || slice_ns > slot_ns {
        return Err(format!("refused a timetable that begins in {lead_ns} ns with slots of {slot_ns} ns"));
    }
    Ok(())
}

fn list(addresses: &[ScopedAddr]) -> String {
    addresses.iter().map(ScopedAddr::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures;
    use stacklab_model::{Family, Transport};

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
        Request::Send { spec: Box::new(spec), from: ip("10.9.0.1"), to: format!("{to}:53").parse().unwrap() }
    }

    fn refused(limits: Limits, request: &Request) -> Option<String> {
        Permission { limits: Some(limits) }.check(request, 0.0).err()
    }

    #[test]
    fn an_agent_sends_only_to_its_coordinator_or_where_it_may() {
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
            spec: spec.clone(),
            from: ip("10.9.0.1"),
            to: format!("{to}:9").parse().unwrap(),
        };
        let arms = Request::SendInTurns { arms: vec![arm("10.9.0.2"), arm("10.9.0.3")], seed: 1 };
        assert!(refused(limited(), &arms).is_some());
        let listen = |address: &str| Request::Listen { spec: spec.clone(), address: ip(address) };
        assert_eq!(refused(limited(), &listen("2001:db8::1")), None);
        assert!(refused(limited(), &listen("0.0.0.0")).unwrap().contains("only on 10.9.0.1"));
        // Whoever started it on standard input and output may do anything.
        assert_eq!(Permission::default().check(&send("10.9.0.3", |_| {}), 0.0), Ok(()));
    }

    #[test]
    fn a_link_local_address_is_one_of_the_zone_in_which_the_coordinator_came() {
        let own = vec![ip("fe80::1%3"), ip("10.9.0.1")];
        let peers = Peers {
            addresses: vec![ip("fe80::2%3"), ip("10.9.0.2")],
            networks: vec!["::/0".parse().unwrap()],
        };
        let limits = Limits { own, peers, ..limited() };
        let permission = Permission { limits: Some(limits) };
        let done = |request| {
            let request = permission.in_own_zones(request);
            permission.check(&request, 0.0).map(|()| request)
        };
        let spec = Box::new(fixtures::spec(Family::Ipv6, Transport::Udp));
        let listen = |address| Request::Listen { spec: spec.clone(), address: ip(address) };
        assert_eq!(done(listen("fe80::1")), Ok(listen("fe80::1%3")));
        assert_eq!(done(listen("fe80::1%3")), Ok(listen("fe80::1%3")));
        for other in ["fe80::1%4", "fe80::1%eth0", "fe80::9", "fe80::9%3"] {
            assert!(done(listen(other)).unwrap_err().contains("only on fe80::1%3, 10.9.0.1"), "{other}");
        }
        let send =
            |from, to: &str| Request::Send { spec: spec.clone(), from: ip(from), to: to.parse().unwrap() };
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
        let arm = |from| SendArm { spec: spec.clone(), from: ip(from), to: "[fe80::2]:9".parse().unwrap() };
        let turns = |from| Request::SendInTurns { arms: vec![arm(from)], seed: 1 };
        assert_eq!(done(turns("fe80::1")), Ok(turns("fe80::1%3")));
        // Whoever started it on standard input and output names zones of this host.
        assert_eq!(Permission::default().in_own_zones(listen("fe80::1%eth0")), listen("fe80::1%eth0"));
    }

    #[test]
    fn length_rate_and_options_have_limits() {
        let long = send("10.9.0.2", |spec| spec.probe.length = Length::Time(61_000_000_000));
        assert!(refused(limited(), &long).unwrap().contains("--longest"));
        let slow = send("10.9.0.2", |spec| {
            spec.probe.length = Length::Packets(100);
            spec.probe.pacing = Pacing::Schedule(1.0);
        });
        assert!(refused(limited(), &slow).is_some());
        let paced = |rate| {
            send("10.9.0.2", move |spec| {
                (spec.message_bytes, spec.probe.pacing) = (1250, Pacing::Schedule(rate));
            })
        };
        let bounded = Limits { most_bits_per_second: Some(10e6), ..limited() };
        assert_eq!(refused(bounded.clone(), &paced(1000.0)), None);
        assert!(refused(bounded.clone(), &paced(1001.0)).unwrap().contains("10 Mbit/s"));
        // All flows of a stream keep one schedule, and arms in turns send one at a time.
        let in_turns = |rates: [f64; 2]| {
            let arms = rates.map(|rate| match paced(rate) {
                Request::Send { spec, from, to } => SendArm { spec, from, to },
                other => panic!("{other:?}"),
            });
            Request::SendInTurns { arms: arms.to_vec(), seed: 1 }
        };
        assert_eq!((takes(&paced(600.0)), takes(&in_turns([400.0, 600.0]))), (6e6, 6e6));
        let beside = |request: &Request| {
            Permission { limits: Some(bounded.clone()) }.check(request, takes(&paced(600.0))).err()
        };
        assert_eq!(beside(&paced(400.0)), None);
        assert!(beside(&paced(401.0)).unwrap().contains("of which 6 are taken by other streams"));
        assert!(beside(&in_turns([400.0, 401.0])).is_some());
        for (probe, pacing, fits) in [
            (Probe::Stream, Pacing::Flood, false),
            (Probe::Stream, Pacing::Lockstep, false),
            (Probe::EchoOpen, Pacing::Lockstep, false),
            (Probe::Connect, Pacing::Schedule(1.0), false),
            (Probe::Echo, Pacing::Lockstep, true),
        ] {
            let request = send("10.9.0.2", |spec| (spec.probe.probe, spec.probe.pacing) = (probe, pacing));
            assert_eq!(refused(bounded.clone(), &request).is_none(), fits, "{probe} {pacing}");
        }
        let tuned = |tuning: Tuning| send("10.9.0.2", move |spec| spec.tuning = tuning);
        for tuning in [
            Tuning { busy_poll_us: Some(50), ..Tuning::default() },
            Tuning { congestion_control: Some("no_such_module".to_owned()), ..Tuning::default() },
            Tuning { receive_buffer: Some(1 << 30), ..Tuning::default() },
        ] {
            let request = tuned(tuning);
            assert!(refused(limited(), &request).unwrap().contains("--allow tuning"));
            assert_eq!(refused(Limits { tuning: true, ..limited() }, &request), None);
        }
        // Everybody's trials are bounded.
        let huge = send("10.9.0.2", |spec| spec.flows = u32::MAX);
        assert!(Permission::default().check(&huge, 0.0).unwrap_err().contains("flows"));
    }

    #[test]
    fn a_timetable_ends_and_does_not_sleep_for_ever() {
        let spec = Box::new(fixtures::spec(Family::Ipv4, Transport::Udp));
        let arm = SendArm { spec, from: ip("10.9.0.1"), to: "10.9.0.2:9".parse().unwrap() };
        let good = Timetable {
            arms: 2,
            arm: 0,
            seed: 1,
            starts_ns: sys::now_ns(),
            warmup_slot_ns: 50_000_000,
            slot_ns: 20_000_000,
            slice_ns: 10_000_000,
        };
        let check = |timetable| {
            Permission::default().check(&Request::SendInSlots { arm: arm.clone(), timetable }, 0.0)
        };
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
}
