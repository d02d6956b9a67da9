//! The lanes of a run's timeline: one for each type of DNS query, one for each connection attempt, the first byte and
//! the end. Times are those of the run, ms.

use crate::print::describe_end;
use crate::run::{ConnectionAttempt, LoggedQuery, RefusedBy, Run};
use crate::scenario::{family_label, record_type};
use crate::times::format_time;
use stacklab_model::Family;

/// Attempts that have lanes; the rest are counted.
const MAX_ATTEMPTS: usize = 8;

/// What a lane is about, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneSubject {
    Family(Family),
    /// Both families, or neither.
    Neutral,
}

/// A lane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lane {
    pub label: String,
    pub subject: LaneSubject,
    pub bars: Vec<Bar>,
    pub marks: Vec<Mark>,
    /// The times, which stand beside the first mark.
    pub text: String,
}

/// From a question to its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bar {
    pub from_ms: f64,
    pub to_ms: f64,
    /// Whether it was answered; otherwise the bar lasts to the end of the run.
    pub is_answered: bool,
}

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mark {
    pub at_ms: f64,
    pub shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A packet of the client: a query or a SYN.
    Sent,
    Refused,
    FirstByte,
    End,
}

/// The lanes of a run, from above.
pub(super) fn list_lanes(run: &Run) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for record in list_records(run) {
        lanes.push(describe_queries(run, record));
    }
    // Families in the order in which they are tried.
    let mut attempts: Vec<&ConnectionAttempt> = Vec::new();
    for family in list_families(run) {
        attempts.extend(run.attempts.iter().filter(|attempt| attempt.family == family));
    }
    for attempt in attempts.iter().take(MAX_ATTEMPTS) {
        lanes.push(describe_attempt(run, attempt));
    }
    if attempts.len() > MAX_ATTEMPTS {
        let label = format!("and {} more attempts", attempts.len() - MAX_ATTEMPTS);
        lanes.push(Lane {
            label,
            subject: LaneSubject::Neutral,
            bars: Vec::new(),
            marks: Vec::new(),
            text: String::new(),
        });
    }
    for datagram in &run.quic {
        let label = format!("QUIC, {}", family_label(datagram.family));
        let text = format!("{}, UDP to port 443: {} sent", format_time(datagram.at_ms), datagram.datagrams);
        lanes.push(describe_moment(
            label,
            LaneSubject::Family(datagram.family),
            Mark { at_ms: datagram.at_ms, shape: Shape::Sent },
            text,
        ));
    }
    if let Some(first) = &run.first_byte {
        let text = format!("{}, over {}", format_time(first.at_ms), family_label(first.family));
        let mark = Mark { at_ms: first.at_ms, shape: Shape::FirstByte };
        lanes.push(describe_moment("first byte".to_owned(), LaneSubject::Family(first.family), mark, text));
    }
    let text = format!("{}, {}", format_time(run.end.at_ms), describe_end(run));
    let mark = Mark { at_ms: run.end.at_ms, shape: Shape::End };
    lanes.push(describe_moment("end of the program".to_owned(), LaneSubject::Neutral, mark, text));
    lanes
}

/// All moments of a run, for the scale.
pub(super) fn list_times(lanes: &[Lane]) -> Vec<f64> {
    let mut times = Vec::new();
    for lane in lanes {
        times.extend(lane.marks.iter().map(|mark| mark.at_ms));
        for bar in &lane.bars {
            times.extend([bar.from_ms, bar.to_ms]);
        }
    }
    times
}

/// The types of queries, as they first came.
fn list_records(run: &Run) -> Vec<&str> {
    let mut records: Vec<&str> = Vec::new();
    for query in &run.queries {
        if !records.contains(&query.record.as_str()) {
            records.push(&query.record);
        }
    }
    records
}

fn list_families(run: &Run) -> Vec<Family> {
    let mut families = Vec::new();
    for attempt in &run.attempts {
        if !families.contains(&attempt.family) {
            families.push(attempt.family);
        }
    }
    families
}

fn describe_queries(run: &Run, record: &str) -> Lane {
    let queries: Vec<&LoggedQuery> = run.queries.iter().filter(|query| query.record == record).collect();
    let mut bars = Vec::new();
    let mut marks = Vec::new();
    for query in &queries {
        marks.push(Mark { at_ms: query.at_ms, shape: Shape::Sent });
        bars.push(make_bar(query.at_ms, query.answered_ms, run));
    }
    let mut text = queries.first().map_or(String::new(), |query| format_time(query.at_ms));
    if queries.len() > 1 {
        text.push_str(&format!(", {} queries", queries.len()));
    }
    match queries.iter().find_map(|query| query.answered_ms) {
        Some(answered) => text.push_str(&format!(", answered {}", format_time(answered))),
        None => text.push_str(", no answer"),
    }
    let families = [Family::Ipv6, Family::Ipv4];
    let family = families.into_iter().find(|family| record_type(*family) == record);
    let subject = family.map_or(LaneSubject::Neutral, LaneSubject::Family);
    Lane { label: format!("DNS query {record}"), subject, bars, marks, text }
}

