//! The images that a study's guests boot from.

use crate::failure::{Failure, TESTBED};
use stacklab_guests::image::Image;
use stacklab_model::{Cell, Factor, System, Systems, once_each};
use stacklab_study::Study;

/// Checks that the images of all systems are here, before the first one boots.
pub(crate) fn images_are_here(study: &Study) -> Result<(), Failure> {
    let guests = guests(study);
    let mut fetched = guests.iter().filter(|system| !matches!(system, System::Disk(_)));
    fetched.try_for_each(|system| match Image::find(system) {
        Ok(_) => Ok(()),
        Err(error) => Err(match without(study, system) {
            Some(without) => {
                Failure::new(TESTBED, format!("{error}, or run the study without it: {without}"))
            }
            None => error.into(),
        }),
    })
}

/// The options that leave out all cells with a system; `None` where nothing would be left.
fn without(study: &Study, system: &System) -> Option<String> {
    let has = |cell: &Cell| Systems::of(cell).0.contains(system);
    let levels = |with: bool| {
        once_each(study.cells.iter().filter(|cell| has(cell) == with).map(|cell| cell.level(Factor::Os)))
    };
    let quoted = |level: String| if level.contains(' ') { format!("{level:?}") } else { level };
    let options: Vec<String> =
        levels(true).into_iter().map(|level| format!("--without {}", quoted(level))).collect();
    (!levels(false).is_empty()).then(|| options.join(" "))
}

/// The systems of hosts that boot, each once.
pub(crate) fn guests(study: &Study) -> Vec<System> {
    let hosts = study.systems().into_iter().flat_map(|systems| systems.0);
    once_each(hosts.filter(System::boots))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_campaign::sources::StudySource;
    use std::path::Path;

    #[test]
    fn a_missing_image_names_the_way_without_it() {
        let source = StudySource::read(Some(Path::new("stacks"))).unwrap();
        let of = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
            without(&source.check(None, &settings).unwrap(), &System::Linux("6.12".to_owned()))
        };
        assert_eq!(of(&[]).unwrap(), "--without linux-6.12");
        let pair = "factors.os=[\"namespace\", \"namespace -> linux-6.12\"]";
        assert_eq!(of(&[pair, "comparison=[]"]).unwrap(), "--without \"namespace -> linux-6.12\"");
        assert_eq!(of(&["factors.os=[\"linux-6.12\"]", "comparison=[]"]), None);
    }
}
