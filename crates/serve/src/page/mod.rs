//! Builds the document that the page shows from a record.

mod host_rows;
mod published;

use crate::ServeError;
use serde::Serialize;
use stacklab_analysis::{findings, limit};
use stacklab_campaign::record::Recorded;
use stacklab_model::{Cell, LimitedBy, Metric, RunRecord, Trial};
use stacklab_report::page::{Detailed, Page, PageSource, RunDetail, detail, page, tool_end};
use stacklab_store::Record;
use std::collections::HashMap;

/// Maximum JSON size of a document in one file: with the page's script and style, the file stays below a megabyte.
pub const ROOM: usize = 880_000;
/// Maximum JSON size of the runs' details in a document.
const DETAILS: usize = 400_000;
/// Consecutive runs that do not fit, after which the document counts as full.
const MISSES: usize = 20;

/// The document of a record, at most this many bytes of JSON. Includes the details of as many runs as fit, possibly
/// none.
pub fn document(record: &Record, room: usize) -> Result<Page, ServeError> {
    let recorded = Recorded::read(record)?;
    let campaign = recorded.campaign();
    let findings = findings(&campaign);
    let metrics: Vec<Metric> = campaign.probes.iter().flat_map(|probe| &probe.metrics).copied().collect();
    let most = |cell: &Cell, metric| limit(cell, metric, campaign.topology, campaign.link_config);
    let limits: Vec<(Cell, Metric, f64)> = campaign
        .cells
        .iter()
        .flat_map(|cell| metrics.iter().map(move |metric| (cell, *metric)))
        .filter_map(|(cell, metric)| Some((cell.clone(), metric, most(cell, metric)?)))
        .collect();
    let mut document = page(&PageSource {
        findings: &findings,
        link_config: campaign.link_config,
        hosts: campaign.hosts,
        kinds: recorded.kinds(),
        rows: &host_rows::of(recorded.study()),
        runs: campaign.runs,
        limits: &limits,
        limited_by: LimitedBy::of(campaign.topology),
        published: &published::of(recorded.study_name())?,
        details: &[],
    });
    let filled = if room > 0 { bytes(&document) } else { 0 };
    document.details = details(record, campaign.runs, room.saturating_sub(filled).min(DETAILS))?;
    Ok(document)
}

/// The host reports of one run; `None` if the record has no such run.
pub fn run_detail(record: &Record, block: u32, position: u32) -> Result<Option<RunDetail>, ServeError> {
    let runs = record.runs()?;
    let is_meant = |trial: &Trial| (trial.block, trial.position) == (block, position);
    let Some(place) = runs.iter().position(|run| is_meant(&run.trial)) else { return Ok(None) };
    let whole = with_reports(record, &runs[place])?;
    detail_of(record, &whole, &runs, Detailed::Fully).map(Some)
}

/// The details of a run with its host reports; of an imported one, which has none, its intervals.
fn detail_of(
    record: &Record,
    whole: &RunRecord,
    runs: &[RunRecord],
    detailed: Detailed,
) -> Result<RunDetail, ServeError> {
    let mut detail = detail(whole, &beside(record, runs, whole)?, detailed);
    if let Some(series) = record.tool_series(&whole.trial)? {
        detail.ends.push(tool_end(&series));
    }
    Ok(detail)
}

fn with_reports(record: &Record, run: &RunRecord) -> Result<RunRecord, ServeError> {
    Ok(RunRecord { host_reports: record.host_reports(&run.trial)?, ..run.clone() })
}

/// The other arms of an interleaved run's trial, which began with it.
fn beside(record: &Record, runs: &[RunRecord], run: &RunRecord) -> Result<Vec<RunRecord>, ServeError> {
    let began = |run: &RunRecord| (run.trial.block, run.started_unix_ns);
    let others = runs.iter().filter(|other| {
        !run.spec.schedule.is_alone()
            && began(other) == began(run)
            && other.trial.position != run.trial.position
    });
    others.map(|other| with_reports(record, other)).collect()
}

/// The details of as many runs as fit: first the invalid runs, then block by block, so that every cell has some
/// before any has many.
fn details(record: &Record, runs: &[RunRecord], room: usize) -> Result<Vec<RunDetail>, ServeError> {
    let mut wanted: Vec<&RunRecord> = runs.iter().collect();
    // A few invalid runs of each kind are enough to show the reason.
    let mut shown: HashMap<&str, usize> = HashMap::new();
    wanted.sort_by_cached_key(|run| {
        let reason = match &run.status {
            stacklab_model::RunStatus::Invalid(reasons) => reasons.first().map(String::as_str),
            stacklab_model::RunStatus::Valid => None,
        };
        let rank = reason.map(|reason| {
            let seen = shown.entry(reason).or_default();
            *seen += 1;
            *seen
        });
        (rank.is_none_or(|rank| rank > 3), run.trial.block, run.trial.position)
    });
    let mut details = fill(wanted, room, |run, shown| {
        let whole = with_reports(record, run)?;
        let detailed = if shown < 24 { Detailed::Fully } else { Detailed::Briefly };
        let detail = detail_of(record, &whole, runs, detailed)?;
        let bytes = bytes(&detail);
        Ok((detail, bytes))
    })?;
    details.sort_by_key(|detail| (detail.block, detail.position));
    Ok(details)
}

fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len())
}

/// Makes as many items as fit, in order. An item that is too large for the remaining space is skipped.
fn fill<T, D>(
    wanted: Vec<T>,
    room: usize,
    mut make: impl FnMut(T, usize) -> Result<(D, usize), ServeError>,
) -> Result<Vec<D>, ServeError> {
    let (mut made, mut left, mut misses) = (Vec::new(), room, 0);
    for one in wanted {
        if left == 0 || misses == MISSES {
            break;
        }
        let (detail, bytes) = make(one, made.len())?;
        if bytes > left {
            misses += 1;
            continue;
        }
        misses = 0;
        left -= bytes;
        made.push(detail);
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_room_nothing_is_made_and_what_is_too_large_leaves_room_to_others() {
        let none =
            fill(vec![1], 0, |_, _| -> Result<((), usize), ServeError> { panic!("nothing is asked for") });
        assert!(none.unwrap().is_empty());
        let of = |sizes: Vec<usize>| fill(sizes, 100, |size, _| Ok((size, size))).unwrap();
        assert_eq!(of(vec![40, 101, 30, 31, 30, 1]), [40, 30, 30]);
        // After MISSES consecutive items that are too large, the rest is skipped.
        assert_eq!(of([vec![90], vec![50; MISSES], vec![1]].concat()), [90]);
    }
}
