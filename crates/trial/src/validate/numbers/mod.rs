//! The numbers of a trial: those of a host's report must not contradict each other, nor the other host's, nor the time
//! that the trial took. This holds whatever was planned, so it is checked of answers, of the slices of a search, of
//! results of a fleet and of the reports in a record alike.
//!
//! | rules | of |
//! |---|---|
//! | `times` | when it was sent and received, by the clock of the host that reports |
//! | `counts` | messages, bytes, flows, rows and slices |
//! | `delays` | delays, their means and their variation |
//! | `resources` | CPU time, memory, and what TCP counted |
//! | `arrivals` (beside) | what both ends counted of a transfer |
//!
//! Each bound says why no honest host breaks it. A lie that contradicts nothing is not found.

mod counts;
mod delays;
mod resources;
mod times;

pub(crate) use resources::MAX_PROCESSORS;

use crate::validate::arrivals::arrival_rules;
use crate::validate::{Rule, broken};
use stacklab_model::{Ends, HostReport, Probe, Role, RunRecord, TrialSpec, Value, is_in_bounds};
use stacklab_traffic::timing::{SLACK, longest};
use std::time::Duration;

/// Clocks of two machines run at one rate but for this share of it. Crystals differ by less than 0.1 %, and those of
/// emulated machines by some per cent.
const CLOCK_RATE_SHARE: u64 = 10;
/// The least that a host's clock may run longer than the trial, nanoseconds: a short trial has a coarse clock too.
const CLOCK_SLACK_NS: u64 = 100_000_000;
/// Arms of a trial share its time, which a record divides among them.
const MAX_ARMS: u32 = stacklab_model::ArmSchedule::MAX_ARMS as u32;

/// What bounds the numbers of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time that can have passed on a host's clock, nanoseconds.
    pub longest_ns: u64,
    /// Processors of the first and of the second host, as their facts say; `None` if they are not known.
    pub processors: [Option<u32>; 2],
    /// Whether one-way delays are known: the hosts share a clock, or their clocks were compared. If they are not, the
    /// difference of the clocks is in them, and no figure is made of them.
    pub one_way: bool,
}

impl Limits {
    /// Nothing is known of the trial.
    pub const NONE: Limits = Limits { longest_ns: u64::MAX, processors: [None, None], one_way: true };

    /// Of a trial that took this long by the coordinator's clock.
    pub fn of_time(wall: Duration) -> Self {
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        let slack_ns = wall_ns / CLOCK_RATE_SHARE + CLOCK_SLACK_NS;
        Limits { longest_ns: wall_ns.saturating_add(slack_ns), ..Limits::NONE }
    }
}

/// A host's report, and what bounds its numbers.
struct Host<'a> {
    spec: &'a TrialSpec,
    report: &'a HostReport,
    /// The role that it was asked to have.
    role: Role,
    longest_ns: u64,
    processors: u32,
    one_way: bool,
}

/// What the numbers of a transfer contradict. `from` is the place of its sender in the limits' processors.
pub fn numbers(spec: &TrialSpec, limits: &Limits, from: usize, ends: Ends<&HostReport>) -> Vec<String> {
    let Ends { sender, receiver } = ends;
    let mut rules = Vec::new();
    for (report, role, place) in [(sender, Role::Sender, from), (receiver, Role::Receiver, 1 - from)] {
        // The counts of another program are its word, and its errors are figures.
        if report.tool.is_none() {
            let processors = limits.processors[place].unwrap_or(MAX_PROCESSORS);
            let Limits { longest_ns, one_way, .. } = *limits;
            rules.extend(host_rules(&Host { spec, report, role, longest_ns, processors, one_way }));
        }
    }
    if sender.tool.is_none() && receiver.tool.is_none() {
        rules.extend(arrival_rules(spec, sender, receiver));
    }
    broken(rules)
}

fn host_rules(host: &Host<'_>) -> Vec<Rule> {
    let Host { report, role, .. } = host;
    let other = report.role;
    let mut rules = vec![(other == *role, format!("the {role} reports as a {other}"))];
    rules.extend(times::time_rules(host));
    rules.extend(counts::count_rules(host));
    rules.extend(delays::delay_rules(host));
    rules.extend(resources::resource_rules(host));
    rules
}

/// What a run contradicts that somebody else made: its figures, and the numbers of the reports that it still has.
pub fn finished_run(run: &RunRecord) -> Vec<String> {
    let mut reasons = Vec::new();
    for (metric, value) in run.values.iter() {
        if let Value::Measured(figure) = value {
            let possible = metric.possible_figures();
            if !is_in_bounds(*figure) || *figure < possible.low || *figure > possible.high {
                reasons.push(format!("a figure of {metric} is not possible: {figure}"));
            }
        }
    }
    let mut spec = run.spec.clone();
    if spec.probe.probe == Probe::EchoUnderLoad {
        // The flows are those of the load, whose reports no run keeps.
        spec.flows = 1;
    }
    let limits = limits_of_run(run);
    for (direction, pair) in run.host_reports.chunks_exact(2).enumerate() {
        let ends = Ends { sender: &pair[0], receiver: &pair[1] };
        reasons.extend(numbers(&spec, &limits, direction % 2, ends));
    }
    reasons
}

/// A run says how long its trial took, and of an interleaved trial the arm's share of it. A virtual clock may have run
/// for as long as a trial takes at the most.
fn limits_of_run(run: &RunRecord) -> Limits {
    let arms = if run.spec.schedule.is_alone() { 1 } else { MAX_ARMS };
    let wall = Duration::from_nanos(run.wall_ns).saturating_mul(arms);
    let most = longest(&run.spec).saturating_mul(arms).saturating_add(SLACK);
    Limits::of_time(wall.max(most))
}

#[cfg(test)]
mod tests;
