//! The records of a folder.
//!
//! A request names a file of the folder; the name is looked for among those that are there, and never made into a path of
//! the request's choosing. Links, folders and other endings are not there.

use crate::conclude::Recorded;
use crate::failure::Failure;
use crate::page::{document, run_detail};
use serde::Serialize;
use stacklab_analysis::between;
use stacklab_report::page::{CampaignRow, Listing, compared};
use stacklab_store::Record;
use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most records that are listed.
const LISTED: usize = 200;
/// Bytes of a record beyond which it is listed and not read: reading one takes as much time as it is long.
const LARGEST: u64 = 4 << 30;
/// Documents that are kept.
const KEPT: usize = 8;

/// A folder.
pub struct Library {
    folder: PathBuf,
    rows: Mutex<HashMap<String, (Stamp, CampaignRow)>>,
    documents: Mutex<Vec<Document>>,
}

/// What tells whether a file has changed: its length and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    bytes: u64,
    changed: SystemTime,
}

impl Stamp {
    fn of(data: &Metadata) -> Self {
        Stamp { bytes: data.len(), changed: data.modified().unwrap_or(SystemTime::UNIX_EPOCH) }
    }
}

/// A document, and what it was made from and in which time.
struct Document {
    name: String,
    stamp: Stamp,
    json: String,
    took: Duration,
    made: Instant,
}

impl Library {
    /// Takes a folder.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        std::fs::read_dir(folder).map_err(|reason| {
            Failure::Usage(format!("the folder {} cannot be read: {reason}", folder.display()))
        })?;
        Ok(Library { folder: folder.to_owned(), rows: Mutex::default(), documents: Mutex::default() })
    }

    /// The records that are there, with the stamps of their files, the last changed first.
    pub fn files(&self) -> Vec<(String, Stamp)> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(String, Stamp)> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                // Of the entry itself: a link is not followed.
                let data = entry.metadata().ok()?;
                (data.is_file() && name.ends_with(".stacklab")).then(|| (name, Stamp::of(&data)))
            })
            .collect();
        files.sort_by(|a, b| b.1.changed.cmp(&a.1.changed).then_with(|| a.0.cmp(&b.0)));
        files
    }

    /// A record that is there; `None` where there is none of that name.
    fn find(&self, name: &str) -> Option<(PathBuf, Stamp)> {
        let (name, stamp) = self.files().into_iter().find(|(known, _)| known == name)?;
        Some((self.folder.join(name), stamp))
    }

    /// The list of records.
    pub fn listing(&self) -> Listing {
        let files = self.files();
        let unlisted = files.len().saturating_sub(LISTED);
        let now = SystemTime::now();
        let campaigns = files.into_iter().take(LISTED).map(|(name, stamp)| {
            let known =
                locked(&self.rows).get(&name).filter(|(seen, _)| *seen == stamp).map(|(_, row)| row.clone());
            let row = known.unwrap_or_else(|| {
                let row = self.row(&name, stamp);
                locked(&self.rows).insert(name.clone(), (stamp, row.clone()));
                row
            });
            let since = now.duration_since(stamp.changed).unwrap_or_default();
            CampaignRow { changed_s: since.as_secs_f64().round(), ..row }
        });
        Listing { folder: self.folder.display().to_string(), campaigns: campaigns.collect(), unlisted }
    }

    fn row(&self, name: &str, stamp: Stamp) -> CampaignRow {
        let mut row = CampaignRow {
            name: name.to_owned(),
            title: String::new(),
            started: String::new(),
            runs: 0,
            changed_s: 0.0,
            error: None,
        };
        let read = || -> Result<(String, String, usize), Failure> {
            let record = Record::read(&self.readable(name, stamp)?)?;
            let campaign = record.campaign()?;
            let title = Recorded::title(&campaign).unwrap_or(campaign.study_name);
            Ok((title, stacklab_report::time(campaign.created_unix_ns), record.run_count()?))
        };
        match read() {
            Ok((title, started, runs)) => (row.title, row.started, row.runs) = (title, started, runs),
            Err(failure) => row.error = Some(failure.to_string()),
        }
        row
    }

    fn readable(&self, name: &str, stamp: Stamp) -> Result<PathBuf, Failure> {
        if stamp.bytes > LARGEST {
            return Err(Failure::Usage(format!(
                "{name} has {} bytes: more than the page reads; use `stacklab report`",
                stamp.bytes
            )));
        }
        Ok(self.folder.join(name))
    }

    /// The document of a record, as JSON, without details of runs; `None` where there is no such record. While it changes,
    /// it is made anew only as often as takes a tenth of the time, since it may be measured on this machine.
    pub fn document(&self, name: &str) -> Option<Result<String, Failure>> {
        let (path, stamp) = self.find(name)?;
        {
            let kept = locked(&self.documents);
            let known = kept.iter().find(|document| document.name == name);
            let is_fresh = |known: &&Document| known.stamp == stamp || known.made.elapsed() < 9 * known.took;
            if let Some(known) = known.filter(is_fresh) {
                return Some(Ok(known.json.clone()));
            }
        }
        let begun = Instant::now();
        let made = self
            .readable(name, stamp)
            .and_then(|_| document(&Record::read(&path)?, 0))
            .map(|page| to_json(&page));
        if let Ok(json) = &made {
            let mut kept = locked(&self.documents);
            kept.retain(|document| document.name != name);
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            let (name, json) = (name.to_owned(), json.clone());
            kept.push(Document { name, stamp, json, took: begun.elapsed(), made: Instant::now() });
        }
        Some(made)
    }

    /// What the hosts saw of a run, as JSON; `None` where there is no such record or run.
    pub fn detail(&self, name: &str, block: u32, position: u32) -> Option<Result<String, Failure>> {
        let (path, stamp) = self.find(name)?;
        let read = || {
            run_detail(&Record::read(&self.readable(name, stamp).map(|_| path.clone())?)?, block, position)
        };
        read().map(|detail| detail.map(|detail| to_json(&detail))).transpose()
    }

    /// Two records side by side, as JSON; `None` where one of them is not there.
    pub fn compare(&self, a: &str, b: &str) -> Option<Result<String, Failure>> {
        let paths = [self.find(a)?.0, self.find(b)?.0];
        let compare = || -> Result<String, Failure> {
            let [first, second] = paths.each_ref().map(|path| Recorded::read(&Record::read(path)?));
            let (first, second) = (first?, second?);
            let found =
                between([&first.campaign(), &second.campaign()], [a, b], &[], None).map_err(|_| {
                    Failure::Usage(format!(
                        "{a} and {b} have nothing in common: measure the same study on both"
                    ))
                })?;
            Ok(to_json(&compared(&found)))
        };
        Some(compare())
    }

    /// Runs in a record; `None` where it is not there, or cannot be read just now.
    pub fn run_count(&self, name: &str) -> Option<usize> {
        let (path, _) = self.find(name)?;
        Record::read(&path).and_then(|record| record.run_count()).ok()
    }

    /// The stamp of a record's file; `None` where it is not there.
    pub fn stamp(&self, name: &str) -> Option<Stamp> {
        Some(self.find(name)?.1)
    }
}

