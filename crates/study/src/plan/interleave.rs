//! Which trials are the arms of an interleaved trial.

use stacklab_model::{
    ArmSchedule, Cell, ComparisonSpec, Direction, Factor, Generator, Probe, SELF_ARMS, System, Systems,
};

/// Whether cells that differ in the factor alone can be measured at the same time: on one testbed, or on testbeds
/// beside each other.
pub(crate) fn interleaves(factor: Factor) -> bool {
    use Factor::*;
    match factor {
        Family | Transport | SizeOf | Size | Replica | Io | Flows => true,
        // The settings of a path and the processors of hosts are one for all arms.
        _ => factor.is_socket_option() || factor.is_of_testbeds(),
    }
}

/// How arms that differ in a factor share the time, in a study with this schedule. It is decided here only.
pub(crate) fn schedule(of_study: ArmSchedule, factor: Factor) -> ArmSchedule {
    match of_study {
        ArmSchedule::Alone => ArmSchedule::Alone,
        _ if !interleaves(factor) => ArmSchedule::Alone,
        schedule if factor.is_of_testbeds() => ArmSchedule::TimeSlots(schedule.slice_ns()),
        schedule => ArmSchedule::TokenPassing(schedule.slice_ns()),
    }
}

/// Whether all arms of interleaved trials have the same two hosts.
pub(crate) fn on_one_testbed(comparisons: &[ComparisonSpec]) -> bool {
    arms_of_one_testbed(compared(comparisons))
}

/// Whether cells that differ in the factor alone can be measured at the same time between the same two hosts.
pub(crate) fn arms_of_one_testbed(factor: Factor) -> bool {
    interleaves(factor) && !factor.is_of_testbeds()
}

/// The factor in which the cells differ that are measured next to each other: the first comparison's, or the family in
/// a study without comparisons.
pub(crate) fn compared(comparisons: &[ComparisonSpec]) -> Factor {
    comparisons.first().map_or(Factor::Family, |comparison| comparison.factor)
}

/// Whether a cell is one of two arms against themselves.
pub(crate) fn is_against_itself(cell: &Cell) -> bool {
    SELF_ARMS.contains(&cell.replica.as_str())
}

/// Whether a cell can be an arm among arms that differ in the factor: one transfer, by threads that the host counts
/// exactly or with a testbed for itself. Real machines have one network for all arms.
pub(crate) fn takes_turns(cell: &Cell, probe: Probe, factor: Factor) -> bool {
    let fits = |system: &System| match system {
        System::Localhost | System::Ssh(_) => !factor.is_of_testbeds(),
        system => factor.is_of_testbeds() || system.counts_cpu(),
    };
    probe.interleaves()
        && !Generator::of(cell).is_other()
        && Direction::of(cell) != Direction::Both
        && Systems::of(cell).0.iter().all(fits)
}
