//! `stacklab replicate`.

use crate::cli::run::{ReplicateOptions, RunOptions, StudyOptions};
use crate::commands::output::{print_text, width};
use crate::commands::reference::named;
use crate::commands::run::campaign;
use crate::failure::Failure;
use stacklab_published::Reference;
use stacklab_published::replication::{json, replicate as judged, text};
use stacklab_report::OutputFormat;
use stacklab_store::Record;

/// Runs a published study's preset, or reads a record of one, and tests the study's findings on it.
pub(crate) fn replicate(options: ReplicateOptions) -> Result<(), Failure> {
    let study = named(&options.study)?;
    let all = Reference::built_in()?;
    let ended = match &options.from {
        Some(path) => (Record::read(path)?, Ok(())),
        None => {
            eprint!("{}", text::limits(&all.of(study.name).limits, width()));
            campaign(&RunOptions {
                study: StudyOptions {
                    study: Some(study.name.into()),
                    scale: Some(options.scale),
                    seed: options.seed,
                    settings: options.settings,
                    without: Vec::new(),
                    source: None,
                },
                out: options.out,
                copy_agent: false,
                placement: options.placement.clone(),
                resume: false,
                explain: None,
                sample_period_ns: None,
                is_record_kept: true,
            })?
        }
    };
    let (record, measured) = ended;
    let replication = judged(study, &all, &record)?;
    print_text(&match options.format {
        OutputFormat::Json => json::render(&replication),
        _ => text::render(&replication, width()),
    })?;
    eprintln!("The record: {} (stacklab report prints its comparisons)", record.path().display());
    measured?;
    if replication.runs == 0 { Err(Failure::NothingValid) } else { Ok(()) }
}