fn describe_attempt(run: &Run, attempt: &ConnectionAttempt) -> Lane {
    let ConnectionAttempt { family, address, at_ms, syns, ref repeated_ms, established_ms, refused, .. } =
        *attempt;
    let mut marks = vec![Mark { at_ms, shape: Shape::Sent }];
    for again in repeated_ms {
        marks.push(Mark { at_ms: *again, shape: Shape::Sent });
    }
    let mut text = format_time(at_ms);
    if syns > 1 {
        text.push_str(&format!(", {syns} SYNs"));
    }
    let answered = established_ms.or(refused.map(|refusal| refusal.at_ms));
    match (established_ms, refused) {
        (Some(established), _) => text.push_str(&format!(", connected {}", format_time(established))),
        (None, Some(refusal)) => {
            marks.push(Mark { at_ms: refusal.at_ms, shape: Shape::Refused });
            let by = match refusal.by {
                RefusedBy::Reset => "RST",
                RefusedBy::Icmp => "ICMP",
            };
            text.push_str(&format!(", refused ({by}) {}", format_time(refusal.at_ms)));
        }
        (None, None) => text.push_str(", no answer"),
    }
    Lane {
        label: format!("{}, {address}", family_label(family)),
        subject: LaneSubject::Family(family),
        bars: vec![make_bar(at_ms, answered, run)],
        marks,
        text,
    }
}

fn describe_moment(label: String, subject: LaneSubject, mark: Mark, text: String) -> Lane {
    Lane { label, subject, bars: Vec::new(), marks: vec![mark], text }
}

/// A question and its answer; without an answer, the bar lasts to the end of the run.
fn make_bar(from_ms: f64, answered: Option<f64>, run: &Run) -> Bar {
    let to_ms = answered.unwrap_or(run.end.at_ms).max(from_ms);
    Bar { from_ms, to_ms, is_answered: answered.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Refusal;
    use crate::run::samples::{query, run};
    use Family::{Ipv4, Ipv6};

    #[test]
    fn a_run_has_its_lanes_from_above() {
        let mut fallen_back = run(&[(Ipv6, 1.0), (Ipv4, 202.0)], Some(Ipv4));
        fallen_back.queries = vec![query("A", 0.0, 0.2), query("AAAA", 0.1, 0.4), query("HTTPS", 0.2, 0.5)];
        fallen_back.attempts[0].syns = 2;
        fallen_back.attempts[0].repeated_ms = vec![210.0];
        fallen_back.attempts[1].established_ms = Some(203.0);
        let lanes = list_lanes(&fallen_back);
        let labels: Vec<&str> = lanes.iter().map(|lane| lane.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "DNS query A",
                "DNS query AAAA",
                "DNS query HTTPS",
                "IPv6, ::1",
                "IPv4, 127.0.0.1",
                "first byte",
                "end of the program"
            ]
        );
        assert_eq!(lanes[1].subject, LaneSubject::Family(Ipv6));
        assert_eq!(lanes[1].text, "0.1 ms, answered 0.4 ms");
        assert_eq!(lanes[3].bars, [Bar { from_ms: 1.0, to_ms: 305.0, is_answered: false }]);
        assert_eq!(lanes[3].marks.len(), 2);
        assert_eq!(lanes[3].text, "1.0 ms, 2 SYNs, no answer");
        assert_eq!(lanes[4].bars, [Bar { from_ms: 202.0, to_ms: 203.0, is_answered: true }]);
        assert_eq!(lanes[5].text, "300 ms, over IPv4");
        assert_eq!(lanes[6].text, "305 ms, done");
    }

    #[test]
    fn a_refusal_ends_its_attempt() {
        let mut refused = run(&[(Ipv6, 1.0)], None);
        refused.attempts[0].refused = Some(Refusal { by: RefusedBy::Icmp, at_ms: 1.5 });
        let lanes = list_lanes(&refused);
        assert_eq!(lanes[0].bars, [Bar { from_ms: 1.0, to_ms: 1.5, is_answered: true }]);
        assert_eq!(lanes[0].text, "1.0 ms, refused (ICMP) 1.5 ms");
        assert_eq!(lanes[0].marks[1], Mark { at_ms: 1.5, shape: Shape::Refused });
    }

    #[test]
    fn attempts_beyond_the_lanes_are_counted() {
        let many = run(&[(Ipv6, 1.0); 11], None);
        let lanes = list_lanes(&many);
        assert_eq!(lanes.len(), MAX_ATTEMPTS + 2);
        assert_eq!(lanes[MAX_ATTEMPTS].label, "and 3 more attempts");
    }
}
