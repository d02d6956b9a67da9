//! The records of a folder.
//!
//! A request names a file of the folder. The name is compared with the existing names, and never becomes a path.
//! Symbolic links, folders and other file extensions are ignored.

use crate::ServeError;
use crate::cached::{Cache, Cached, RunningCampaigns, Stamp};
use crate::page::{document, run_detail};
use crate::to_json;
use stacklab_analysis::{between, findings, record_loads};
use stacklab_campaign::CampaignError;
use stacklab_campaign::record::Recorded;
use stacklab_model::Findings;
use stacklab_report::page::{CampaignRow, Listing, build_comparison_page, headline};
use stacklab_store::Record;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(super) const MAX_LISTED: usize = 200;
/// Records larger than this are listed but not read, bytes: reading time grows with the size.
const MAX_BYTES: u64 = 512 << 20;
/// Documents that are kept as JSON.
const MAX_DOCUMENTS: usize = 8;

pub(super) struct Library {
    folder: PathBuf,
    rows: Cache<CampaignRow>,
    documents: Cache<String>,
    headlines: Cache<String>,
}

impl Library {
    pub(super) fn open(folder: &Path) -> Result<Self, ServeError> {
        std::fs::read_dir(folder).map_err(|reason| {
            ServeError::Usage(format!("the folder {} cannot be read: {reason}", folder.display()))
        })?;
        Ok(Library {
            folder: folder.to_owned(),
            rows: Cache::default(),
            documents: Cache::default(),
            headlines: Cache::default(),
        })
    }

    /// The existing records, with the stamps of their files, the last changed first.
    pub(super) fn files(&self) -> Vec<(String, Stamp)> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            // Metadata of the entry itself: a symbolic link is not followed.
            let (Ok(name), Ok(data)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
            if data.is_file() && name.ends_with(".stacklab") {
                files.push((name, Stamp::of(&data)));
            }
        }
        files.sort_by(|a, b| b.1.changed.cmp(&a.1.changed).then_with(|| a.0.cmp(&b.0)));
        files
    }

    pub(super) fn stamp(&self, name: &str) -> Option<Stamp> {
        Some(self.files().into_iter().find(|(known, _)| known == name)?.1)
    }

    pub(super) fn listing(&self) -> Listing {
        let files = self.files();
        let names: HashSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        self.rows.retain(|name| names.contains(name));
        self.headlines.retain(|name| names.contains(name));
        let running = RunningCampaigns::now();
        let unlisted = files.len().saturating_sub(MAX_LISTED);
        let now = SystemTime::now();
        let campaigns = files.iter().take(MAX_LISTED).map(|(name, stamp)| {
            let changed_s = now.duration_since(stamp.changed).unwrap_or_default().as_secs_f64().round();
            CampaignRow { changed_s, running: running.has(*stamp), ..self.row(name, *stamp).what }
        });
        Listing { folder: self.folder.display().to_string(), campaigns: campaigns.collect(), unlisted }
    }

    /// Number of runs in a record with that stamp; `None` if it cannot be read at the moment.
    pub(super) fn run_count(&self, name: &str, stamp: Stamp) -> Option<usize> {
        let row = self.row(name, stamp);
        (row.stamp == stamp && row.what.error.is_none()).then_some(row.what.runs)
    }

    fn row(&self, name: &str, stamp: Stamp) -> Cached<CampaignRow> {
        let made = self.rows.get(name, stamp, || {
            self.read_row(name, stamp).or_else(|failure| {
                let failed = CampaignRow { error: Some(failure.to_string()), ..empty_row(name) };
                // A temporary error is not kept until the file changes.
                match failure {
                    ServeError::Campaign(CampaignError::Store(error)) if error.is_passing() => Err(failed),
                    _ => Ok(failed),
                }
            })
        });
        made.unwrap_or_else(|failed| Cached::now(stamp, || failed))
    }

    fn read_row(&self, name: &str, stamp: Stamp) -> Result<CampaignRow, ServeError> {
        let record = self.open_record(name, stamp)?;
        let campaign = record.campaign()?;
        let started = stacklab_report::time(campaign.created_unix_ns);
        let title = Recorded::title(&campaign).unwrap_or(campaign.study_name);
        Ok(CampaignRow { title, started, runs: record.run_count()?, ..empty_row(name) })
    }

    pub(super) fn findings(&self, name: &str, stamp: Stamp) -> Result<Findings, ServeError> {
        Ok(findings(&Recorded::read(&self.open_record(name, stamp)?)?.campaign()))
    }

    /// What an existing record says, as JSON; slightly out of date while the record changes.
    pub(super) fn headline(&self, name: &str) -> Option<Result<String, ServeError>> {
        let stamp = self.stamp(name)?;
        let made = self.headlines.get(name, stamp, || Ok(to_json(&headline(&self.findings(name, stamp)?))));
        Some(made.map(|made| made.what))
    }

    fn open_record(&self, name: &str, stamp: Stamp) -> Result<Record, ServeError> {
        if stamp.bytes > MAX_BYTES {
            return Err(ServeError::Usage(format!(
                "{name} has {} bytes: more than the page reads; use `stacklab report`",
                stamp.bytes
            )));
        }
        Ok(Record::open_unchecked(&self.folder.join(name))?)
    }

    /// The document of a record, as JSON, without details of runs; slightly out of date while the record changes.
    pub(super) fn document(&self, name: &str) -> Option<Result<String, ServeError>> {
        let stamp = self.stamp(name)?;
        let made =
            self.documents.get(name, stamp, || Ok(to_json(&document(&self.open_record(name, stamp)?, 0)?)));
        self.documents.trim(MAX_DOCUMENTS);
        Some(made.map(|made| made.what))
    }

    pub(super) fn detail(&self, name: &str, block: u32, position: u32) -> Option<Result<String, ServeError>> {
        let stamp = self.stamp(name)?;
        let record = self.open_record(name, stamp);
        let detail = record.and_then(|record| run_detail(&record, block, position));
        detail.map(|detail| detail.map(|detail| to_json(&detail))).transpose()
    }

    /// What differs between two existing records, as JSON.
    pub(super) fn compare(&self, a: &str, b: &str) -> Option<Result<String, ServeError>> {
        let stamps = [self.stamp(a)?, self.stamp(b)?];
        Some(self.compare_records([a, b], stamps))
    }

    fn compare_records(&self, names: [&str; 2], stamps: [Stamp; 2]) -> Result<String, ServeError> {
        let first = Recorded::read(&self.open_record(names[0], stamps[0])?)?;
        let second = Recorded::read(&self.open_record(names[1], stamps[1])?)?;
        let campaigns = [&first.campaign(), &second.campaign()];
        let found = between(campaigns, names, &[], None).map_err(|_| {
            let [a, b] = names;
            ServeError::Usage(format!("{a} and {b} have nothing in common: measure the same study on both"))
        })?;
        Ok(to_json(&build_comparison_page(&found, &record_loads(campaigns))))
    }
}

