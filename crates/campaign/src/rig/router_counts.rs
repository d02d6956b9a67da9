//! What the routers of a routed testbed count in a trial: packets before and after it, and CPU time in its measured
//! window.

use crate::rig::host_pair::{COUNT_LIMIT, HostPair, counters};
use crate::rig::routed_source::RoutedSource;
use crate::trial::evidence::{Busy, RouterEvidence};
use crate::trial::guest_cpu::busy_ns;
use stacklab_model::{Counters, HostReport, Role, System};
use stacklab_testbed::{MIDDLE, Ticks};
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Request};
use std::time::Instant;

/// What the routers had counted when a trial began.
pub(super) struct RouterCounts {
    counters: [Counters; 2],
    /// CPU time of the processes of routers whose kernels do not count it.
    ticks: [Option<Ticks>; 2],
    since: Instant,
    /// How far the clock of each router is ahead of the sender's, nanoseconds.
    ahead_ns: [i64; 2],
}

impl RouterCounts {
    /// Counts before a trial, and has the routers read their processor times from now on.
    pub(super) fn begin(
        source: &RoutedSource,
        routers: &mut [AgentClient; 2],
        ends: &mut HostPair,
    ) -> Result<Self, AgentError> {
        let [near, far] = routers;
        let ahead_ns = if has_one_clock(source) {
            [0, 0]
        } else {
            let [sender, ..] = ends.agents();
            let sender_ns = sender.clock_offset()?.offset_ns;
            [near.clock_offset()?, far.clock_offset()?].map(|offset| offset.offset_ns - sender_ns)
        };
        let counters = [counters(near, MIDDLE)?, counters(far, MIDDLE)?];
        for agent in [near, far] {
            match agent.ask(Request::WatchCpu, "read its processor times", COUNT_LIMIT)? {
                (_, Answer::Watching) => {}
                _ => return Err(agent.confused("read its processor times")),
            }
        }
        Ok(RouterCounts { counters, ticks: source.router_ticks(), since: Instant::now(), ahead_ns })
    }

    /// Counts after a trial whose hosts reported this.
    pub(super) fn end<'a>(
        self,
        source: &RoutedSource,
        routers: &mut [AgentClient; 2],
        reports: impl Iterator<Item = &'a HostReport>,
    ) -> Result<RouterEvidence, AgentError> {
        let of_ns = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let outside = |(before, after): (Option<Ticks>, Option<Ticks>)| {
            let ns = busy_ns(after?).saturating_sub(busy_ns(before?));
            Some(Busy { ns, of_ns })
        };
        let ticks = source.router_ticks();
        let windows = reports.filter(|report| report.role == Role::Sender);
        let window = windows.map(|report| (report.sent.first_ns, report.sent.last_ns));
        let window = window.reduce(|(from, to), (first, last)| (from.min(first), to.max(last)));
        let mut busy = [0, 1].map(|router| outside((self.ticks[router], ticks[router])));
        for (router, agent) in routers.iter_mut().enumerate() {
            let ahead_ns = self.ahead_ns[router];
            let (from_ns, to_ns) = window.unwrap_or_default();
            let [from_ns, to_ns] = [from_ns, to_ns].map(|ns| ns.saturating_add_signed(ahead_ns));
            let asked = Request::CpuBetween { from_ns, to_ns };
            let time = match agent.ask(asked, "tell its CPU time", COUNT_LIMIT)? {
                (_, Answer::Cpu { time }) => time,
                _ => return Err(agent.confused("tell its CPU time")),
            };
            let own = time.map(|time| Busy { ns: time.busy_ns(), of_ns: time.window_ns });
            busy[router] = busy[router].or(own);
        }
        let [near, far] = routers;
        let after = [counters(near, MIDDLE)?, counters(far, MIDDLE)?];
        Ok(RouterEvidence { mechanism: source.plan.kind.mechanism, before: self.counters, after, busy })
    }
}

fn has_one_clock(source: &RoutedSource) -> bool {
    let kind = &source.plan.kind;
    source.guest.is_some()
        || kind.clients.0.iter().chain(&kind.routers.0).all(|system| *system == System::Namespace)
}
