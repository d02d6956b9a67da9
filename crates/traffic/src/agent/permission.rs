//! Bounds on the requests of an untrusted coordinator. An agent that listens does what its operator allows, and is held
//! by nobody for ever. One that a coordinator started itself, on standard input and output, has no bounds: that
//! coordinator may run programs on the host anyway.

use crate::agent::lock;
use crate::engine::allowance::{MAX_OVERHEAD, overhead_bytes};
use crate::engine::opening::opening_bits_per_second;
use crate::engine::peers::{DataPorts, Peers};
use crate::protocol::message::{Request, SendArm, Timetable};
use crate::sys;
use crate::timing::{SLACK, longest};
use stacklab_model::{
    Family, Length, Pacing, Probe, ScopedAddr, SenderPriority, TrialSpec, Tuning, count, print_duration,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How far ahead of the host's clock a timetable may begin, and the longest slot.
const MAX_LEAD_NS: u64 = 60_000_000_000;
const MAX_SLOT_NS: u64 = 2 * 3600 * 1_000_000_000;
/// Largest socket buffer that anybody may ask for, bytes.
const MAX_BUFFER: u32 = 16 << 20;

/// What an agent may be asked to do.
#[derive(Debug, Clone, Default)]
pub struct Permission {
    /// The limits of an agent that listens; `None`: whatever can be done.
    pub limits: Option<Limits>,
    /// The ports at which it receives.
    pub data_ports: DataPorts,
}

/// The limits of an agent that listens.
#[derive(Debug, Clone)]
pub struct Limits {
    /// To whom the agent may send, and from whom it receives: the coordinator's addresses, and networks that the
    /// operator allows.
    pub peers: Peers,
    /// The agent's own addresses, on which it may receive: those at which the coordinator reached it, as the kernel
    /// says them.
    pub own: Vec<ScopedAddr>,
    /// Whether socket options may be set that need privileges or change the host: buffers beyond the system's limits,
    /// busy polling, any congestion control.
    pub tuning: bool,
    /// Longest trial, with its warm-up.
    pub longest: Duration,
    /// Highest rate of the payload of all streams together that it sends, bits per second; floods are then refused.
    pub most_bits_per_second: Option<f64>,
    /// How long a coordinator may ask nothing.
    pub idle: Duration,
}

impl Limits {
    fn complete_zone(&self, address: &mut ScopedAddr) {
        if address.lacks_zone()
            && let Some(own) = self.own.iter().find(|own| own.ip() == address.ip())
        {
            *address = own.clone();
        }
    }

    /// The own address at which a coordinator that uses this one arrives: of the same family, or of the other one where
    /// none is of it, as behind NAT64.
    fn own_like(&self, address: IpAddr) -> Option<&ScopedAddr> {
        let mut own = self.own.iter().filter(|own| !own.is_link_local());
        own.clone().find(|own| own.ip().is_ipv4() == address.is_ipv4()).or_else(|| own.next())
    }

    /// Of a coordinator behind address translation, this host sees another address, maybe one of the other family.
    fn translate(&self, SendArm { spec, from, to, .. }: &mut SendArm) {
        if let Some(own) = self.own_like(from.ip()).filter(|_| !from.is_link_local()) {
            (*from, spec.family) = (own.clone(), Family::of(own.ip()));
        }
        let is_ipv4 = from.ip().is_ipv4();
        let mut peers = self.peers.addresses.iter().filter(|peer| !peer.is_link_local());
        if !self.peers.hold(&to.ip().into())
            && let Some(peer) = peers.find(|peer| peer.ip().is_ipv4() == is_ipv4)
        {
            to.set_ip(peer.ip());
        }
    }
}

impl Permission {
    /// Highest rate of all that the agent sends, bits of payload per second.
    pub(super) fn most_bits_per_second(&self) -> Option<f64> {
        self.limits.as_ref()?.most_bits_per_second
    }

    /// Completes the zones of this agent's link-local addresses, which a coordinator that reached it over TCP does not
    /// know, and puts this agent's addresses in the place of those that a translator shows the coordinator.
    pub fn in_own_addresses(&self, mut request: Request) -> Request {
        let Some(limits) = &self.limits else { return request };
        match &mut request {
            Request::Listen { spec, address } | Request::Wait { spec, address } => {
                match limits.own_like(address.ip()).filter(|_| address.ip().is_unspecified()) {
                    Some(own) => (*address, spec.family) = (own.clone(), Family::of(own.ip())),
                    None => limits.complete_zone(address),
                }
            }
            Request::Open { address, .. } => limits.complete_zone(address),
            _ => {}
        }
        for arm in request.arms_mut() {
            limits.complete_zone(&mut arm.from);
            if arm.waiting.is_some() {
                limits.translate(arm);
            }
        }
        request
    }

    /// Whether a request, in this agent's zones, may be done while others send this many bits of payload per second.
    pub fn check(&self, request: &Request, sending: f64) -> Result<(), String> {
        match request {
            Request::Listen { spec, address } | Request::Wait { spec, address } => {
                self.check_trial(spec)?;
                self.check_own(address)
            }
            Request::Open { spec, address, to } => {
                let limits = self.check_target(spec, address, *to)?;
                check_rate(limits, takes(request), sending)?;
                self.check_own(address)
            }
            Request::HoldSockets { .. } if self.limits.is_some() => {
                Err("refused to hold sockets for a coordinator that did not start this agent".to_owned())
            }
            Request::OpenPorts(_) if self.limits.is_some() => {
                Err("refused to open many sockets for a coordinator that did not start this agent".to_owned())
            }
            Request::SendInSlots { timetable, .. } => check_timetable(timetable),
            _ => Ok(()),
        }?;
        request.arms().iter().try_for_each(|arm| self.check_send(arm, sending))
    }

    fn check_own(&self, address: &ScopedAddr) -> Result<(), String> {
        match &self.limits {
            Some(limits) if !limits.own.contains(address) => {
                Err(format!("refused to listen on {address}: only on {}", list(&limits.own)))
            }
            _ => Ok(()),
        }
    }

    fn check_target(
        &self,
        spec: &TrialSpec,
        from: &ScopedAddr,
        to: SocketAddr,
    ) -> Result<Option<&Limits>, String> {
        self.check_trial(spec)?;
        let Some(limits) = &self.limits else { return Ok(None) };
        // As the sender takes it: link-local addresses are in the sender's zone.
        let to = ScopedAddr::new(to.ip(), from.zone());
        if !limits.peers.hold(&to) {
            return Err(format!(
                "refused to send to {to}: the agent sends only to the coordinator's address ({}), or to networks of its --allow-target",
                list(&limits.peers.addresses)
            ));
        }
        Ok(Some(limits))
    }

    fn check_send(&self, arm: &SendArm, sending: f64) -> Result<(), String> {
        let SendArm { spec, from, to, .. } = arm;
        let Some(limits) = self.check_target(spec, from, *to)? else { return Ok(()) };
        let Some(most) = limits.most_bits_per_second else { return Ok(()) };
        let overhead_s = overhead_bytes(spec) as f64 * 8.0 / most;
        if overhead_s > MAX_OVERHEAD.as_secs_f64() {
            let TrialSpec { flows, message_bytes, .. } = **spec;
            return Err(format!(
                "refused {} of {message_bytes} bytes: the messages that open and end them take {overhead_s:.0} s at the {} Mbit/s of the agent's --max-rate, and at most {} s are allowed: use fewer flows (-P) or shorter messages (-l)",
                count(flows, "flow"),
                most / 1e6,
                MAX_OVERHEAD.as_secs()
            ));
        }
        match (spec.probe.probe, spec.probe.pacing) {
            // The allowance slows round trips one after another to what is left of the rate.
            (Probe::Echo | Probe::EchoUnderLoad, Pacing::Lockstep)
            | (
                Probe::Stream | Probe::Paced | Probe::EchoOpenLoop,
                Pacing::Schedule(_) | Pacing::Shifted(_) | Pacing::Stepped(_),
            ) => check_rate(Some(limits), takes_of(spec), sending),
            _ => Err(too_fast(most, sending)),
        }
    }

    fn check_trial(&self, spec: &TrialSpec) -> Result<(), String> {
        spec.check()?;
        let Some(limits) = &self.limits else { return Ok(()) };
        if spec.destinations > 1 {
            return Err(format!(
                "refused a stream to {} addresses: this agent sends to one, and so to none that is not asked for",
                spec.destinations
            ));
        }
        if spec.sender_priority != SenderPriority::Normal {
            return Err("refused a realtime priority: this machine has other work than this trial".to_owned());
        }
        // If it is not known, a trial that lasts longer ends the agent's process.
        let lasts_ns = announced_ns(spec).unwrap_or(0);
        let longest = limits.longest;
        if u128::from(lasts_ns) + u128::from(spec.probe.warmup_ns) > longest.as_nanos() {
            let most = print_duration(longest.as_nanos() as u64);
            return Err(format!(
                "refused a trial of more than {most}, the limit of the agent's --max-duration"
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
    let per_second = match spec.probe.pacing {
        Pacing::Schedule(per_second) | Pacing::Shifted(per_second) => per_second,
        Pacing::Stepped(step) => step.first.max(step.second),
        _ => return None,
    };
    Some(per_second * f64::from(spec.message_bytes) * 8.0)
}

/// Bits of payload per second that a request takes while it lasts.
pub(super) fn takes(request: &Request) -> f64 {
    match request {
        Request::Open { spec, .. } => opening_bits_per_second(spec),
        // Of several arms, one sends at a time.
        _ => request.arms().iter().map(|arm| takes_of(&arm.spec)).fold(0.0, f64::max),
    }
}

/// What a sender takes: its schedule, or what opens and ends its flows if that is more.
fn takes_of(spec: &TrialSpec) -> f64 {
    let overhead = overhead_bytes(spec) as f64 * 8.0 / MAX_OVERHEAD.as_secs_f64();
    bits_per_second(spec).unwrap_or(0.0).max(overhead)
}

/// Whether a rate fits beside what others send.
fn check_rate(limits: Option<&Limits>, takes: f64, sending: f64) -> Result<(), String> {
    match limits.and_then(|limits| limits.most_bits_per_second) {
        Some(most) if sending + takes <= most => Ok(()),
        Some(most) => Err(too_fast(most, sending)),
        None => Ok(()),
    }
}

fn too_fast(most: f64, sending: f64) -> String {
    let others = if sending > 0.0 {
        format!(", of which {} are taken by other streams", sending / 1e6)
    } else {
        String::new()
    };
    format!(
        "refused to send faster than {} Mbit/s in all streams together{others}: set a rate with -b, or use fewer flows (-P)",
        most / 1e6
    )
}

/// Refuses socket options that change more of the host than the socket.
fn check_tuning(tuning: &Tuning) -> Result<(), String> {
    for (name, asked) in [("send", tuning.send_buffer), ("receive", tuning.receive_buffer)] {
        if let Some(asked) = asked.filter(|asked| *asked > MAX_BUFFER) {
            return refuse(format!("a {name} buffer of {asked} bytes, more than {MAX_BUFFER}"));
        }
    }
    if tuning.busy_poll_us.is_some_and(|us| us > 0) {
        return refuse("busy polling".to_owned());
    }
    match &tuning.congestion_control {
        Some(name) if !sys::has_congestion_control(name) => refuse(format!(
            "the congestion control {name:?}, for which the kernel would have to load a module"
        )),
        _ => Ok(()),
    }
}

fn refuse(what: String) -> Result<(), String> {
    Err(format!("refused {what}: the agent was started without --allow tuning"))
}

/// A timetable that keeps no thread asleep without end.
fn check_timetable(timetable: &Timetable) -> Result<(), String> {
    let Timetable { starts_ns, warmup_slot_ns, slot_ns, slice_ns, .. } = *timetable;
    let lead_ns = starts_ns.saturating_sub(sys::now_ns());
    let slots = [warmup_slot_ns, slot_ns, slice_ns].iter().all(|ns| (1..=MAX_SLOT_NS).contains(ns));
    if lead_ns > MAX_LEAD_NS || !slots || slice_ns > slot_ns {
        return Err(format!("refused a timetable that begins in {lead_ns} ns with slots of {slot_ns} ns"));
    }
    Ok(())
}

fn list(addresses: &[ScopedAddr]) -> String {
    addresses.iter().map(ScopedAddr::to_string).collect::<Vec<_>>().join(", ")
}

const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<WatchState>>);

#[derive(Debug)]
struct WatchState {
    /// When a request last came or was answered.
    last: Instant,
    /// Each request that is under way, and each receiver that has not been collected.
    under_way: BTreeMap<u64, Lasting>,
}

#[derive(Debug, Clone, Copy)]
struct Lasting {
    began: Instant,
    /// How long it lasts, if that is known.
    lasts: Option<Duration>,
    bits_per_second: f64,
}

impl Lasting {
    fn is_over(&self, now: Instant, longest: Duration, slack: Duration) -> bool {
        let most = self.lasts.map_or(longest, |lasts| lasts.min(longest));
        now.saturating_duration_since(self.began) > most.saturating_add(slack)
    }
}

impl Activity {
    pub(super) fn new() -> Self {
        Activity(Arc::new(Mutex::new(WatchState { last: Instant::now(), under_way: BTreeMap::new() })))
    }

    pub(super) fn note_request(&self) {
        lock(&self.0).last = Instant::now();
    }

    pub(super) fn begin(&self, id: u64, lasts: Option<Duration>, bits_per_second: f64) {
        let lasting = Lasting { began: Instant::now(), lasts, bits_per_second };
        lock(&self.0).under_way.insert(id, lasting);
    }

    pub(super) fn bits_per_second(&self) -> f64 {
        lock(&self.0).under_way.values().map(|lasting| lasting.bits_per_second).sum()
    }

    pub(super) fn end(&self, id: u64) {
        let mut state = lock(&self.0);
        state.last = Instant::now();
        state.under_way.remove(&id);
    }

    /// Calls `end` with the reason once a limit has passed.
    pub(super) fn watch(&self, limits: &Limits, end: impl FnOnce(&str) + Send + 'static) {
        let state = Arc::downgrade(&self.0);
        let longest = limits.longest;
        let idle = limits.idle;
        thread::spawn(move || {
            loop {
                thread::sleep(POLL_INTERVAL);
                // The coordinator has gone, and nothing is under way.
                let Some(state) = state.upgrade() else { return };
                if let Some(reason) = Activity(state).find_passed_limit(Instant::now(), longest, SLACK, idle)
                {
                    return end(reason);
                }
            }
        });
    }

    /// The limit that has passed at a time.
    fn find_passed_limit(
        &self,
        now: Instant,
        longest: Duration,
        slack: Duration,
        idle: Duration,
    ) -> Option<&'static str> {
        let state = lock(&self.0);
        if state.under_way.values().any(|lasting| lasting.is_over(now, longest, slack)) {
            return Some("a trial lasted longer than it should, or than trials may");
        }
        (state.under_way.is_empty() && now.saturating_duration_since(state.last) > idle)
            .then_some("the coordinator was idle for too long")
    }
}

/// How long a request lasts, if it says so: a frozen coordinator holds the agent no longer than that.
pub(super) fn lasts(request: &Request) -> Option<Duration> {
    let spec = match request {
        Request::Listen { spec, .. } | Request::Wait { spec, .. } | Request::Open { spec, .. } => spec,
        Request::Send(arm) => &arm.spec,
        _ => return None,
    };
    spec.schedule.is_alone().then(|| longest(spec))
}

#[cfg(test)]
mod tests;
