//! Getting an image: fetched or built into a folder beside its own, which then takes its place; so an image is whole or not
//! there.

use crate::error::TestbedError;
use crate::image::cache::folder_of;
use crate::image::command::{ImageInfo, Step, remove};
use crate::image::installed::{Image, Label, how_to_get};
use crate::image::{gvisor, kernel, tree, uml};
use stacklab_model::System;
use std::fs;
use std::io;
use std::path::Path;

/// Fetches the newest image of a system and puts it in place of the one that is there.
///
/// # Errors
/// What failed, in the words of the program that did it. What was downloaded is kept for the next attempt, and an image
/// that was there before stays.
pub fn get(system: &System, step: &mut Step<'_>) -> Result<Image, TestbedError> {
    put(system, |into| match system {
        System::Gvisor => gvisor::make(into, step),
        System::Linux(series) => kernel::make(series, into, step),
        System::Uml => uml::make(into, step),
        other => Err(TestbedError::Get {
            attempted: format!("get an image of {other}"),
            reason: match other {
                System::OwnUml(_) => "it is built here".to_owned(),
                _ => "it needs none".to_owned(),
            },
            advice: match other {
                System::OwnUml(_) => format!(": {}", how_to_get(other)),
                _ => String::new(),
            },
        }),
    })
}

/// Builds user-mode Linux from a folder with a kernel's source, or from Debian's stable one where none is named, with Jool, and puts it in
/// place of what is there under that name. What was compiled of a folder is kept for the next time.
///
/// # Errors
/// As [`get`]; a compiler or another program that is missing; a kernel too old to have all that it should.
pub fn build(name: &str, source: Option<&Path>, step: &mut Step<'_>) -> Result<Image, TestbedError> {
    let system = System::OwnUml(name.to_owned());
    put(&system, |into| tree::make(&system, source, into, step))
}

/// Makes an image in a folder beside its own, and has that folder take its place.
fn put(
    system: &System,
    make: impl FnOnce(&Path) -> Result<ImageInfo, TestbedError>,
) -> Result<Image, TestbedError> {
    let folder = folder_of(system);
    let part = folder.with_file_name(format!("{system}.part"));
    let at = |path: &Path| {
        let path = path.to_owned();
        move |reason: io::Error| TestbedError::File { path, reason }
    };
    remove(&part).and_then(|()| fs::create_dir_all(&part)).map_err(at(&part))?;
    let place = |info: ImageInfo| {
        Label::write(&part, info).map_err(at(&part))?;
        remove(&folder).and_then(|()| fs::rename(&part, &folder)).map_err(at(&folder))
    };
    make(&part).and_then(place).inspect_err(|_| drop(remove(&part)))?;
    Image::find(system)
}
