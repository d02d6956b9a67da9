//! The A/A control beside the comparisons of a table: the row "IPv4 vs IPv4", and its width in the legend. No verdict
//! depends on it.

use crate::findings::groups::{control_arms, level};
use crate::rendering::numbers::{DisplayUnit, Distance, TOO_WIDE, difference_decimals, format_decimals};
use stacklab_model::{Control, Factor};

/// What stands in the column of verdicts.
pub(crate) const CONTROL: &str = "control";

/// What the rows are, for the legend of a table of signs.
pub(crate) const LEGEND: &str = "control: one arm measured against itself, ± half of the 95 % interval; chance and the \
     method make this difference, and no verdict depends on it";

/// The difference in a few characters: `+0.1 ± 0.6 %`, or `0` where neither arm had an event.
pub(crate) fn sign(control: &Control) -> String {
    if control.is_none_seen() {
        return "0".to_owned();
    }
    let unit = DisplayUnit::of(control.metric);
    let distance = Distance::from(&control.effect);
    match unit.difference_unit {
        "points" => distance.describe(&unit, " pt"),
        "events" => distance.describe(&unit, ""),
        name => distance.describe(&unit, &format!(" {name}")),
    }
}

/// `control: IPv4 vs IPv4 at 128 B, at most 0.7 % apart`: the end of the 95 % interval that is farther from none,
/// rounded up. Nothing where there is no control.
pub(crate) fn legend(controls: &[&Control], factor: Factor, row_factors: &[Factor]) -> Option<String> {
    let mut parts = Vec::new();
    for control in controls {
        let levels: Vec<String> = row_factors
            .iter()
            .filter(|row| **row != factor)
            .map(|row| level(&control.cell, *row))
            .filter(|level| !level.is_empty())
            .collect();
        let place = if levels.is_empty() { String::new() } else { format!(" at {}", levels.join(" ")) };
        parts.push(format!("{}{place}, {}", control_arms(control, factor), width(control)));
    }
    if parts.is_empty() { None } else { Some(format!("{CONTROL}: {}", parts.join("; "))) }
}

fn width(control: &Control) -> String {
    if control.is_none_seen() {
        return "without an event in either arm".to_owned();
    }
    let unit = DisplayUnit::of(control.metric);
    let distance = Distance::from(&control.effect);
    let [_, low, high] = distance.within(&unit);
    let most = low.abs().max(high.abs());
    if distance.is_too_wide(&unit) || !most.is_finite() {
        return format!("an interval that is {TOO_WIDE}");
    }
    let decimals = difference_decimals(most);
    let steps = 10_f64.powi(decimals as i32);
    // What is exact in decimals is not rounded up for its last bit.
    let most = (most * steps - 1e-6).ceil() / steps;
    format!("at most {} {} apart", format_decimals(most, decimals), unit.difference_unit)
}
