//! The stopping rule, a pure function of the runs so far.

use stacklab_model::{StopReason, StoppingRule, StoppingState};

/// Blocks before the time budget can end a campaign: with fewer there is no interval at all.
const LEAST_BLOCKS: u32 = 2;

/// Applies the stopping rule to one question after a block; gives the reason to stop, if there is one.
///
/// `blocks_done` counts the blocks so far, `spent_ns` the nanoseconds of the campaign so far. `narrow` and `decided`
/// count from `rule.min` blocks on. `rule.max` and the budget stop the question in any state; the budget does so before
/// `rule.min` too, but not before two blocks. For trials without any question the state is all `false`.
pub fn look(
    rule: &StoppingRule,
    blocks_done: u32,
    spent_ns: u64,
    state: StoppingState,
) -> Option<StopReason> {
    let good = blocks_done >= rule.min;
    if good && state.narrow {
        Some(StopReason::Narrow)
    } else if good && state.decided {
        Some(StopReason::Decided)
    } else if blocks_done >= rule.max {
        Some(StopReason::Cap)
    } else if blocks_done >= LEAST_BLOCKS && rule.budget_ns.is_some_and(|budget| spent_ns >= budget) {
        Some(StopReason::Budget)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: StoppingState = StoppingState { narrow: false, decided: false };
    const NARROW: StoppingState = StoppingState { narrow: true, decided: false };
    const DECIDED: StoppingState = StoppingState { narrow: false, decided: true };
    const BOTH: StoppingState = StoppingState { narrow: true, decided: true };

    #[test]
    fn a_question_stops_by_its_state_then_the_cap_then_the_budget() {
        let table = [
            // blocks, spent, state, reason
            (5, 0, BOTH, None),
            (6, 0, OPEN, None),
            (6, 0, NARROW, Some(StopReason::Narrow)),
            (6, 0, DECIDED, Some(StopReason::Decided)),
            (6, 0, BOTH, Some(StopReason::Narrow)),
            (11, 99, OPEN, None),
            (12, 0, OPEN, Some(StopReason::Cap)),
            (12, 100, OPEN, Some(StopReason::Cap)),
            (12, 100, NARROW, Some(StopReason::Narrow)),
            (7, 100, OPEN, Some(StopReason::Budget)),
            (7, 100, DECIDED, Some(StopReason::Decided)),
            (2, 100, NARROW, Some(StopReason::Budget)),
            (1, 100, OPEN, None),
        ];
        let rule = StoppingRule { min: 6, max: 12, target: 0.02, budget_ns: Some(100) };
        for (blocks, spent, state, stop_reason) in table {
            assert_eq!(
                look(&rule, blocks, spent, state),
                stop_reason,
                "{blocks} blocks, {spent} ns, {state:?}"
            );
        }
    }

    #[test]
    fn without_a_budget_time_settles_nothing() {
        let rule = StoppingRule { min: 6, max: 12, target: 0.02, budget_ns: None };
        assert_eq!(look(&rule, 11, u64::MAX, OPEN), None);
    }
}
