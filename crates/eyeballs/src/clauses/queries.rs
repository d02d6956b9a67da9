//! The clauses about DNS queries.

use crate::clauses::{ClauseVerdict, NOT_RUN, ReasonedVerdict};
use crate::reaction::other_family;
use crate::run::Run;
use crate::scenario::{family_label, record_type};
use crate::times::format_time;
use stacklab_analysis::statistics::median;
use stacklab_model::{Family, count};

/// Queries that are so close were made one right after the other, ms.
const MAX_QUERY_GAP_MS: f64 = 10.0;
/// An attempt that follows a late answer by less waited for it, ms.
const CLOCK_MARGIN_MS: f64 = 5.0;
/// The type of a record that binds services to a name (RFC 9460).
const HTTPS: &str = "HTTPS";

/// When a record was first asked for.
fn query_ms(run: &Run, record: &str) -> Option<f64> {
    run.queries.iter().find(|query| query.record == record).map(|query| query.at_ms)
}

/// When a record was first answered.
fn answer_ms(run: &Run, record: &str) -> Option<f64> {
    run.queries.iter().find(|query| query.record == record)?.answered_ms
}

pub(super) fn judge_queries(runs: &[Run]) -> ReasonedVerdict {
    let mut gaps = Vec::new();
    for run in runs {
        match (query_ms(run, "AAAA"), query_ms(run, "A")) {
            (Some(aaaa), Some(a)) => gaps.push(a - aaaa),
            (Some(_), None) => return ReasonedVerdict(ClauseVerdict::No, "A is not queried".to_owned()),
            (None, Some(_)) => return ReasonedVerdict(ClauseVerdict::No, "AAAA is not queried".to_owned()),
            (None, None) => return ReasonedVerdict::not_shown("neither was queried"),
        }
    }
    let Some(middle) = median(&gaps) else { return ReasonedVerdict::not_shown(NOT_RUN) };
    let is_right = gaps.iter().all(|gap| (0.0..=MAX_QUERY_GAP_MS).contains(gap));
    let text = match middle {
        0.0.. => format!("A {} after AAAA", format_time(middle)),
        _ => format!("A first, AAAA {} after it", format_time(-middle)),
    };
    ReasonedVerdict::of(is_right, text)
}

/// Whether a family, whose address is known, is tried before the late answer for the other.
pub(super) fn judge_wait(runs: &[Run], family: Family) -> ReasonedVerdict {
    if runs.is_empty() {
        return ReasonedVerdict::not_shown(NOT_RUN);
    }
    let late = other_family(family);
    let mut waits = Vec::new();
    for run in runs {
        let end = answer_ms(run, record_type(late)).map_or(f64::INFINITY, |late| late - CLOCK_MARGIN_MS);
        let attempt = run.first_attempt(family).filter(|attempt| attempt.at_ms < end);
        if let (Some(attempt), Some(answered)) = (attempt, answer_ms(run, record_type(family))) {
            waits.push(attempt.at_ms - answered);
        }
    }
    let label = family_label(family);
    let known = record_type(family);
    let late = record_type(late);
    match median(&waits) {
        None => ReasonedVerdict(ClauseVerdict::No, format!("waits for {late}, which came 1 s late")),
        Some(wait) if waits.len() == runs.len() => ReasonedVerdict(
            ClauseVerdict::Yes,
            format!("{label} SYN {} after the {known} answer", format_time(wait)),
        ),
        Some(_) => {
            let waited = runs.len() - waits.len();
            ReasonedVerdict(
                ClauseVerdict::No,
                format!("waits for {late} in {waited} of {}", count(runs.len(), "run")),
            )
        }
    }
}

/// Whether a client asks for the HTTPS record, and what it does with the answer.
pub(super) fn judge_https(runs: &[Run]) -> ReasonedVerdict {
    let asked = runs.iter().filter(|run| query_ms(run, HTTPS).is_some()).count();
    let mut text = format!("queried in {asked} of {}", count(runs.len(), "run"));
    let mut waits = Vec::new();
    let mut ports: Vec<u16> = Vec::new();
    for run in runs {
        if let (Some(answered), Some(attempt)) = (answer_ms(run, HTTPS), run.attempts.first()) {
            waits.push(attempt.at_ms - answered);
            if !ports.contains(&attempt.port) {
                ports.push(attempt.port);
            }
        }
    }
    if let Some(wait) = median(&waits) {
        let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
        text.push_str(&match wait {
            0.0.. => format!(", SYN to port {ports} {} after its answer", format_time(wait)),
            _ => format!(", SYN to port {ports} before its answer"),
        });
    }
    ReasonedVerdict::of(asked == runs.len(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::{query, run};
    use Family::{Ipv4, Ipv6};

    #[test]
    fn knows_the_order_of_queries() {
        let mut six_first = run(&[(Ipv6, 1.0)], Some(Ipv6));
        six_first.queries = vec![query("AAAA", 0.0, 0.1), query("A", 0.2, 0.3)];
        assert_eq!(judge_queries(&[six_first.clone()]).0, ClauseVerdict::Yes);
        let mut four_first = six_first.clone();
        four_first.queries = vec![query("A", 0.0, 0.1), query("AAAA", 0.2, 0.3)];
        let ReasonedVerdict(verdict, text) = judge_queries(&[four_first.clone()]);
        assert_eq!((verdict, text.as_str()), (ClauseVerdict::No, "A first, AAAA 0.2 ms after it"));
        four_first.queries.pop();
        assert_eq!(judge_queries(&[six_first, four_first]).1, "AAAA is not queried");
    }

    #[test]
    fn knows_who_waits_for_a_late_answer() {
        let mut prompt = run(&[(Ipv4, 51.0), (Ipv6, 1_002.0)], Some(Ipv4));
        prompt.queries = vec![query("AAAA", 0.0, 1_000.0), query("A", 0.2, 0.5)];
        let ReasonedVerdict(verdict, text) = judge_wait(&[prompt.clone()], Ipv4);
        assert_eq!((verdict, text.as_str()), (ClauseVerdict::Yes, "IPv4 SYN 50 ms after the A answer"));
        let mut patient = run(&[(Ipv6, 1_001.0), (Ipv4, 1_200.0)], Some(Ipv6));
        patient.queries.clone_from(&prompt.queries);
        assert_eq!(judge_wait(&[patient.clone()], Ipv4).1, "waits for AAAA, which came 1 s late");
        assert_eq!(judge_wait(&[prompt, patient], Ipv4).1, "waits for AAAA in 1 of 2 runs");
    }

    #[test]
    fn knows_what_follows_an_https_record() {
        let mut asking = run(&[(Ipv6, 1.0)], Some(Ipv6));
        asking.queries = vec![query("HTTPS", 0.0, 0.4), query("AAAA", 0.1, 0.5)];
        asking.attempts[0].port = 443;
        let ReasonedVerdict(verdict, text) = judge_https(std::slice::from_ref(&asking));
        assert_eq!(verdict, ClauseVerdict::Yes);
        assert_eq!(text, "queried in 1 of 1 run, SYN to port 443 0.6 ms after its answer");
        asking.queries[0].answered_ms = Some(2.0);
        let ReasonedVerdict(verdict, text) = judge_https(&[asking, run(&[(Ipv6, 1.0)], Some(Ipv6))]);
        assert_eq!(verdict, ClauseVerdict::No);
        assert_eq!(text, "queried in 1 of 2 runs, SYN to port 443 before its answer");
    }
}
