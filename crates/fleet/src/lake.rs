//! A lake: campaigns as Parquet files, for other programs and for reports without the store.
//!
//! `runs/campaign=NAME/day=DATE/pair-0000.parquet` has every run, `comparisons/campaign=NAME/pair-0000.parquet` what
//! each block gave for each comparison, and `comparisons/campaign=NAME/campaign.json` the study and the pairs.

use crate::FleetError;
use crate::message::check_name;
use crate::results::{self, Pair, over};
use crate::store::{CampaignRow, PairProgress, Store};
use crate::study::{FleetStudy, study_of};
use serde::{Deserialize, Serialize};
use stacklab_model::{FleetFindings, RunRecord};
use stacklab_report::{LakePair, comparisons_file, lake_files, read_comparisons};
use stacklab_store::replace;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;
const CAMPAIGN: &str = "campaign.json";

/// What a report needs of a campaign besides its comparisons.
#[derive(Debug, Serialize, Deserialize)]
struct LakeCampaign {
    format: u32,
    created_ns: i64,
    has_ended: bool,
    study: FleetStudy,
    pairs: Vec<LakeCampaignPair>,
}

/// The one key that every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct LakeCampaignPair {
    pair: u32,
    name: String,
    is_whole: bool,
}

/// Writes the comparisons of a campaign, and its runs if `with_runs`, one pair after the other. Returns the number of
/// pairs; none if there is no result yet. Earlier files of the same pairs are replaced.
pub fn export(
    store: &mut Store,
    campaign: &CampaignRow,
    lake: &Path,
    with_runs: bool,
) -> Result<usize, FleetError> {
    // Before the pairs: results that come meanwhile do not end it.
    let has_ended = store.is_over(&campaign.id)?;
    let mut pairs = store.progress(&campaign.id)?;
    pairs.retain(|pair| pair.blocks.done > 0);
    if pairs.is_empty() {
        return Ok(0);
    }
    let study = study_of(campaign)?;
    let questions = study.check()?.0.questions();
    let [runs, comparisons] = ["runs", "comparisons"].map(|kind| folder(lake, kind, &campaign.id));
    fs::create_dir_all(&comparisons).map_err(describe_failure("create", &comparisons))?;
    let _lock = lock(&comparisons)?;
    let mut listed = Vec::new();
    for pair in &pairs {
        let blocks = results::summaries(store, campaign, pair)?;
        let file = comparisons.join(of(pair).file_name());
        write(&file, &comparisons_file(of(pair), &questions, &blocks))?;
        if with_runs {
            export_runs(store, campaign, pair, &runs)?;
        }
        listed.push(LakeCampaignPair { pair: pair.pair, name: pair.name(), is_whole: pair.is_whole() });
    }
    let created_ns = campaign.created_ns;
    let described = LakeCampaign { format: FORMAT, created_ns, has_ended, study, pairs: listed };
    let json = serde_json::to_vec_pretty(&described).expect("a campaign is JSON");
    write(&comparisons.join(CAMPAIGN), &json)?;
    Ok(pairs.len())
}

fn export_runs(
    store: &mut Store,
    campaign: &CampaignRow,
    pair: &PairProgress,
    folder: &Path,
) -> Result<(), FleetError> {
    let runs: Vec<(u32, RunRecord)> = results::blocks(store, campaign, pair)?
        .into_iter()
        .flat_map(|(key, result)| result.runs.into_iter().map(move |run| (key.attempt, run)))
        .collect();
    fs::create_dir_all(folder).map_err(describe_failure("create", folder))?;
    let mut days = BTreeSet::new();
    for (day, bytes) in lake_files(of(pair), &runs) {
        let day = folder.join(day);
        fs::create_dir_all(&day).map_err(describe_failure("create", &day))?;
        write(&day.join(of(pair).file_name()), &bytes)?;
        days.insert(day);
    }
    remove_other_days(folder, &days, &of(pair).file_name())
        .map_err(describe_failure("remove an earlier export below", folder))
}

