//! When a question has been measured enough: a pure function of what is known.

use stacklab_model::{Settled, Standing, StoppingRule};

/// Blocks before the time budget can end a campaign: with fewer there is no interval at all.
const LEAST_BLOCKS: u32 = 2;

/// Looks at one question after a block, and says why it is settled, where it is.
///
/// `blocks_done` counts the blocks measured so far, `spent_ns` the nanoseconds of the campaign so far. An answer that
/// is good enough counts from `rule.min` blocks on. The most blocks and the budget end the question whatever its
/// standing; the budget does so before `rule.min` too, because it is a promise to whoever waits, but not before two
/// blocks. For the campaign as a whole (trials without any question), look with a standing of all `false`.
pub fn look(rule: &StoppingRule, blocks_done: u32, spent_ns: u64, standing: Standing) -> Option<Settled> {
    let good = blocks_done >= rule.min;
    if good && standing.narrow {
        Some(Settled::Narrow)
    } else if good && standing.decided {
        Some(Settled::Decided)
    } else if blocks_done >= rule.max {
        Some(Settled::Cap)
    } else if blocks_done >= LEAST_BLOCKS && rule.budget_ns.is_some_and(|budget| spent_ns >= budget) {
        Some(Settled::Budget)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Standing = Standing { narrow: false, decided: false };
    const NARROW: Standing = Standing { narrow: true, decided: false };
    const DECIDED: Standing = Standing { narrow: false, decided: true };
    const BOTH: Standing = Standing { narrow: true, decided: true };

    #[test]
    fn a_question_is_settled_by_a_good_answer_then_the_cap_then_the_budget() {
        let table = [
            // blocks, spent, standing, settled
            (5, 0, BOTH, None),
            (6, 0, OPEN, None),
            (6, 0, NARROW, Some(Settled::Narrow)),
            (6, 0, DECIDED, Some(Settled::Decided)),
            (6, 0, BOTH, Some(Settled::Narrow)),
            (11, 99, OPEN, None),
            (12, 0, OPEN, Some(Settled::Cap)),
            (12, 100, OPEN, Some(Settled::Cap)),
            (12, 100, NARROW, Some(Settled::Narrow)),
            (7, 100, OPEN, Some(Settled::Budget)),
            (7, 100, DECIDED, Some(Settled::Decided)),
            (2, 100, NARROW, Some(Settled::Budget)),
            (1, 100, OPEN, None),
        ];
        let rule = StoppingRule { min: 6, max: 12, target: 0.02, budget_ns: Some(100) };
        for (blocks, spent, standing, settled) in table {
            assert_eq!(
                look(&rule, blocks, spent, standing),
                settled,
                "{blocks} blocks, {spent} ns, {standing:?}"
            );
        }
    }

    #[test]
    fn without_a_budget_time_settles_nothing() {
        let rule = StoppingRule { min: 6, max: 12, target: 0.02, budget_ns: None };
        assert_eq!(look(&rule, 11, u64::MAX, OPEN), None);
    }
}
