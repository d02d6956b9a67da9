//! Clock offset between two hosts, before and after a trial.

use stacklab_model::{HostFacts, Metric, TrialSpec};
use stacklab_traffic::stats::clock::Offset;

/// Whether two hosts run on one kernel, and so share processors, and (except with time namespaces) a clock.
pub fn one_machine(one: &HostFacts, other: &HostFacts) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Whether two hosts read the same clock, as their kernel reports; an older kernel has no time namespaces.
pub(crate) fn one_clock(one: &HostFacts, other: &HostFacts) -> bool {
    one_machine(one, other) && one.time_namespace.is_some() && one.time_namespace == other.time_namespace
}

/// How two hosts' clocks are synchronised for a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockSync {
    /// Both hosts read the same clock.
    Same,
    /// How far the second clock is ahead of the first one.
    Compared {
        /// Before the trial: delays are computed with it.
        before: Offset,
        /// After the trial, for the correction of drift; or why it is missing.
        after: Result<Offset, String>,
    },
    /// No offset is known, with the reason.
    Unknown(String),
}

impl ClockSync {
    /// The result of a clock comparison before a trial, for hosts on one machine or not. Hosts on one machine have two
    /// clocks only with time namespaces.
    pub fn of(one_machine: bool, compared: Result<Offset, String>) -> Self {
        let before = match compared {
            Ok(offset) if one_machine && offset.offset_ns.unsigned_abs() <= offset.bound_ns => {
                return ClockSync::Same;
            }
            // For agents, 0 means that the hosts share a clock. One nanosecond is less than any bound.
            Ok(offset) if offset.offset_ns == 0 => Offset { offset_ns: 1, ..offset },
            Ok(offset) => offset,
            Err(_) if one_machine => return ClockSync::Same,
            Err(reason) => return ClockSync::Unknown(reason),
        };
        ClockSync::Compared { before, after: Err("not compared after the trial".to_owned()) }
    }

    /// The synchronisation where it need not be measured: of one clock, or where no figure that is asked for needs it.
    pub fn unmeasured(one: &HostFacts, other: &HostFacts, spec: &TrialSpec) -> Option<Self> {
        if one_clock(one, other) {
            return Some(ClockSync::Same);
        }
        let is_asked = spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay);
        let reason = "not compared, because no one-way figure is requested";
        (!is_asked).then(|| ClockSync::Unknown(reason.to_owned()))
    }

    /// The offset that the agents are given, nanoseconds; 0 if they share a clock.
    pub fn offset_ns(&self) -> i64 {
        if let ClockSync::Compared { before, .. } = self { before.offset_ns } else { 0 }
    }

    /// Adds the comparison after the trial, which is made if there are two clocks. Its inner result is the reason if it
    /// failed.
    pub fn with_after<E>(
        mut self,
        compare: impl FnOnce() -> Result<Result<Offset, String>, E>,
    ) -> Result<Self, E> {
        if let ClockSync::Compared { after, .. } = &mut self {
            *after = compare()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_one_where_one_machine_shows_no_difference() {
        let offset = |offset_ns| Offset { offset_ns, bound_ns: 40, at_ns: 9 };
        assert_eq!(ClockSync::of(true, Ok(offset(-40))), ClockSync::Same);
        assert_eq!(ClockSync::of(true, Ok(offset(41))).offset_ns(), 41);
        assert_eq!(ClockSync::of(false, Ok(offset(-40))).offset_ns(), -40);
        // 0 would mean that the hosts share a clock.
        assert_eq!(ClockSync::of(false, Ok(offset(0))).offset_ns(), 1);
        assert_eq!(ClockSync::of(true, Err("no".to_owned())), ClockSync::Same);
        assert_eq!(ClockSync::of(false, Err("no".to_owned())), ClockSync::Unknown("no".to_owned()));
    }
}