/// The row of a record of which nothing is read yet.
fn empty_row(name: &str) -> CampaignRow {
    CampaignRow {
        name: name.to_owned(),
        title: String::new(),
        started: String::new(),
        runs: 0,
        running: false,
        changed_s: 0.0,
        error: None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stacklab_model::CpuScope;
    use stacklab_store::Campaign;
    use std::time::Duration;

    /// A folder with a record without runs, `a.stacklab`.
    pub(crate) fn folder() -> (tempfile::TempDir, PathBuf, Library) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stacklab");
        let campaign = Campaign {
            program_version: "0.1.0".to_owned(),
            created_unix_ns: 5,
            study_name: "quickstart.toml".to_owned(),
            study_text: include_str!("../../../studies/quickstart.toml").to_owned(),
            scale: None,
            settings: vec![],
            seed: 1,
            testbed_description: "two hosts".to_owned(),
            cpu_scope: CpuScope::Shared,
            sample_period_ns: None,
        };
        drop(Record::create(&path, &campaign).unwrap());
        let library = Library::open(folder.path()).unwrap();
        (folder, path, library)
    }

    /// The record, locked by a commit in progress.
    pub(crate) fn lock_record(path: &Path) -> rusqlite::Connection {
        let writer = rusqlite::Connection::open(path).unwrap();
        writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
        writer
    }

    #[test]
    fn momentarily_unreadable_record_is_read_next_time() {
        let (_folder, path, library) = folder();
        let writer = lock_record(&path);
        let stamp = library.stamp("a.stacklab").unwrap();
        assert!(library.listing().campaigns[0].error.is_some());
        assert_eq!(library.run_count("a.stacklab", stamp), None);
        drop(writer);
        assert_eq!(library.stamp("a.stacklab"), Some(stamp), "the case is what it is for");
        assert_eq!(library.listing().campaigns[0].error, None);
        assert_eq!(library.run_count("a.stacklab", stamp), Some(0));
    }

    #[test]
    fn record_is_read_once_and_forgotten_with_its_file() {
        let (_folder, path, library) = folder();
        let stamp = library.stamp("a.stacklab").unwrap();
        assert_eq!(library.run_count("a.stacklab", stamp), Some(0));
        // It could not be recomputed now.
        let writer = lock_record(&path);
        assert_eq!(library.run_count("a.stacklab", stamp), Some(0));
        assert_eq!(library.listing().campaigns[0].error, None);
        drop(writer);
        std::fs::remove_file(&path).unwrap();
        assert!(library.listing().campaigns.is_empty());
        assert!(library.rows.lock_results().is_empty());
    }

    #[test]
    fn what_changes_is_made_anew_for_a_tenth_of_the_time() {
        let (_folder, _path, library) = folder();
        let stamp = library.stamp("a.stacklab").unwrap();
        let later = Stamp { bytes: stamp.bytes + 1, ..stamp };
        let made =
            |took_ms: u64| Cached { took: Duration::from_millis(took_ms), ..Cached::now(stamp, || ()) };
        assert!(made(0).is_fresh(stamp) && made(60_000).is_fresh(stamp));
        assert!(!made(0).is_fresh(later) && made(60_000).is_fresh(later));
        // A row of another state of the file is not reused for this one.
        let slow = Cached { took: Duration::from_secs(60), ..library.row("a.stacklab", stamp) };
        library.rows.lock_results().insert("a.stacklab".to_owned(), slow);
        assert_eq!(library.run_count("a.stacklab", later), None);
    }

    #[test]
    fn a_record_too_long_to_be_read_is_only_listed() {
        let (_folder, path, library) = folder();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let name = "a.stacklab";
        let refused = [
            library.document(name).unwrap().map(drop),
            library.detail(name, 0, 0).unwrap().map(drop),
            library.compare(name, name).unwrap().map(drop),
        ];
        for refusal in refused {
            let refusal = refusal.unwrap_err().to_string();
            assert!(refusal.contains("more than the page reads"), "{refusal}");
        }
        assert!(library.listing().campaigns[0].error.as_ref().unwrap().contains("more than the page reads"));
        assert_eq!(library.run_count(name, library.stamp(name).unwrap()), None);
    }

    #[test]
    fn record_that_never_ends_is_listed_with_the_reason() {
        let (_folder, path, library) = folder();
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(
                "DROP TABLE run; CREATE VIEW run AS
                 WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n",
            )
            .unwrap();
        let row = library.listing().campaigns.remove(0);
        assert!(row.error.as_ref().unwrap().contains("view run"), "{row:?}");
        assert!(library.document("a.stacklab").unwrap().is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_record_beside_a_pipe_holds_nobody_up() {
        let (folder, path, library) = folder();
        std::fs::copy(&path, folder.path().join("good.stacklab")).unwrap();
        let journal = folder.path().join("a.stacklab-journal");
        assert!(std::process::Command::new("mkfifo").arg(&journal).status().unwrap().success());
        let rows = library.listing().campaigns;
        for CampaignRow { name, error, .. } in &rows {
            let refused = error
                .as_ref()
                .is_some_and(|error| error.contains("a.stacklab-journal is not a regular file"));
            assert_eq!(
                (refused, error.is_none()),
                (name == "a.stacklab", name == "good.stacklab"),
                "{rows:?}"
            );
        }
        assert_eq!(rows.len(), 2);
        assert!(library.document("a.stacklab").unwrap().is_err());
        assert!(library.document("good.stacklab").unwrap().is_ok());
    }

    #[test]
    fn a_hostile_study_in_a_record_holds_nobody_up() {
        let (_folder, path, library) = folder();
        let sizes: Vec<String> = (0..60_000).map(|size| (1_000_000 + size).to_string()).collect();
        let own = include_str!("../../../studies/quickstart.toml");
        let begin = own.find("size = [").expect("it has sizes");
        let end = begin + own[begin..].find(']').expect("they end");
        let many = format!("{}size = [{}{}", &own[..begin], sizes.join(", "), &own[end..]);
        // Within the bound of a study, and beyond.
        for text in [many.clone(), format!("{own}# {}", "x".repeat(4 << 20))] {
            let writer = rusqlite::Connection::open(&path).unwrap();
            writer.execute("UPDATE campaign SET study_text = ?1", [&text]).unwrap();
            drop(writer);
            let start = std::time::Instant::now();
            let refused = library.document("a.stacklab").unwrap().unwrap_err().to_string();
            assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
            assert!(refused.len() < 20_000, "{} bytes are shown", refused.len());
        }
    }

    #[test]
    fn a_campaign_commits_while_its_record_is_shown() {
        let (_folder, path, library) = folder();
        let reader = Record::open_unchecked(&path).unwrap();
        let writer = lock_record(&path);
        writer.execute_batch("UPDATE campaign SET testbed = 'another'; COMMIT").unwrap();
        assert_eq!(reader.campaign().unwrap().testbed_description, "another");
        assert!(library.document("a.stacklab").unwrap().is_ok());
    }

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
        // A file that is not a record is listed with the reason, and does not break the list.
        assert!(listing.campaigns.iter().all(|row| row.error.is_some()), "{listing:?}");
        assert!(library.document("a.stacklab").unwrap().is_err());
    }
}
