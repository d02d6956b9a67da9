//! What RFC 8305 asks of a client, each with what the client does. Of the draft of its successor: HTTPS records.

mod connections;
mod queries;

use crate::clauses::connections::{judge_delay, judge_first, judge_order, judge_success};
use crate::clauses::queries::{judge_https, judge_queries, judge_wait};
use crate::runs::{Delay, ScenarioRuns, runs_of};
use crate::scenario::{BOTH, path_scenario, record_scenario};
use serde::Serialize;
use stacklab_model::Family;

const RFC: &str = "RFC 8305";
/// draft-ietf-happy-happyeyeballs-v3-04.
const DRAFT: &str = "draft v3-04";
const NOT_RUN: &str = "not measured: --scenarios all has it";

/// A clause, and what a client does about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clause {
    /// The document, and its section if it has one.
    pub source: String,
    /// What it asks.
    pub asks: &'static str,
    /// Whether the client does that.
    pub verdict: ClauseVerdict,
    /// What it does.
    pub found: String,
}

/// Whether a client does what a clause asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClauseVerdict {
    /// In all runs.
    Yes,
    /// In a run it did not.
    No,
    /// The runs do not show it.
    NotShown,
}

impl ClauseVerdict {
    /// The verdict in a word or two.
    pub fn words(self) -> &'static str {
        match self {
            ClauseVerdict::Yes => "yes",
            ClauseVerdict::No => "no",
            ClauseVerdict::NotShown => "not shown",
        }
    }
}

/// A verdict with its reason.
struct ReasonedVerdict(ClauseVerdict, String);

impl ReasonedVerdict {
    fn of(does_it: bool, text: String) -> Self {
        ReasonedVerdict(if does_it { ClauseVerdict::Yes } else { ClauseVerdict::No }, text)
    }

    fn not_shown(text: &str) -> Self {
        ReasonedVerdict(ClauseVerdict::NotShown, text.to_owned())
    }
}

/// Judges a client by its runs.
pub(crate) fn judge(scenarios: &[ScenarioRuns], first: Option<Family>, delay: &Delay) -> Vec<Clause> {
    let both = runs_of(scenarios, BOTH);
    let late_a = runs_of(scenarios, &record_scenario(Family::Ipv4, "late"));
    let late_aaaa = runs_of(scenarios, &record_scenario(Family::Ipv6, "late"));
    let dead = runs_of(scenarios, &path_scenario(Family::Ipv6, "first-dead"));
    let nat64 = runs_of(scenarios, "nat64");
    vec![
        clause(RFC, "3", "query AAAA, and A right after it", judge_queries(both)),
        clause(RFC, "3", "do not wait for A when AAAA is there", judge_wait(late_a, Family::Ipv6)),
        clause(RFC, "3", "wait 50 ms for AAAA when A is there", judge_wait(late_aaaa, Family::Ipv4)),
        clause(RFC, "4", "try IPv6 first", judge_first(both, first)),
        clause(RFC, "4", "alternate the families of addresses", judge_order(dead)),
        clause(RFC, "5", "start the next attempt after 100 ms to 2 s", judge_delay(delay)),
        clause(RFC, "7", "reach IPv4 servers through NAT64", judge_success(nat64)),
        clause(DRAFT, "", "query HTTPS records too", judge_https(both)),
    ]
}

fn clause(document: &str, section: &str, asks: &'static str, found: ReasonedVerdict) -> Clause {
    let source = if section.is_empty() { document.to_owned() } else { format!("{document}, {section}") };
    let ReasonedVerdict(verdict, found) = found;
    Clause { source, asks, verdict, found }
}
