//! From the results in the store to a record for each pair.

use crate::FleetError;
use crate::message::BlockResult;
use crate::store::{BlockKey, CampaignRow, PairProgress, Store};
use crate::study::{FleetStudy, study_of};
use crate::summary::PairSummary;
use stacklab_analysis::OverPairs;
use stacklab_model::{BlockSummary, CpuScope, FleetFindings};
use stacklab_store::{Campaign, Record};
use std::path::Path;

/// Writes the record of a pair: a file as that of `stacklab run`.
///
/// # Errors
/// If the pair has no result, or the file exists.
pub fn write_record(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
    path: &Path,
) -> Result<Record, FleetError> {
    let study = study_of(campaign)?;
    let parsed: Vec<BlockResult> =
        blocks(store, campaign, pair)?.into_iter().map(|(_, result)| result).collect();
    let Some(first) = parsed.first() else {
        return Err(FleetError::Usage(format!("{} -> {} has no result yet", pair.sender, pair.receiver)));
    };
    let row = Campaign {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ns: campaign.created_ns.unsigned_abs(),
        study_name: study.name,
        study_text: study.text,
        scale: study.scale,
        settings: study.settings,
        seed: study.seed,
        testbed_description: format!("{} {}", pair.sender, first.path),
        cpu_scope: if parsed.iter().all(|one| one.cpu_scope == first.cpu_scope) {
            first.cpu_scope
        } else {
            CpuScope::Various
        },
        sample_period_ns: None,
    };
    let failed = |error: stacklab_store::StoreError| FleetError::Campaign(error.into());
    let mut record = Record::create(path, &row).map_err(failed)?;
    for result in &parsed {
        for host in &result.hosts {
            record.put_host(host).map_err(failed)?;
        }
        record.put_runs(&result.runs).map_err(failed)?;
    }
    Ok(record)
}

/// A pair with results, and where its summaries are.
pub(crate) struct Pair<T> {
    pub name: String,
    /// Whether every block has a result.
    pub is_whole: bool,
    pub source: T,
}

/// The verdicts of each pair of a campaign, and over all pairs.
pub fn over_pairs(store: &mut Store, campaign: &CampaignRow) -> Result<FleetFindings, FleetError> {
    let has_ended = store.has_ended(&campaign.id)?;
    let pairs = store.progress(&campaign.id)?.into_iter().filter(|pair| pair.done > 0);
    let pairs = pairs.map(|pair| Pair { name: pair.name(), is_whole: pair.is_whole(), source: pair });
    over(&study_of(campaign)?, pairs, has_ended, |pair, _| summaries(store, campaign, &pair))
}

/// The verdicts of pairs, whose summaries are read one after the other: only one pair's are in memory.
pub(crate) fn over<T>(
    study: &FleetStudy,
    pairs: impl Iterator<Item = Pair<T>>,
    has_ended: bool,
    mut summaries: impl FnMut(T, usize) -> Result<Vec<(u32, BlockSummary)>, FleetError>,
) -> Result<FleetFindings, FleetError> {
    let (study, _) = study.check()?;
    let questions = study.questions();
    let mut over = OverPairs::new(&study.title, questions.clone());
    for Pair { name, is_whole, source } in pairs {
        let mut summary = PairSummary::new(&study, &questions, name);
        for (block, found) in summaries(source, questions.len())? {
            summary
                .add(&found)
                .map_err(|reason| other_version(&format!("block {block} of {}", summary.name()), &reason))?;
        }
        let (counted, answers) = summary.finish(is_whole);
        over.add(counted, answers);
    }
    Ok(over.finish(has_ended))
}

/// The summaries of a pair's blocks that have a result, in order.
pub(crate) fn summaries(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
) -> Result<Vec<(u32, BlockSummary)>, FleetError> {
    let read = |(block, text): (u32, String)| {
        let what = || format!("the summary of {}, pair {}, block {block}", campaign.id, pair.pair);
        serde_json::from_str(&text)
            .map(|summary| (block, summary))
            .map_err(|error| other_version(&what(), &error.to_string()))
    };
    store.summaries(&campaign.id, pair.pair)?.into_iter().map(read).collect()
}

/// The blocks of a pair that have a result, in order.
pub(crate) fn blocks(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
) -> Result<Vec<(BlockKey, BlockResult)>, FleetError> {
    let results = store.results(&campaign.id, pair.pair)?;
    results.into_iter().map(|(key, text)| read(&key, &text).map(|result| (key, result))).collect()
}

fn read(key: &BlockKey, text: &str) -> Result<BlockResult, FleetError> {
    serde_json::from_str(text)
        .map_err(|error| other_version(&format!("the result of {key}"), &error.to_string()))
}

fn other_version(what: &str, error: &str) -> FleetError {
    FleetError::Usage(format!("{what} was not made by this version of stacklab: {error}"))
}
