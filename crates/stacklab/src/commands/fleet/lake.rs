//! `stacklab fleet export`.

use crate::commands::fleet::campaign;
use crate::commands::fleet::view::{CampaignOptions, no_result};
use crate::failure::{Failure, OTHER};
use crate::output::replace;
use clap::Args;
use stacklab_fleet::results;
use stacklab_fleet::store::Store;
use stacklab_model::RunRecord;
use stacklab_report::{LakePair, lake_files};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    #[command(flatten)]
    pub campaign: CampaignOptions,
    /// The folder below which Parquet files are written: campaign=NAME/day=DATE/pair-N.parquet. An earlier export of
    /// the campaign is replaced
    #[arg(long, value_name = "DIR")]
    pub lake: PathBuf,
}

/// Writes the runs of all pairs as Parquet files, one pair after the other.
pub(crate) fn export(options: &ExportOptions) -> Result<(), Failure> {
    let mut store = Store::open(&options.campaign.store.store)?;
    let row = campaign(&mut store, options.campaign.campaign.as_deref())?;
    let mut pairs = store.progress(&row.id)?;
    pairs.retain(|pair| pair.done > 0);
    if pairs.is_empty() {
        return Err(no_result(&row));
    }
    let folder = options.lake.join(format!("campaign={}", row.id));
    let _lock = lock(&folder)?;
    let mut files = 0;
    for pair in &pairs {
        let blocks = results::blocks(&mut store, &row, pair)?;
        let runs: Vec<(u32, RunRecord)> = blocks
            .into_iter()
            .flat_map(|(key, result)| result.runs.into_iter().map(move |run| (key.attempt, run)))
            .collect();
        let pair = LakePair { number: pair.pair, sender: &pair.sender, receiver: &pair.receiver };
        let mut days = BTreeSet::new();
        for (day, bytes) in lake_files(pair, &runs) {
            let day = folder.join(day);
            fs::create_dir_all(&day).map_err(Failure::step(format!("create {}", day.display())))?;
            replace(&day.join(pair.file_name()), &bytes)?;
            days.insert(day);
        }
        files += days.len();
        remove_other_days(&folder, &days, &pair.file_name())
            .map_err(Failure::step(format!("remove an earlier export below {}", folder.display())))?;
    }
    eprintln!("{} pairs of campaign {}, {files} files: {}", pairs.len(), row.id, folder.display());
    Ok(())
}

/// Creates the folder of a campaign, and keeps other exports out of it: two would write the same files.
fn lock(folder: &Path) -> Result<File, Failure> {
    let create = || Failure::step(format!("create {}", folder.display()));
    fs::create_dir_all(folder).map_err(create())?;
    let lock = File::open(folder).map_err(create())?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Failure::new(OTHER, format!("another export writes to {}: wait for it", folder.display())))
        }
        // Some network file systems lock no folders.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(lock),
    }
}

/// Removes a pair's files of days of which it has no run: a campaign of the same name was exported before.
fn remove_other_days(folder: &Path, days: &BTreeSet<PathBuf>, file: &str) -> io::Result<()> {
    for day in fs::read_dir(folder)? {
        let day = day?.path();
        if !days.contains(&day) {
            match fs::remove_file(day.join(file)) {
                Err(error) if ![ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
                    return Err(error);
                }
                _ => {}
            }
        }
    }
    Ok(())
}
