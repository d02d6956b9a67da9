//! `stacklab explain --exact STUDY`: the instructions that requests take in the programs of a study.

use crate::commands::explain::ExplainOptions;
use crate::commands::study::StudyOptions;
use crate::failure::{Failure, interrupt_flag};
use crate::missing_programs::{RunnableStudy, check_runnable, report_left_out};
use crate::output::{print_text, width};
use stacklab_campaign::notice::note;
use stacklab_campaign::rig::RoutedPlacement;
use stacklab_explain::{DEFAULT_REQUESTS, check_programs, count_programs};
use stacklab_guests::Placement;
use stacklab_report::{OutputFormat, program_counts};
use stacklab_study::Study;
use stacklab_testbed::enter;
use std::path::Path;

/// Counts the programs of a study and prints the counts.
pub(super) fn explain_programs(options: &ExplainOptions, study: &Path) -> Result<(), Failure> {
    refuse_options(options)?;
    let named = StudyOptions {
        study: Some(study.to_owned()),
        settings: options.settings.clone(),
        ..StudyOptions::default()
    };
    let RunnableStudy { source, mut study, left_out, .. } = check_runnable(&named)?;
    keep_family(&mut study, options)?;
    check_programs(&study, &source.name)?;
    report_left_out(&left_out);
    let interrupted = interrupt_flag()?;
    enter()?;
    let routed = RoutedPlacement::of(&study, &Placement::WhereNeeded)?;
    let requests = options.requests.map_or(DEFAULT_REQUESTS, u64::from);
    let counts = count_programs(&study, routed, requests, &mut say_step, interrupted)?;
    print_text(&program_counts(&counts, options.format, options.functions, width()))
}

fn say_step(what: &str) {
    note(&format!("stacklab: {what}"));
}

/// What counts of messages have, and those of programs have not.
fn refuse_options(options: &ExplainOptions) -> Result<(), Failure> {
    let is_of_messages = options.path.is_some()
        || options.factor.is_some()
        || !options.levels.is_empty()
        || !options.rules.is_empty()
        || !options.size.is_empty()
        || options.kernel.is_some();
    if is_of_messages {
        let text = "--path, --factor, --levels, --rules, --size and --kernel are for messages: the arms of programs are those of the study, \
                    and their kernel is this machine's";
        return Err(Failure::usage(text));
    }
    if options.format == OutputFormat::Html {
        let text = "counts of programs have no page: choose --format text, markdown, csv or json";
        return Err(Failure::usage(text));
    }
    Ok(())
}

/// Leaves out the cells of the other family.
fn keep_family(study: &mut Study, options: &ExplainOptions) -> Result<(), Failure> {
    let Some(family) = options.family else { return Ok(()) };
    study.cells.retain(|cell| cell.family == family);
    if study.cells.is_empty() {
        return Err(Failure::usage(format!("the study measures nothing over {family}: leave --family out")));
    }
    Ok(())
}
