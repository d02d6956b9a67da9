//! How far two hosts' clocks are apart, before and after a trial.

use crate::trial::evidence::ClockSync;
use stacklab_model::HostFacts;
use stacklab_traffic::stats::clock::Offset;

/// Whether two hosts run on one kernel, and so share processors, and their clock too but for time namespaces.
pub fn one_machine(one: &HostFacts, other: &HostFacts) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Whether two hosts read the same clock, as their kernel says; an older one knows no time namespaces.
pub fn one_clock(one: &HostFacts, other: &HostFacts) -> bool {
    one_machine(one, other) && one.time_namespace.is_some() && one.time_namespace == other.time_namespace
}

/// What is known of two hosts' clocks before a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockOffset {
    /// They are one clock.
    Same,
    /// The second one is ahead of the first one by so much.
    Measured(Offset),
    /// Nothing, and why.
    Unknown(String),
}

impl ClockOffset {
    /// From their comparison, for hosts on one machine or not. A time namespace on one machine has a clock of its own.
    pub fn of(one_machine: bool, compared: Result<Offset, String>) -> Self {
        match compared {
            Ok(offset) if one_machine && offset.offset_ns.unsigned_abs() <= offset.bound_ns => {
                ClockOffset::Same
            }
            // To agents 0 says that the clocks are one. A nanosecond is less than any bound.
            Ok(offset) if offset.offset_ns == 0 => ClockOffset::Measured(Offset { offset_ns: 1, ..offset }),
            Ok(offset) => ClockOffset::Measured(offset),
            Err(_) if one_machine => ClockOffset::Same,
            Err(reason) => ClockOffset::Unknown(reason),
        }
    }

    /// The offset that the agents are given, nanoseconds; 0 where they have one clock.
    pub fn offset_ns(&self) -> i64 {
        match self {
            ClockOffset::Measured(offset) => offset.offset_ns,
            ClockOffset::Same | ClockOffset::Unknown(_) => 0,
        }
    }

    /// With the comparison after the trial, which is made where there are two clocks.
    ///
    /// # Errors
    /// The comparison's; inside is the reason where it did not work.
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
        // 0 would mean that they are one.
        assert_eq!(ClockOffset::of(false, Ok(offset(0))).offset_ns(), 1);
        assert_eq!(ClockOffset::of(true, Err("no".to_owned())), ClockOffset::Same);
        assert_eq!(ClockOffset::of(false, Err("no".to_owned())), ClockOffset::Unknown("no".to_owned()));
    }
}
