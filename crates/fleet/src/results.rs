//! From the results in the store to a record for each pair.

use crate::FleetError;
use crate::coordinator::study_of;
use crate::message::BlockResult;
use crate::store::{BlockKey, CampaignRow, PairProgress, Store};
use stacklab_analysis::OverPairs;
use stacklab_campaign::record::conclude;
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

/// The verdicts of each pair, and over all pairs. Only one pair's runs are in memory.
pub fn over_pairs(store: &mut Store, campaign: &CampaignRow) -> Result<FleetFindings, FleetError> {
    let folder = tempfile::tempdir()
        .map_err(|reason| FleetError::System { attempted: "make a folder for records", reason })?;
    let mut over = OverPairs::new();
    for pair in store.progress(&campaign.id)?.into_iter().filter(|pair| pair.done > 0) {
        let path = folder.path().join(format!("{}.stacklab", pair.pair));
        let record = write_record(store, campaign, &pair, &path)?;
        over.add(&pair.name(), &conclude(&record)?);
        drop(record);
        let _ = std::fs::remove_file(path);
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
    serde_json::from_str(text).map_err(|error| {
        FleetError::Usage(format!("the result of {key} was not made by this version of stacklab: {error}"))
    })
}