/// The findings of a campaign of a lake; of the newest one without a name. They are those of its store.
pub fn over_pairs(lake: &Path, campaign: Option<&str>) -> Result<FleetFindings, FleetError> {
    let (folder, campaign) = find_campaign(lake, campaign)?;
    let pairs = campaign.pairs.into_iter().map(|LakeCampaignPair { pair, name, is_whole }| {
        let path = folder.join(LakePair { number: pair, sender: "", receiver: "" }.file_name());
        Pair { name, is_whole, source: path }
    });
    over(&campaign.study, pairs, campaign.has_ended, |path, comparisons| {
        let file = File::open(&path).map_err(describe_failure("read", &path))?;
        read_comparisons(file, comparisons)
            .map_err(|reason| describe_failure("read", &path)(io::Error::new(ErrorKind::InvalidData, reason)))
    })
}

fn find_campaign(lake: &Path, campaign: Option<&str>) -> Result<(PathBuf, LakeCampaign), FleetError> {
    let folders = match campaign {
        Some(name) => {
            check_name("a campaign", name)?;
            vec![folder(lake, "comparisons", name)]
        }
        None => {
            let all = lake.join("comparisons");
            let entries = fs::read_dir(&all).map_err(describe_failure("read the lake", &all))?;
            entries.flatten().map(|entry| entry.path()).filter(|path| path.join(CAMPAIGN).is_file()).collect()
        }
    };
    let mut newest: Option<(PathBuf, LakeCampaign)> = None;
    for folder in folders {
        let path = folder.join(CAMPAIGN);
        let text = fs::read(&path).map_err(describe_failure("read", &path))?;
        let wrong = |reason| describe_failure("read", &path)(io::Error::new(ErrorKind::InvalidData, reason));
        let Format { format } = serde_json::from_slice(&text).map_err(wrong)?;
        if format != FORMAT {
            // Among others, a campaign of another version is passed over.
            if campaign.is_none() {
                continue;
            }
            return Err(FleetError::Usage(format!(
                "{} has format {format}, and this version of stacklab reads format {FORMAT}: export the campaign again",
                path.display()
            )));
        }
        let found: LakeCampaign = serde_json::from_slice(&text).map_err(wrong)?;
        if newest.as_ref().is_none_or(|(_, newest)| newest.created_ns < found.created_ns) {
            newest = Some((folder, found));
        }
    }
    newest.ok_or_else(|| {
        let lake = lake.display();
        FleetError::Usage(format!(
            "{lake} has no campaign: write one with `stacklab fleet export --lake {lake}`"
        ))
    })
}

fn of(pair: &PairProgress) -> LakePair<'_> {
    LakePair { number: pair.pair, sender: &pair.sender, receiver: &pair.receiver }
}

fn folder(lake: &Path, kind: &str, campaign: &str) -> PathBuf {
    lake.join(kind).join(format!("campaign={campaign}"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    replace(path, bytes).map_err(describe_failure("write", path))
}

fn describe_failure(attempted: &str, path: &Path) -> impl FnOnce(io::Error) -> FleetError {
    let attempted = format!("{attempted} {}", path.display());
    move |reason| FleetError::System { attempted, reason }
}

/// Keeps other exports out of the folder of a campaign: two would write the same files.
fn lock(folder: &Path) -> Result<File, FleetError> {
    let lock = File::open(folder).map_err(describe_failure("open", folder))?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(FleetError::Usage(format!("another export writes to {}: wait for it", folder.display())))
        }
        // Some network file systems lock no folders.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(lock),
    }
}

/// Removes a pair's files of days of which it has no run: a campaign of the same name was exported before.
fn remove_other_days(folder: &Path, days: &BTreeSet<PathBuf>, file: &str) -> io::Result<()> {
    for day in fs::read_dir(folder)? {
        let day = day?.path();
        if !days.contains(&day)
            && let Err(error) = fs::remove_file(day.join(file))
            && ![ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind())
        {
            return Err(error);
        }
    }
    Ok(())
}
