//! The images that a study's guests boot from.

use crate::failure::{Failure, TESTBED};
use stacklab_guests::image::Image;
use stacklab_model::{Factor, System, Systems, once_each};
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
    let mut levels = Vec::new();
    let mut others = 0;
    for cell in &study.cells {
        if Systems::of(cell).0.contains(system) {
            levels.push(cell.level(Factor::Os));
        } else {
            others += 1;
        }
    }
    if others == 0 {
        return None;
    }
    let mut options = Vec::new();
    for level in once_each(levels.into_iter()) {
        let quoted = if level.contains(' ') { format!("{level:?}") } else { level };
        options.push(format!("--without {quoted}"));
    }
    Some(options.join(" "))
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

    fn leave_out_linux(settings: &[&str]) -> Option<String> {
        let source = StudySource::read(Some(Path::new("stacks"))).unwrap();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        without(&source.check(None, &settings).unwrap(), &System::Linux("6.12".to_owned()))
    }

    #[test]
    fn a_missing_image_names_the_way_without_it() {
        assert_eq!(leave_out_linux(&[]).unwrap(), "--without linux-6.12");
        let pair = "factors.os=[\"namespace\", \"namespace -> linux-6.12\"]";
        assert_eq!(
            leave_out_linux(&[pair, "comparison=[]"]).unwrap(),
            "--without \"namespace -> linux-6.12\""
        );
        assert_eq!(leave_out_linux(&["factors.os=[\"linux-6.12\"]", "comparison=[]"]), None);
    }
}