fn to_json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("names and finite numbers become JSON")
}

/// A list that a panicking reader left is still a list.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_itself_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["records", "outside"].map(|name| folder.path().join(name));
        for part in [&inside, &outside] {
            std::fs::create_dir(part).unwrap();
            std::fs::write(part.join("a.stacklab"), "no record").unwrap();
        }
        std::fs::write(inside.join("<b>&\"'.stacklab"), "").unwrap();
        std::fs::write(inside.join("notes.txt"), "").unwrap();
        std::fs::create_dir(inside.join("folder.stacklab")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(outside.join("a.stacklab"), inside.join("link.stacklab")).unwrap();
        let library = Library::open(&inside).unwrap();
        let mut names: Vec<String> = library.files().into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, ["<b>&\"'.stacklab", "a.stacklab"]);
        for name in
            ["../outside/a.stacklab", "link.stacklab", "folder.stacklab", "notes.txt", "", "/etc/passwd"]
        {
            assert!(library.document(name).is_none(), "{name}");
            assert!(library.detail(name, 0, 0).is_none(), "{name}");
            assert!(library.compare(name, "a.stacklab").is_none(), "{name}");
        }
        let listing = library.listing();
        assert_eq!(listing.campaigns.len(), 2);
        // What is no record is listed with the reason, and breaks nothing.
        assert!(listing.campaigns.iter().all(|row| row.error.is_some()), "{listing:?}");
        assert!(library.document("a.stacklab").unwrap().is_err());
    }
}
