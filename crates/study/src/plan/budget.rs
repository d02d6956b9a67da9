//! Whether a study's budget has room for what it needs.

use crate::plan::Plan;
use crate::plan::estimate::MIN_BLOCKS;
use crate::study::Study;
use stacklab_model::{MIN_PAIRS, count, print_duration, write_time};

impl Plan {
    /// Says, before a campaign begins, that its budget is too small for two blocks, without which nothing can be
    /// compared, or for as many as its study wants before a verdict, or that it ends before anything can be claimed;
    /// and what to change. `None` for a budget that is enough, and without comparisons.
    pub fn warn_of_budget(&self, study: &Study) -> Option<String> {
        if study.comparisons.is_empty() {
            return None;
        }
        let most = study.rule.max;
        if (most as usize) < MIN_PAIRS {
            return Some(format!(
                "at most {} will be measured, and nothing is claimed of fewer than {MIN_PAIRS}: --set blocks.max={MIN_PAIRS}",
                count(most, "block")
            ));
        }
        let budget_ns = study.rule.budget_ns?;
        let block_ns = self.estimate(study).block_ns.max(1);
        let affords = budget_ns / block_ns;
        let needs = u64::from(study.rule.min.max(MIN_BLOCKS));
        if affords >= needs {
            return None;
        }
        let budget = print_duration(budget_ns);
        let block = print_duration(round(block_ns));
        let enough = format!("--set blocks.budget={}", write_time(block_ns.saturating_mul(needs)));
        Some(if affords < u64::from(MIN_BLOCKS) {
            format!(
                "a block takes about {block}, and the budget is {budget}: two blocks are measured all the same, \
                 without which nothing can be compared, and a verdict takes {needs}. Give it time ({enough}), or \
                 measure less: fewer levels (--without), or shorter trials"
            )
        } else {
            format!(
                "the budget of {budget} has room for about {} of {block}, and a verdict takes {needs}: {enough}",
                count(affords, "block")
            )
        })
    }
}

/// Tenths of a second below a minute, else seconds: it is an estimate.
fn round(ns: u64) -> u64 {
    let unit = if ns < 60_000_000_000 { 100_000_000 } else { 1_000_000_000 };
    ns.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, parse};

    fn warn(settings: &[&str]) -> Option<String> {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let text = include_str!("../../../../studies/quickstart.toml");
        let study =
            parse(&Input { name: "quickstart.toml", text, scale: None, settings: &settings }).unwrap();
        Plan::new(&study, 1).warn_of_budget(&study)
    }

    #[test]
    fn small_budgets_are_named_with_one_that_is_enough() {
        assert_eq!(warn(&[]), None);
        // Blocks of 2.24 s, eight of them before a verdict.
        assert_eq!(warn(&["blocks.budget='18s'"]), None);
        assert_eq!(
            warn(&["blocks.budget='10s'"]).unwrap(),
            "the budget of 10 s has room for about 4 blocks of 2.3 s, and a verdict takes 8: --set blocks.budget=18s"
        );
        let tiny = warn(&["blocks.budget='4s'"]).unwrap();
        assert!(tiny.starts_with("a block takes about 2.3 s, and the budget is 4 s: two blocks"), "{tiny}");
        assert!(tiny.contains("--set blocks.budget=18s") && tiny.contains("--without"), "{tiny}");
        assert_eq!(warn(&["blocks.budget='4s'", "comparison=[]"]), None);
        let few = warn(&["blocks.min=2", "blocks.max=2"]).unwrap();
        assert!(few.starts_with("at most 2 blocks") && few.ends_with("--set blocks.max=6"), "{few}");
    }

    #[test]
    fn slow_links_need_a_longer_budget() {
        let slow = warn(&["blocks.budget='80s'", "testbed.rate='256 kbit/s'"]).unwrap();
        assert!(slow.contains("the budget is 1 min 20 s") && slow.contains("min)"), "{slow}");
    }
}
