//! The images that systems boot from, in the program's own folder: fetched once, checked, and never installed on the
//! machine. An image is made in a temporary folder, which then replaces the image's folder: it is either complete or
//! absent.

use crate::command::remove;
use crate::{ImageInfo, describe_failure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stacklab_model::System;
use stacklab_testbed::{TestbedError, find};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub(crate) mod apt;
pub(crate) mod archive;
pub(crate) mod debian;
pub(crate) mod gvisor;
pub(crate) mod programs;
pub(crate) mod tree;

pub use crate::command::{STILL_RUNS, Step};

/// Fetches the newest image of a system. If that fails, an existing image and the downloads so far stay.
pub fn get(system: &System, step: &mut Step<'_>) -> Result<Image, TestbedError> {
    // One that is here is made again only if it is not the newest, or not as it was fetched.
    let here = Image::find(system).and_then(|image| image.check().map(|()| image)).ok();
    let here = here.as_ref();
    match system {
        System::Gvisor => put(system, step, |into, step| gvisor::make(into, here, step)),
        System::Linux(series) => {
            let suites = suites_of(system, series)?;
            put(system, step, |into, step| debian::make_kernel(series, suites, into, here, step))
        }
        System::Uml => put(system, step, |into, step| debian::make_uml(into, here, step)),
        other => {
            let (reason, advice) = match other {
                System::OwnUml(_) => ("it is built here", format!(": {}", how_to_get(other))),
                _ => ("it needs none", String::new()),
            };
            Err(describe_failure(&format!("get an image of {other}"), reason, &advice))
        }
    }
}

/// The suites that contain Debian's kernels of a series.
fn suites_of(system: &System, series: &str) -> Result<&'static [&'static str], TestbedError> {
    let known = SERIES.iter().find(|(known, _)| *known == series).map(|(_, suites)| *suites);
    known.ok_or_else(|| {
        describe_failure(
            &format!("get an image of {system}"),
            "no suite of Debian is known for it",
            &other_kernels(),
        )
    })
}

/// What can be had in place of a kernel whose series is not known.
fn other_kernels() -> String {
    let known: Vec<String> = SERIES.iter().map(|(series, _)| format!("linux-{series}")).collect();
    format!(
        ": there are {}; another kernel is built of its source (stacklab image build uml-NAME --tree DIR), or runs from a \
         disk image (disk:PATH)",
        known.join(", ")
    )
}

/// Builds user-mode Linux from a folder with a kernel's source or, if none is named, from Debian's stable kernel with
/// Jool. Replaces the existing image of that name. The objects that were compiled from a folder are kept for the next
/// build.
pub fn build(name: &str, source: Option<&Path>, step: &mut Step<'_>) -> Result<Image, TestbedError> {
    let system = System::OwnUml(name.to_owned());
    put(&system, step, |into, step| tree::make(&system, source, into, step).map(Some))
}

/// Says that an image is the newest one, if it is: made of the same source, with the same choice of modules.
fn is_newest(here: Option<&Image>, source: &str, packed: Option<&str>, step: &mut Step<'_>) -> bool {
    let is_newest = here.is_some_and(|image| image.is_of(source, packed));
    if is_newest {
        step("the image here is the newest one: nothing is fetched");
    }
    is_newest
}

