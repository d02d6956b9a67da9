//! From the results in the store to a record for each pair.

use crate::FleetError;
use crate::message::BlockResult;
use crate::store::{BlockKey, CampaignRow, PairProgress, Store};
use crate::study::study_of;
use crate::summary::PairSummary;
use stacklab_analysis::OverPairs;
use stacklab_model::{CpuScope, FleetFindings};
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

/// The verdicts of each pair, and over all pairs. Only one pair's figures are in memory.
pub fn over_pairs(store: &mut Store, campaign: &CampaignRow) -> Result<FleetFindings, FleetError> {
    let (study, _) = study_of(campaign)?.check()?;
    let questions = study.questions();
    let mut over = OverPairs::new(&study.title, questions.clone());
    for pair in store.progress(&campaign.id)?.into_iter().filter(|pair| pair.done > 0) {
        let mut summary = PairSummary::new(&study, &questions, pair.name());
        for (block, text) in store.summaries(&campaign.id, pair.pair)? {
            let read = serde_json::from_str(&text).map_err(|error| error.to_string());
            read.and_then(|block| summary.add(&block)).map_err(|error| {
                other_version(
                    &format!("the summary of {}, pair {}, block {block}", campaign.id, pair.pair),
                    &error,
                )
            })?;
        }
        let (counted, answers) = summary.finish(pair.is_whole());
        over.add(counted, answers);
    }
    Ok(over.finish(store.has_ended(&campaign.id)?))
}

/// The blocks of a pair that have a result, in order.
pub fn blocks(
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
