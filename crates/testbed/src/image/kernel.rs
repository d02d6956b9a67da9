//! Debian's kernels: the newest one of a series, in the flavour for virtual machines, with the modules that guests load.

use super::apt::Apt;
use super::cache;
use super::cpio::Archive;
use super::fetch::{Made, Step};
use super::modules::{WANTED, find, in_order};
use crate::error::TestbedError;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A series, and the suites of Debian's archive that have it.
pub(super) const SERIES: &[(&str, &[&str])] = &[
    ("5.10", &["bullseye-security"]),
    ("6.1", &["bookworm", "bookworm-security"]),
    ("6.12", &["bookworm-security", "bookworm-backports", "trixie"]),
    ("7.2", &["forky"]),
];

/// Fetches the newest kernel of a series into a folder: `kernel` and `modules.cpio`.
pub(super) fn make(series: &str, into: &Path, step: &mut Step<'_>) -> Result<Made, TestbedError> {
    let (_, suites) = SERIES.iter().find(|(known, _)| *known == series).ok_or_else(|| {
        let known: Vec<&str> = SERIES.iter().map(|(series, _)| *series).collect();
        TestbedError::Get {
            attempted: format!("get Linux {series}"),
            reason: format!("the series whose suites are known are {}", known.join(", ")),
            advice: "; a kernel of your own can run from a disk image (disk:PATH)".to_owned(),
        }
    })?;
    let apt = Apt::open(cache().join("apt").join(format!("linux-{series}")), suites, step)?;
    let unpacked = into.join("unpacked");
    let image = apt.newest(&format!("linux-image-{series}"), "-cloud-amd64")?;
    let version = apt.unpack(&image, &unpacked, step)?;
    let attempted = |what: &str, reason: io::Error| TestbedError::Get {
        attempted: format!("{what} of {image}"),
        reason: reason.to_string(),
        advice: String::new(),
    };
    let kernel = kernel_in(&unpacked).map_err(|error| attempted("find the kernel", error))?;
    let release = release_of(&kernel);
    step("packing the modules that guests load");
    pack(&unpacked, &into.join("modules.cpio")).map_err(|error| attempted("pack the modules", error))?;
    let placed = fs::rename(&kernel, into.join("kernel")).and_then(|()| fs::remove_dir_all(&unpacked));
    placed.map_err(|error| attempted("keep the kernel", error))?;
    Ok(Made { version: release, source: format!("{image} {version}") })
}

/// `boot/vmlinuz-RELEASE`.
fn kernel_in(unpacked: &Path) -> io::Result<PathBuf> {
    let mut kernels = fs::read_dir(unpacked.join("boot"))?.flatten().map(|entry| entry.path());
    let is_kernel =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"));
    kernels.find(is_kernel).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no boot/vmlinuz"))
}

fn release_of(kernel: &Path) -> String {
    let name = kernel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.strip_prefix("vmlinuz-").unwrap_or(&name).to_owned()
}

/// Writes the wanted modules as an archive for the initramfs, named in the order in which they are to be loaded.
fn pack(unpacked: &Path, archive: &Path) -> io::Result<()> {
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| unpacked.join(folder));
    let folder = folders.into_iter().find(|folder| folder.exists());
    let folder = folder.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no lib/modules"))?;
    let mut out = Archive::new(BufWriter::new(File::create(archive)?));
    for (number, (name, module)) in in_order(&find(&folder)?, WANTED)?.into_iter().enumerate() {
        out.file(&format!("modules/{number:03}-{name}.ko"), &module)?;
    }
    out.finish()?.flush()
}
