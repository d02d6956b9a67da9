//! Trials that hold sockets: the sending host connects them to each other, and reports what they take of its kernel's
//! memory. Nothing crosses the path.

use crate::CampaignError;
use crate::foreign;
use crate::rig::Rig;
use stacklab_model::{
    Drops, Ends, HeldSockets, HostReport, MAX_PAIRS, Metric, Role, RunStatus, TrialSpec, Value,
};
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::protocol::{AgentError, Answer, Request};
use stacklab_trial::validate::Limits;
use stacklab_trial::{Collected, Figures, Path};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a host may take: until its memory is at rest, for some ten thousand sockets.
const LIMIT: Duration = Duration::from_secs(150);
/// More than any machine has.
const MAX_BYTES: u64 = 1 << 50;

/// Holds the sockets of a trial.
pub(super) fn hold(rig: &mut Rig, path: &Path, spec: &TrialSpec) -> Result<Collected, CampaignError> {
    const ATTEMPTED: &str = "hold sockets";
    let started_unix_ns = now_unix_ns();
    let clock = Instant::now();
    let [sender, _] = rig.ends.agents();
    let asked = Request::HoldSockets { spec: Box::new(spec.clone()) };
    let reports = match sender.ask(asked, ATTEMPTED, LIMIT) {
        Ok((_, Answer::Held(held))) => Ok(vec![list_reports(path, spec, held)]),
        Ok(_) => return Err(sender.describe_wrong_answer(ATTEMPTED).into()),
        Err(AgentError::Failed { host, reason }) => Err(format!("{host} {reason}")),
        Err(error) => return Err(error.into()),
    };
    let wall_ns = clock.elapsed().as_nanos() as u64;
    Ok(Collected { started_unix_ns, wall_ns, limits: Limits::NONE, reports })
}

fn list_reports(path: &Path, spec: &TrialSpec, held: HeldSockets) -> Ends<HostReport> {
    let ends = foreign::endpoints(path, spec.transport, 0);
    let mut sender = HostReport::new(Role::Sender, ends.sender);
    sender.held_sockets = Some(held);
    Ends { sender, receiver: HostReport::new(Role::Receiver, ends.receiver) }
}

/// The figures of held sockets. What a host says of them is possible, or the run is invalid.
pub(super) fn figures(reports: Ends<HostReport>) -> Figures {
    let mut reasons = Vec::new();
    let mut values = BTreeMap::new();
    match reports.sender.held_sockets {
        Some(held) if is_possible(held) => values = list_figures(held),
        Some(_) => reasons.push("the sender reports other sockets than were asked for".to_owned()),
        None => reasons.push("the sender reports no sockets that it held".to_owned()),
    }
    Figures {
        status: RunStatus::of(reasons),
        values,
        drops: Drops::default(),
        warnings: Vec::new(),
        host_reports: reports.into_iter().collect(),
    }
}

fn is_possible(held: HeldSockets) -> bool {
    let HeldSockets { pairs, idle_bytes, full_pairs, full_bytes } = held;
    let is_counted = (1..=MAX_PAIRS).contains(&pairs) && full_pairs <= pairs;
    is_counted && idle_bytes.unwrap_or(0).unsigned_abs() <= MAX_BYTES && full_bytes.unwrap_or(0) <= MAX_BYTES
}

fn list_figures(held: HeldSockets) -> BTreeMap<Metric, Value> {
    let HeldSockets { pairs, idle_bytes, full_pairs, full_bytes } = held;
    let idle = match idle_bytes {
        None => Value::Missing(
            "the kernel's memory could not be read in the same way before and after the sockets".to_owned(),
        ),
        Some(..=0) => {
            Value::Missing("others of this machine gave back more memory than the sockets took".to_owned())
        }
        Some(bytes) => Value::Measured(bytes as f64 / (2.0 * f64::from(pairs))),
    };
    let full = match full_bytes {
        Some(bytes) => {
            Value::finite(bytes as f64 / (2.0 * f64::from(full_pairs)), "no socket had full queues")
        }
        None => Value::Missing("the kernel does not report what it charges to sockets".to_owned()),
    };
    BTreeMap::from([(Metric::MemoryPerSocket, idle), (Metric::MemoryPerFullSocket, full)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(held: HeldSockets, metric: Metric) -> Option<f64> {
        list_figures(held)[&metric].measured()
    }

    #[test]
    fn memory_is_shared_by_both_ends_of_all_pairs() {
        let held = HeldSockets {
            pairs: 1000,
            idle_bytes: Some(4_000_000),
            full_pairs: 10,
            full_bytes: Some(2_000_000),
        };
        assert_eq!(figure(held, Metric::MemoryPerSocket), Some(2000.0));
        assert_eq!(figure(held, Metric::MemoryPerFullSocket), Some(100_000.0));
        let wrong = HeldSockets { full_pairs: 2000, ..held };
        assert!(is_possible(held) && !is_possible(wrong));
        let disturbed = HeldSockets { idle_bytes: Some(-5), full_bytes: None, ..held };
        assert_eq!(figure(disturbed, Metric::MemoryPerSocket), None);
        let other = HeldSockets { idle_bytes: None, ..held };
        assert!(is_possible(other) && figure(other, Metric::MemoryPerSocket).is_none());
        assert_eq!(figure(disturbed, Metric::MemoryPerFullSocket), None);
    }
}
