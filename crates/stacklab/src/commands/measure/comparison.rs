//! The campaign behind `stacklab measure .. --against FAMILY`.

use crate::campaign::measure;
use crate::campaign::progress::Progress;
use crate::campaign::record::conclude;
use crate::campaign::sources::{StudySource, new_seed};
use crate::cli::measure::CommonOptions;
use crate::commands::output::{print_text, width};
use crate::failure::Failure;
use stacklab_model::{CpuScope, Findings, RunRecord, Trial};
use stacklab_report::{Format, WIDTH, compact, render, seconds_needed};
use stacklab_store::{Campaign, HostRow, Record, StoreError};
use stacklab_study::{Plan, Study};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use std::path::PathBuf;
use tempfile::TempDir;

/// How to get the answers that are missing.
fn advice(findings: &Findings) -> String {
    seconds_needed(findings).map_or_else(String::new, |seconds| {
        format!(
            "Undecided: at the current variance, -t {:.0} would decide half of what is open.\n",
            seconds.ceil()
        )
    })
}

/// A study of both families to one host, and where its record will be.
pub(super) struct Comparison {
    /// The study.
    pub study: Study,
    source: StudySource,
    path: PathBuf,
    json: bool,
    /// Holds the record if the user wants none.
    _folder: Option<TempDir>,
}

impl Comparison {
    /// Checks the study, and that its record can be made.
    ///
    /// # Errors
    /// When the study is wrong, or the record is there already.
    pub(super) fn new(common: &CommonOptions, study_text: String) -> Result<Self, Failure> {
        let source = StudySource { name: "measure.toml".to_owned(), text: study_text };
        let study = source.check(None, &[])?;
        if let Some(path) = common.out.as_ref().filter(|path| path.exists()) {
            return Err(StoreError::Exists { path: path.clone() }.into());
        }
        // Without a name, the record is only for this verdict. With one nothing else is made, which a kill would leave
        // behind.
        let folder = if common.out.is_none() { Some(tempfile::tempdir()) } else { None };
        let folder = folder
            .transpose()
            .map_err(|reason| Failure::Output { what: "a folder for the record".to_owned(), reason })?;
        let unnamed = folder.as_ref().map(|folder| folder.path().join("measure.stacklab"));
        let path = common.out.clone().or(unnamed).expect("one of both is there");
        Ok(Comparison { study, source, path, json: common.json, _folder: folder })
    }

    /// Measures until the verdicts are sure or the time is over, and prints them. `run` gives the runs of trials that
    /// are measured together, with the campaign's seed. What was measured until an error is printed.
    ///
    /// # Errors
    /// Those of `run` and of the record; when the user interrupts, or no run is valid.
    pub(super) fn measure(
        self,
        testbed_description: String,
        cpu_scope: CpuScope,
        hosts: Vec<HostRow>,
        mut run: impl FnMut(&Study, u64, &[Trial]) -> Result<Vec<RunRecord>, Failure>,
    ) -> Result<(), Failure> {
        let Comparison { study, source, path, json, _folder } = self;
        let campaign = Campaign {
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_unix_ns: now_unix_ns(),
            study_name: source.name,
            study_text: source.text,
            scale: None,
            settings: Vec::new(),
            seed: new_seed(),
            testbed_description,
            cpu_scope,
            sample_period_ns: None,
        };
        let mut record = Record::create(&path, &campaign)?;
        for host in &hosts {
            record.put_host(host)?;
        }
        let plan = Plan::new(&study, campaign.seed);
        let mut progress = Progress::new();
        let run = |arms: &[Trial]| run(&study, campaign.seed, arms);
        let measured = measure(&study, &plan, run, &mut record, &mut progress);
        progress.end();
        let findings = conclude(&record)?;
        print_text(&match json {
            true => render(&findings, Format::Json, WIDTH),
            false => compact(&findings, width()) + &advice(&findings),
        })?;
        match measured {
            // There is no record to go on with.
            Err(Failure::Interrupted(_)) => Err(AgentError::Interrupted.into()),
            Ok(()) if findings.valid_runs == 0 => Err(Failure::NothingValid),
            measured => measured,
        }
    }
}
