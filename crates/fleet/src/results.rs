//! From the results in the store to a record for each pair, and to verdicts.

use crate::FleetError;
use crate::message::BlockResult;
use crate::store::{BlockKey, CampaignRow, PairProgress, Store};
use crate::study::{FleetStudy, study_of};
use stacklab_analysis::{Blocks, OverPairs, pair_answers};
use stacklab_model::{BlockSummary, CpuScope, FleetFindings, FleetPair, Until, count};
use stacklab_store::{Campaign, Record, StoreError};
use std::path::Path;

/// Writes the record of a pair: a file as that of `stacklab run`. If it fails, no file is left.
pub fn write_record(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
    path: &Path,
) -> Result<Record, FleetError> {
    let (row, results) = read_pair(store, campaign, pair)?;
    let mut record = Record::create(path, &row).map_err(campaign_error)?;
    if let Err(error) = put_all(&mut record, &results) {
        drop(record);
        // Half a record would be taken for a whole one.
        let _ = std::fs::remove_file(path);
        return Err(campaign_error(error));
    }
    Ok(record)
}

/// The record of a pair in memory, for its findings.
pub fn pair_record(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
) -> Result<Record, FleetError> {
    let (row, results) = read_pair(store, campaign, pair)?;
    let mut record = Record::in_memory(&pair.name(), &row).map_err(campaign_error)?;
    put_all(&mut record, &results).map_err(campaign_error)?;
    Ok(record)
}

/// What the record of a pair has: its campaign, and its results.
fn read_pair(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
) -> Result<(Campaign, Vec<BlockResult>), FleetError> {
    let study = study_of(campaign)?;
    let results: Vec<BlockResult> =
        blocks(store, campaign, pair)?.into_iter().map(|(_, result)| result).collect();
    let Some(first) = results.first() else {
        return Err(FleetError::Usage(format!("{} has no result yet", pair.name())));
    };
    let is_one_scope = results.iter().all(|one| one.cpu_scope == first.cpu_scope);
    let row = Campaign {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ns: campaign.created_ns.unsigned_abs(),
        study_name: study.name,
        study_text: study.text,
        scale: study.scale,
        settings: study.settings,
        seed: study.seed,
        testbed_description: format!("{} {}", pair.sender, first.path),
        cpu_scope: if is_one_scope { first.cpu_scope } else { CpuScope::Various },
        sample_period_ns: None,
    };
    Ok((row, results))
}

fn put_all(record: &mut Record, results: &[BlockResult]) -> Result<(), StoreError> {
    for result in results {
        for host in &result.hosts {
            record.put_host(host)?;
        }
        record.put_runs(&result.runs)?;
    }
    Ok(())
}

fn campaign_error(error: StoreError) -> FleetError {
    FleetError::Campaign(error.into())
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
    let has_ended = store.is_over(&campaign.id)?;
    let pairs = store.progress(&campaign.id)?.into_iter().filter(|pair| pair.blocks.done > 0);
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
    let settles = study.rule.until == Until::Verdict;
    let mut over = OverPairs::new(&study.title, questions.clone());
    for Pair { name, is_whole, source } in pairs {
        let mut counted = FleetPair { name, blocks: 0, valid_runs: 0, invalid_runs: 0 };
        let mut figures = vec![Blocks::default(); questions.len()];
        for (block, found) in summaries(source, questions.len())? {
            add(&mut counted, &mut figures, &found)
                .map_err(|reason| other_version(&format!("block {block} of {}", counted.name), &reason))?;
        }
        over.add(counted, pair_answers(&questions, &figures, settles, is_whole));
    }
    Ok(over.finish(has_ended))
}

/// Adds the summary of a block to its pair: they need no more memory than the figures themselves.
fn add(pair: &mut FleetPair, figures: &mut [Blocks], summary: &BlockSummary) -> Result<(), String> {
    let [valid, all] = summary.runs;
    let found = summary.figures.len();
    let expected = figures.len();
    if found != expected {
        return Err(format!("it has {}, and the study has {expected}", count(found, "comparison")));
    }
    if valid > all {
        return Err(format!("it has {valid} valid runs of {all}"));
    }
    pair.blocks += u32::from(all > 0);
    pair.valid_runs += valid as usize;
    pair.invalid_runs += (all - valid) as usize;
    for (blocks, found) in figures.iter_mut().zip(&summary.figures) {
        blocks.add(found);
    }
    Ok(())
}

/// The summaries of a pair's blocks that have a result, in order.
pub(crate) fn summaries(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
) -> Result<Vec<(u32, BlockSummary)>, FleetError> {
    let mut summaries = Vec::new();
    for (block, text) in store.summaries(&campaign.id, pair.pair)? {
        let summary = serde_json::from_str(&text).map_err(|error| {
            let what = format!("the summary of {}, pair {}, block {block}", campaign.id, pair.pair);
            other_version(&what, &error.to_string())
        })?;
        summaries.push((block, summary));
    }
    Ok(summaries)
}

pub(crate) fn blocks(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
) -> Result<Vec<(BlockKey, BlockResult)>, FleetError> {
    let mut results = Vec::new();
    for (key, text) in store.results(&campaign.id, pair.pair)? {
        let result = serde_json::from_str(&text)
            .map_err(|error| other_version(&format!("the result of {key}"), &error.to_string()))?;
        results.push((key, result));
    }
    Ok(results)
}

fn other_version(what: &str, error: &str) -> FleetError {
    FleetError::Usage(format!("{what} was not made by this version of stacklab: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{result, study};
    use crate::store::{AgentInfo, Class, NewCampaign, NewPair};

    #[test]
    fn a_record_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path().join("fleet.db").to_str().unwrap()).unwrap();
        let [sender, receiver] = ["a", "b"].map(|name| AgentInfo::new(name, &[], &[], &[]).unwrap());
        store.put_agents([&sender, &receiver], i64::MAX).unwrap();
        let pair = NewPair { sender, receiver, skipped: None };
        let campaign = NewCampaign {
            id: "lab".to_owned(),
            created_ns: 1,
            request: serde_json::to_string(&study()).unwrap(),
            class: Class::Exclusive,
            most_attempts: 2,
            pairs: vec![pair],
            order: vec![0, 0],
        };
        store.put_campaign(&campaign).unwrap();
        let campaign = store.campaign(Some("lab")).unwrap().unwrap();
        let path = folder.path().join("pair.stacklab");
        for (number, block) in [(1, 0), (0, 0)] {
            let lease = store.reserve("lab", 0, 1).unwrap().unwrap();
            let text = serde_json::to_string(&result(block)).unwrap();
            store.commit(&lease.key, 0, &text, "{}").unwrap();
            let pair = store.progress("lab").unwrap().remove(0);
            let written = write_record(&mut store, &campaign, &pair, &path);
            let in_memory = pair_record(&mut store, &campaign, &pair);
            // The second result has the runs of the first one, as those that earlier versions took.
            assert_eq!((written.is_ok(), in_memory.is_ok()), (number == 1, number == 1));
            assert_eq!(path.exists(), number == 1);
            if let Ok(record) = in_memory {
                assert_eq!(record.run_count().unwrap(), written.unwrap().run_count().unwrap());
                std::fs::remove_file(&path).unwrap();
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the store is left");
        // A file that was there stays.
        std::fs::write(&path, "mine").unwrap();
        let pair = store.progress("lab").unwrap().remove(0);
        assert!(write_record(&mut store, &campaign, &pair, &path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
