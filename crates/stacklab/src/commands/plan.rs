//! `stacklab plan`: the runs of a study, and what would refuse it here.

use crate::commands::study::StudyOptions;
use crate::failure::Failure;
use crate::images::images_are_here;
use crate::missing_programs::{check_runnable, report_left_out};
use crate::output::print_lines;
use stacklab_campaign::notice::note;
use stacklab_campaign::rig::RoutedPlacement;
use stacklab_campaign::sources::new_seed;
use stacklab_guests::Placement;
use stacklab_study::Plan;

pub(crate) fn plan(options: &StudyOptions) -> Result<(), Failure> {
    let named = StudyOptions { source: Some(options.source()?), ..options.clone() };
    let (_, mut study) = named.check()?;
    match check_runnable(&named) {
        Ok(runnable) => {
            report_left_out(&runnable.left_out);
            study = runnable.study;
        }
        Err(failure) => {
            note(&format!("stacklab: `stacklab run` would refuse it: {}", failure.printable_reason()))
        }
    }
    let plan = Plan::new(&study, options.seed.unwrap_or_else(new_seed));
    let mut text = plan.describe(&study);
    // Show the rest even if this machine lacks something.
    match RoutedPlacement::of(&study, &Placement::WhereNeeded) {
        Ok(Some(placement)) => {
            if let Some(place) = placement.guest_and_why() {
                text = text.replacen("\nCells ", &format!("\nGuest       {place}\nCells "), 1);
            }
        }
        Ok(None) => {}
        Err(failure) => note(&format!("stacklab: `stacklab run` would refuse it: {failure}")),
    }
    if let Err(failure) = images_are_here(&study) {
        note(&format!("stacklab: {}", failure.printable_reason()));
    }
    print_lines(&text)
}