/// Makes an image and has it replace the one that is here, unless `make` says that this one stays: with `None`.
fn put(
    system: &System,
    step: &mut Step<'_>,
    make: impl FnOnce(&Path, &mut Step<'_>) -> Result<Option<ImageInfo>, TestbedError>,
) -> Result<Image, TestbedError> {
    check_architecture()?;
    let folder = folder_of(system);
    let part = folder.with_file_name(format!("{system}.part"));
    remove(&part).and_then(|()| fs::create_dir_all(&part)).map_err(TestbedError::file(&part))?;
    let result = make(&part, step).and_then(|info| replace(&folder, &part, info));
    result.inspect_err(|_| {
        step("removing what was made of it");
        drop(remove(&part));
    })?;
    Image::find(system)
}

fn replace(folder: &Path, part: &Path, info: Option<ImageInfo>) -> Result<(), TestbedError> {
    let Some(info) = info else { return remove(part).map_err(TestbedError::file(part)) };
    Label::write(part, info).map_err(TestbedError::file(part))?;
    remove(folder).and_then(|()| fs::rename(part, folder)).map_err(TestbedError::file(folder))
}

/// Each series of Debian's kernels, and the suites of Debian's archive that contain it.
pub(crate) const SERIES: &[(&str, &[&str])] = &[
    ("5.10", &["bullseye-security"]),
    ("6.1", &["bookworm", "bookworm-security"]),
    ("6.12", &["bookworm-security", "bookworm-backports", "trixie"]),
    ("7.2", &["forky"]),
];

/// The folder of images and their sources: `STACKLAB_CACHE`, or `stacklab` in the user's cache folder.
pub fn cache() -> PathBuf {
    if let Some(own) = read_variable("STACKLAB_CACHE") {
        return own;
    }
    let shared = match read_variable("XDG_CACHE_HOME") {
        Some(shared) => shared,
        None => read_variable("HOME").unwrap_or_else(|| PathBuf::from("/var/cache")).join(".cache"),
    };
    shared.join("stacklab")
}

/// The path in a variable of the environment. `None` if it is empty.
fn read_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn folder_of(system: &System) -> PathBuf {
    cache().join("images").join(system.to_string())
}

/// The systems with images that can be fetched.
pub fn known() -> Vec<System> {
    let kernels = SERIES.iter().map(|(series, _)| System::Linux((*series).to_owned()));
    [System::Gvisor].into_iter().chain(kernels).chain([System::Uml]).collect()
}

/// The user-mode Linux images that were built here.
pub fn built() -> Vec<System> {
    let entries = fs::read_dir(cache().join("images")).into_iter().flatten().flatten();
    let mut systems = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let Some(system) = name.to_str().and_then(|name| name.parse::<System>().ok()) else { continue };
        // An image that is being built has no label yet.
        if matches!(system, System::OwnUml(_)) && folder_of(&system).join(LABEL).exists() {
            systems.push(system);
        }
    }
    systems.sort();
    systems
}

/// How to get the image that is here soonest of those with all mechanisms but Jool. It boots in QEMU.
pub const QUICKEST_IMAGE: &str = "stacklab image get linux-6.1 (under a minute)";

/// How to get QEMU.
pub const GET_QEMU: &str = "sudo apt-get install --no-install-recommends qemu-system-x86";

/// The path of the QEMU program. The error says how to get it.
pub fn emulator() -> Result<PathBuf, TestbedError> {
    check_architecture()?;
    find("qemu-system-x86_64", GET_QEMU)
}

/// Whether a system boots in QEMU, and QEMU is not installed.
pub(crate) fn lacks_emulator(system: &System) -> bool {
    matches!(system, System::Linux(_) | System::Disk(_)) && emulator().is_err()
}

/// The command that gets an image of a system.
pub fn how_to_get(system: &System) -> String {
    let way = if matches!(system, System::OwnUml(_)) { "build" } else { "get" };
    format!("stacklab image {way} {system}")
}

/// How long that takes, where nothing else uses the processors.
pub fn how_long_to_get(system: &System) -> &'static str {
    match system {
        System::OwnUml(_) => "five minutes",
        System::Gvisor => "some minutes",
        _ => "under a minute",
    }
}

/// An error: a system has no image here, or its image is incomplete. It names the command that gets one, and QEMU where
/// that is missing too.
pub(crate) fn no_image(system: &System, reason: String) -> TestbedError {
    TestbedError(describe_no_image(system, &reason, lacks_emulator(system)))
}

fn describe_no_image(system: &System, reason: &str, lacks_emulator: bool) -> String {
    if let System::Linux(series) = system
        && suites_of(system, series).is_err()
    {
        return format!("{system} cannot run here: {reason}{}", other_kernels());
    }
    let way = how_to_get(system);
    let time = how_long_to_get(system);
    let also = if lacks_emulator { format!(", and QEMU with: {GET_QEMU}") } else { String::new() };
    format!("{system} cannot run here: {reason}; get it with: {way} ({time}){also}")
}

/// An error unless this program runs in guests, whose kernels are x86-64.
pub fn check_architecture() -> Result<(), TestbedError> {
    if cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    let own = std::env::consts::ARCH;
    Err(TestbedError(format!("guests cannot run here: they are x86-64, and this stacklab is for {own}")))
}

/// The image that a system boots from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The system.
    pub system: System,
    /// Its exact version.
    pub version: String,
    /// The source that it was fetched or built from.
    pub source: String,
    /// The version of Jool in its kernel, if there is one.
    pub jool: Option<String>,
    packed: Option<String>,
    folder: PathBuf,
}

