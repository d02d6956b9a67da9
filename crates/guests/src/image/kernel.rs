//! Debian's kernels: the newest one of a series, in the cloud flavour for virtual machines, with the modules that
//! guests load.

use crate::image::apt::Apt;
use crate::image::cpio::Archive;
use crate::image::installed::{SERIES, cache};
use crate::image::modules::{self, find, in_order, wanted};
use crate::{ImageInfo, Step, failed};
use stacklab_testbed::TestbedError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Fetches the newest kernel of a series into a folder: `kernel` and `modules.cpio`.
pub(super) fn make(series: &str, into: &Path, step: &mut Step<'_>) -> Result<ImageInfo, TestbedError> {
    let (_, suites) = SERIES.iter().find(|(known, _)| *known == series).ok_or_else(|| {
        let known: Vec<&str> = SERIES.iter().map(|(series, _)| *series).collect();
        let reason = format!("the series whose suites are known are {}", known.join(", "));
        let advice = "; your kernel can run from a disk image (disk:PATH)";
        failed(&format!("get Linux {series}"), reason, advice)
    })?;
    let apt = Apt::open(cache().join("apt").join(format!("linux-{series}")), suites, step)?;
    let unpacked = into.join("unpacked");
    let image = apt.newest(&format!("linux-image-{series}"), "-cloud-amd64")?;
    let version = apt.unpack(&image, &unpacked, step)?;
    let step_failed = |what: &str, reason: io::Error| failed(&format!("{what} of {image}"), reason, "");
    // Newer kernels have their kernel and modules in separate packages, on which the package of this name depends.
    if kernel_in(&unpacked).is_err() {
        for part in ["linux-binary", "linux-modules"] {
            apt.unpack(&image.replacen("linux-image", part, 1), &unpacked, step)?;
        }
    }
    let (kernel, release) = kernel_in(&unpacked).map_err(|error| step_failed("find the kernel", error))?;
    step("packing the modules that guests load");
    pack(&unpacked, &into.join("modules.cpio")).map_err(|error| step_failed("pack the modules", error))?;
    let placed = fs::rename(&kernel, into.join("kernel")).and_then(|()| fs::remove_dir_all(&unpacked));
    placed.map_err(|error| step_failed("keep the kernel", error))?;
    Ok(ImageInfo { version: release, source: format!("{image} {version}"), jool: None })
}

/// Finds the kernel and its release: `boot/vmlinuz-RELEASE`, or `usr/lib/modules/RELEASE/vmlinuz`.
fn kernel_in(unpacked: &Path) -> io::Result<(PathBuf, String)> {
    let files = |folder: &str| {
        let entries = fs::read_dir(unpacked.join(folder)).into_iter().flatten().flatten();
        entries
            .map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
            .collect::<Vec<_>>()
    };
    let in_boot = files("boot").into_iter();
    let mut in_boot =
        in_boot.filter_map(|(path, name)| Some((path, name.strip_prefix("vmlinuz-")?.to_owned())));
    let beside = files("usr/lib/modules").into_iter().map(|(path, name)| (path.join("vmlinuz"), name));
    let found = in_boot.next().or_else(|| beside.into_iter().find(|(path, _)| path.exists()));
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no vmlinuz"))
}

/// Writes the wanted modules as an archive for the initramfs. Their names give the order of loading.
pub(super) fn pack(unpacked: &Path, archive: &Path) -> io::Result<()> {
    let folders =
        ["lib/modules", "usr/lib/modules", "usr/lib/uml/modules"].map(|folder| unpacked.join(folder));
    let folder = folders.into_iter().find(|folder| folder.exists());
    let folder = folder.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no lib/modules"))?;
    let mut out = Archive::create(archive)?;
    modules::pack(in_order(&find(&folder)?, &wanted())?, &mut out)?;
    out.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_in_either_place_with_its_release() {
        let folder = tempfile::tempdir().unwrap();
        assert!(kernel_in(folder.path()).is_err());
        let beside = folder.path().join("usr/lib/modules/7.2.12+deb14-cloud-amd64");
        fs::create_dir_all(&beside).unwrap();
        assert!(kernel_in(folder.path()).is_err(), "modules are no kernel");
        fs::write(beside.join("vmlinuz"), "").unwrap();
        let (path, release) = kernel_in(folder.path()).unwrap();
        assert_eq!((path, release.as_str()), (beside.join("vmlinuz"), "7.2.12+deb14-cloud-amd64"));
        let boot = folder.path().join("boot");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("vmlinuz-6.1.0-1-cloud-amd64"), "").unwrap();
        assert_eq!(kernel_in(folder.path()).unwrap().1, "6.1.0-1-cloud-amd64");
    }
}
