//! Clock offset between two hosts, before and after a trial.

use crate::trial::evidence::ClockSync;
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

/// The clock offset of two hosts before a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockOffset {
    /// Both hosts have the same clock.
    Same,
    /// The second clock is ahead of the first one by this offset.
    Measured(Offset),
    /// Unknown, with the reason.
    Unknown(String),
}

impl ClockOffset {
    /// The result of a clock comparison, for hosts on one machine or not. Hosts on one machine have two clocks only
    /// with time namespaces.
    pub fn of(one_machine: bool, compared: Result<Offset, String>) -> Self {
        match compared {
            Ok(offset) if one_machine && offset.offset_ns.unsigned_abs() <= offset.bound_ns => {
                ClockOffset::Same
            }
            // For agents, 0 means that the hosts share a clock. One nanosecond is less than any bound.
            Ok(offset) if offset.offset_ns == 0 => ClockOffset::Measured(Offset { offset_ns: 1, ..offset }),
            Ok(offset) => ClockOffset::Measured(offset),
            Err(_) if one_machine => ClockOffset::Same,
            Err(reason) => ClockOffset::Unknown(reason),
        }
    }

    /// The offset of two hosts in a trial where it need not be measured: of one clock, or where no figure that is asked
    /// for needs it.
    pub fn unmeasured(one: &HostFacts, other: &HostFacts, spec: &TrialSpec) -> Option<Self> {
        if one_clock(one, other) {
            return Some(ClockOffset::Same);
        }
        let is_asked = spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay);
        let reason = "not compared, because no one-way figure is requested";
        (!is_asked).then(|| ClockOffset::Unknown(reason.to_owned()))
    }

    /// The offset that the agents are given, nanoseconds; 0 if they share a clock.
    pub fn offset_ns(&self) -> i64 {
        match self {
            ClockOffset::Measured(offset) => offset.offset_ns,
            ClockOffset::Same | ClockOffset::Unknown(_) => 0,
        }
    }

    /// Adds the comparison after the trial, which is made if there are two clocks.
    ///
    /// # Errors
    /// Those of the comparison. The inner result is the reason if it failed.
    pub fn with_after<E>(
        self,
        compare: impl FnOnce() -> Result<Result<Offset, String>, E>,
    ) -> Result<ClockSync, E> {
        Ok(match self {
            ClockOffset::Same => ClockSync::Same,
            ClockOffset::Measured(before) => ClockSync::Compared { before, after: compare()? },
            ClockOffset::Unknown(reason) => ClockSync::Unknown(reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_one_where_one_machine_shows_no_difference() {
        let offset = |offset_ns| Offset { offset_ns, bound_ns: 40, at_ns: 9 };
        assert_eq!(ClockOffset::of(true, Ok(offset(-40))), ClockOffset::Same);
        assert_eq!(ClockOffset::of(true, Ok(offset(41))), ClockOffset::Measured(offset(41)));
        assert_eq!(ClockOffset::of(false, Ok(offset(-40))).offset_ns(), -40);
        // 0 would mean that the hosts share a clock.
        assert_eq!(ClockOffset::of(false, Ok(offset(0))).offset_ns(), 1);
        assert_eq!(ClockOffset::of(true, Err("no".to_owned())), ClockOffset::Same);
        assert_eq!(ClockOffset::of(false, Err("no".to_owned())), ClockOffset::Unknown("no".to_owned()));
    }
}
