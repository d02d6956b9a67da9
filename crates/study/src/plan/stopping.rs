//! The stopping rule, a pure function of the runs so far.

use stacklab_model::{StopReason, StoppingRule};

/// Blocks before the time budget can end a campaign: with fewer there is no interval at all.
const LEAST_BLOCKS: u32 = 2;

/// Whether the verdicts may be evaluated after this many blocks.
pub fn may_look(rule: &StoppingRule, blocks_done: u32) -> bool {
    blocks_done >= rule.min
}

/// Why the rule's limits end the measuring of every question that is open after a block, if they do.
///
/// `blocks_done` counts the blocks so far, `spent_ns` the nanoseconds of the campaign so far. The budget ends it before
/// `rule.min` too, but not before two blocks.
pub fn is_over(rule: &StoppingRule, blocks_done: u32, spent_ns: u64) -> Option<StopReason> {
    if blocks_done >= rule.max {
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
    use stacklab_model::Until;

    fn rule(budget_ns: Option<u64>) -> StoppingRule {
        StoppingRule { min: 6, max: 12, until: Until::Verdict, target: 0.02, budget_ns }
    }

    #[test]
    fn limits_are_blocks_then_time() {
        for (blocks, spent, reason) in [
            (11, 99, None),
            (12, 0, Some(StopReason::Cap)),
            (12, 100, Some(StopReason::Cap)),
            (7, 100, Some(StopReason::Budget)),
            (2, 100, Some(StopReason::Budget)),
            (1, 100, None),
        ] {
            assert_eq!(is_over(&rule(Some(100)), blocks, spent), reason, "{blocks} blocks, {spent} ns");
        }
        assert_eq!(is_over(&rule(None), 11, u64::MAX), None);
    }

    #[test]
    fn first_look_is_after_min_blocks() {
        assert!(!may_look(&rule(None), 5) && may_look(&rule(None), 6));
    }
}
