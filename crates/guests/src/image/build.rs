//! Fetches or builds an image in a temporary folder, which then replaces the image's folder. An image is therefore
//! either complete or absent.

use crate::image::command::remove;
use crate::image::installed::folder_of;
use crate::image::installed::{Label, check_architecture, how_to_get};
use crate::image::{gvisor, kernel, tree, uml};
use crate::{Image, ImageInfo, Step, failed};
use stacklab_model::System;
use stacklab_testbed::TestbedError;
use std::fs;
use std::path::Path;

/// Fetches the newest image of a system. If that fails, an existing image and the downloads so far stay.
pub fn get(system: &System, step: &mut Step<'_>) -> Result<Image, TestbedError> {
    put(system, |into| match system {
        System::Gvisor => gvisor::make(into, step),
        System::Linux(series) => kernel::make(series, into, step),
        System::Uml => uml::make(into, step),
        other => {
            let (reason, advice) = match other {
                System::OwnUml(_) => ("it is built here", format!(": {}", how_to_get(other))),
                _ => ("it needs none", String::new()),
            };
            Err(failed(&format!("get an image of {other}"), reason, &advice))
        }
    })
}

/// Builds user-mode Linux from a folder with a kernel's source or, if none is named, from Debian's stable kernel with
/// Jool. Replaces the existing image of that name. The objects that were compiled from a folder are kept for the next
/// build.
pub fn build(name: &str, source: Option<&Path>, step: &mut Step<'_>) -> Result<Image, TestbedError> {
    let system = System::OwnUml(name.to_owned());
    put(&system, |into| tree::make(&system, source, into, step))
}

/// Creates an image in a temporary folder, which then replaces the image's folder.
fn put(
    system: &System,
    make: impl FnOnce(&Path) -> Result<ImageInfo, TestbedError>,
) -> Result<Image, TestbedError> {
    check_architecture()?;
    let folder = folder_of(system);
    let part = folder.with_file_name(format!("{system}.part"));
    remove(&part).and_then(|()| fs::create_dir_all(&part)).map_err(TestbedError::file(&part))?;
    let place = |info: ImageInfo| {
        Label::write(&part, info).map_err(TestbedError::file(&part))?;
        remove(&folder).and_then(|()| fs::rename(&part, &folder)).map_err(TestbedError::file(&folder))
    };
    make(&part).and_then(place).inspect_err(|_| drop(remove(&part)))?;
    Image::find(system)
}
