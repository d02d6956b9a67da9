//! What the runs say of a client: its first family, its connection attempt delay, and what it does when the first
//! family fails.

use crate::clauses::{Clause, judge};
use crate::reaction::describe_fallback;
use crate::run::{Run, attempt_delay_ms};
use crate::runs::{Delay, ScenarioRuns, runs_of};
use crate::scenario::{BOTH, path_scenario};
use serde::Serialize;
use stacklab_model::Family;

/// A client in a few figures and sentences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The family that it tries first where both work; absent if that differs between runs.
    pub first_family: Option<Family>,
    /// The connection attempt delay: from the first attempt of the first family, which is dropped, to that of the
    /// other.
    pub attempt_delay: Delay,
    /// What it does when the path of the first family fails.
    pub reactions: Vec<Reaction>,
    /// What RFC 8305 asks, and what the client does.
    pub clauses: Vec<Clause>,
}

/// What a client does in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reaction {
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario is.
    pub label: String,
    /// What the client does.
    pub does: String,
}

/// The faults of a path to which a client may react.
const FAULTS: [&str; 6] = ["drop", "reset", "unreachable", "prohibited", "black-hole", "data-lost"];

/// Sums up the runs of a client.
pub(crate) fn summarize(scenarios: &[ScenarioRuns]) -> Summary {
    let first_family = find_first_family(runs_of(scenarios, BOTH));
    // A client without a first family is judged by the one that RFC 8305 prefers.
    let tried = first_family.unwrap_or(Family::Ipv6);
    let dropped = runs_of(scenarios, &path_scenario(tried, "drop"));
    let attempt_delay = Delay::of(&dropped.iter().map(attempt_delay_ms).collect::<Vec<_>>());
    let mut reactions = Vec::new();
    for fault in FAULTS {
        let name = path_scenario(tried, fault);
        let Some(scenario) = scenarios.iter().find(|scenario| scenario.name == name) else { continue };
        let does = describe_fallback(&scenario.runs, tried);
        reactions.push(Reaction { scenario: name, label: scenario.label.clone(), does });
    }
    let clauses = judge(scenarios, first_family, &attempt_delay);
    Summary { first_family, attempt_delay, reactions, clauses }
}

/// The family of the first attempt, if it is that of all runs.
fn find_first_family(runs: &[Run]) -> Option<Family> {
    let first = runs.first()?.attempts.first()?.family;
    let same = runs.iter().filter(|run| run.attempts.first().is_some_and(|attempt| attempt.family == first));
    if same.count() == runs.len() { Some(first) } else { None }
}
