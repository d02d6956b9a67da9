//! `stacklab plan`.

use crate::commands::study::StudyOptions;
use crate::failure::Failure;
use crate::output::print_text;
use stacklab_campaign::rig::placement::RoutedPlacement;
use stacklab_campaign::sources::new_seed;
use stacklab_guests::Placement;
use stacklab_study::Plan;

/// Shows what a study would measure, in which order, and the time it may take.
pub(crate) fn plan(options: &StudyOptions) -> Result<(), Failure> {
    let (_, study) = options.check()?;
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
        Err(failure) => eprintln!("stacklab: it cannot run here: {failure}"),
    }
    print_text(&text)
}
