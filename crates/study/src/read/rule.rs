//! When to stop.

use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::read::node::{at, nanoseconds, whole};
use stacklab_model::StoppingRule;

/// Reads the stopping rule.
pub(super) fn read(node: Option<&Located>, problems: &mut Problems) -> Option<StoppingRule> {
    let node = node?;
    let min = at(node.get("min"), whole, problems)?;
    let max = at(node.get("max"), whole, problems)?;
    if min.value > max.value {
        problems.add(
            Problem::at(
                min.place,
                format!("`blocks.min` is {} and `blocks.max` is {}", min.value, max.value),
                format!("expected at most {}", max.value),
            )
            .related(max.place, "or a larger one here"),
        );
    }
    Some(StoppingRule {
        min: min.value,
        max: max.value,
        until: at(node.get("until"), leaf::name, problems)?.value,
        target: at(node.get("target"), leaf::share, problems)?.value,
        budget_ns: at(node.get("budget"), nanoseconds, problems).map(|budget| budget.value),
    })
}