/// The label of an image, stored next to its files.
#[derive(Serialize, Deserialize)]
struct Label {
    #[serde(flatten)]
    info: ImageInfo,
    /// The size and SHA-256 of each file, by name.
    files: BTreeMap<String, (u64, String)>,
}

const LABEL: &str = "image.json";

impl Image {
    /// The image of a system, with all of its files. The error says how to get it.
    pub fn find(system: &System) -> Result<Self, TestbedError> {
        check_architecture()?;
        let folder = folder_of(system);
        let missing = |reason: String| no_image(system, reason);
        if !folder.exists() {
            return Err(missing(format!("no image of it is in {}", cache().display())));
        }
        let label = Label::read(&folder).map_err(|reason| missing(reason.to_string()))?;
        for (name, (bytes, _)) in &label.files {
            let path = folder.join(name);
            if path.metadata().ok().map(|about| about.len()) != Some(*bytes) {
                return Err(missing(format!("{} is missing or incomplete", path.display())));
            }
        }
        let ImageInfo { version, source, jool, packed } = label.info;
        Ok(Image { system: system.clone(), version, source, jool, packed, folder })
    }

    fn is_of(&self, source: &str, packed: Option<&str>) -> bool {
        self.source == source && self.packed.as_deref() == packed
    }

    /// The image of a system, to boot from. Its first boot in a process compares all of its files with the label.
    pub(crate) fn to_boot(system: &System) -> Result<Self, TestbedError> {
        static CHECKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let image = Image::find(system)?;
        let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        if !checked.contains(&image.folder) {
            image.check()?;
            checked.insert(image.folder.clone());
        }
        Ok(image)
    }

    /// Whether its kernel was configured without one of these options. Known only for images that were built here.
    pub(crate) fn lacks_options(&self, options: &[&str]) -> bool {
        let config = fs::read_to_string(self.file("config"));
        config.is_ok_and(|config| !options.iter().all(|option| config.lines().any(|line| line == *option)))
    }

    /// Whether its modules were packed without this one. Known only for Debian's kernels.
    pub(crate) fn lacks_module(&self, module: &str) -> bool {
        let mut packed = self.packed.as_deref().unwrap_or_default().split(' ');
        packed.all(|name| name != module)
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads all of its files and compares them with the label.
    pub fn check(&self) -> Result<(), TestbedError> {
        let wrong = |reason: String| no_image(&self.system, reason);
        let label = Label::read(&self.folder).map_err(|reason| wrong(reason.to_string()))?;
        for (name, (_, expected)) in &label.files {
            let path = self.folder.join(name);
            let found = sha256(&path).map_err(|reason| wrong(format!("{}: {reason}", path.display())))?;
            if found != *expected {
                return Err(wrong(format!("{} differs from the downloaded file", path.display())));
            }
        }
        Ok(())
    }
}

impl Label {
    fn read(folder: &Path) -> io::Result<Self> {
        let path = folder.join(LABEL);
        let label = fs::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
        label.map_err(|error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    fn write(folder: &Path, info: ImageInfo) -> io::Result<()> {
        let mut files = BTreeMap::new();
        for path in files_below(folder)? {
            let name = path.strip_prefix(folder).map_err(io::Error::other)?.to_string_lossy().into_owned();
            files.insert(name, (path.metadata()?.len(), sha256(&path)?));
        }
        fs::write(folder.join(LABEL), serde_json::to_vec_pretty(&Label { info, files })?)
    }
}

pub(crate) fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

/// SHA-256 of a file, hexadecimal.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_image_names_qemu_where_that_is_missing() {
        let unknown = describe_no_image(&System::Linux("6.11".to_owned()), "no image", false);
        assert!(unknown.contains("there are linux-5.10, linux-6.1, ") && !unknown.contains("image get"));
        let linux = System::Linux("6.1".to_owned());
        let image_alone =
            "linux-6.1 cannot run here: no image; get it with: stacklab image get linux-6.1 (under a minute)";
        assert_eq!(describe_no_image(&linux, "no image", false), image_alone);
        assert_eq!(
            describe_no_image(&linux, "no image", true),
            format!("{image_alone}, and QEMU with: {GET_QEMU}")
        );
        assert!(!lacks_emulator(&System::Uml), "user-mode Linux is a program");
    }
}
