//! Getting an image: fetched or built into a folder beside its own, which then takes its place; so an image is whole or not
//! there.

use super::{Image, Label, folder_of, gvisor, how_to_get, kernel, tree, uml};
use crate::error::TestbedError;
use stacklab_model::System;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Of what a program said when it failed; a compiler says much before that.
const LAST_LINES: usize = 12;

/// Is told each step before it is done.
pub type Step<'a> = dyn FnMut(&str) + 'a;

/// What was made of a system, before it is an image.
pub(super) struct Made {
    /// Its exact version.
    pub version: String,
    /// Where it came from.
    pub source: String,
    /// The version of Jool in it.
    pub jool: Option<String>,
}

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
    make: impl FnOnce(&Path) -> Result<Made, TestbedError>,
) -> Result<Image, TestbedError> {
    let folder = folder_of(system);
    let part = folder.with_file_name(format!("{system}.part"));
    let at = |path: &Path| {
        let path = path.to_owned();
        move |reason: io::Error| TestbedError::File { path, reason }
    };
    remove(&part).and_then(|()| fs::create_dir_all(&part)).map_err(at(&part))?;
    let place = |made: Made| {
        Label::write(&part, made).map_err(at(&part))?;
        remove(&folder).and_then(|()| fs::rename(&part, &folder)).map_err(at(&folder))
    };
    make(&part).and_then(place).inspect_err(|_| drop(remove(&part)))?;
    Image::find(system)
}

pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs a program to its end and gives what it printed.
///
/// # Errors
/// What it said when it failed, or that it is not there.
pub(super) fn run(mut command: Command, attempted: &str, advice: &str) -> Result<String, TestbedError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |reason: String, advice: &str| TestbedError::Get {
        attempted: attempted.to_owned(),
        reason,
        advice: advice.to_owned(),
    };
    let done = match command.output() {
        Ok(done) => done,
        Err(error) => return Err(failed(format!("{name}: {error}"), &format!("; install {name}"))),
    };
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = said.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    Err(failed(if said.is_empty() { format!("{name} failed ({})", done.status) } else { said }, advice))
}
