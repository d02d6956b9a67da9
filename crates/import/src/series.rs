//! Intervals of other tools' tests.

use crate::test::nanoseconds;
use stacklab_model::{IntervalRow, Role, ToolSeries};

/// The most rows that are kept of a test, and of a JSON file.
pub(super) const MOST_ROWS: usize = 20_000;
/// How far the end of a row may be from the begin of the next, seconds: tools print rounded times.
const ROUNDED: f64 = 0.011;

/// The longest test, and the shortest interval, seconds.
const LONGEST: f64 = 1e7;
const SHORTEST: f64 = 1e-6;
/// The most bytes and messages of a flow in a row.
const MOST_OF_ROW: f64 = 1e15;

/// An interval of one flow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Part {
    /// Seconds from the begin of the test.
    pub from: f64,
    /// Seconds.
    pub to: f64,
    /// Payload bytes.
    pub bytes: f64,
    /// Messages; 0 where they are not known.
    pub messages: f64,
}

/// The series of flows that one host counted. `None` unless the flows have the same rows, one behind the other.
pub(super) fn of_flows(role: Role, flows: &[&[Part]]) -> Option<ToolSeries> {
    let (first, others) = flows.split_first()?;
    let is_sound = |part: &Part| {
        part.from >= 0.0 && part.to <= LONGEST && part.bytes <= MOST_OF_ROW && part.messages <= MOST_OF_ROW
    };
    let is_whole = flows.iter().all(|flow| flow.iter().all(is_sound))
        && first.len() > 1
        && first.len() <= MOST_ROWS
        && first.windows(2).all(|pair| {
            (pair[0].to - pair[1].from).abs() < ROUNDED && pair[0].from + SHORTEST < pair[1].from
        });
    let is_alike = |other: &&[Part]| {
        other.len() == first.len()
            && other.iter().zip(*first).all(|(one, other)| (one.from - other.from).abs() < ROUNDED)
    };
    if !is_whole || !others.iter().all(is_alike) {
        return None;
    }
    let begin = first[0].from;
    let row = |place: usize| {
        let sum = |of: fn(&Part) -> f64| flows.iter().map(|flow| of(&flow[place])).sum::<f64>();
        IntervalRow {
            start_ns: nanoseconds(first[place].from - begin),
            messages: sum(|part| part.messages).round() as u64,
            bytes: sum(|part| part.bytes).round() as u64,
            delay_mean_ns: None,
        }
    };
    Some(ToolSeries { role, rows: (0..first.len()).map(row).collect() })
}
