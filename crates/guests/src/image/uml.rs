//! Debian's build of user-mode Linux, together with the C library that it needs, which is newer than that of most
//! machines.

use crate::image::apt::Apt;
use crate::image::installed::cache;
use crate::image::kernel::pack;
use crate::{ImageInfo, Step, failed};
use stacklab_testbed::{LOADER, TestbedError};
use std::fs;
use std::io;
use std::path::Path;

const SUITES: &[&str] = &["forky"];
const PACKAGE: &str = "user-mode-linux";
/// The folder of the C library in its package.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// The loader that the kernel file names, and its replacement: a loader in the folder in which the kernel is started.
const NAMED: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
const OWN: &[u8] = b"./ld.so\0";

/// Fetches it into a folder: `kernel`, `modules.cpio`, and `lib` with a loader `ld.so`.
pub(super) fn make(into: &Path, step: &mut Step<'_>) -> Result<ImageInfo, TestbedError> {
    let apt = Apt::open(cache().join("apt").join("uml"), SUITES, step)?;
    let unpacked = into.join("unpacked");
    let version = apt.unpack(PACKAGE, &unpacked, step)?;
    apt.unpack("libc6", &unpacked, step)?;
    let attempted = format!("find the kernel of {PACKAGE} {version}");
    place(&unpacked, into).map_err(|reason| failed(&attempted, reason, ""))?;
    // 7.2um1+b1: the kernel's version, then Debian's.
    let release = version.split("um").next().unwrap_or(&version).to_owned();
    Ok(ImageInfo { version: release, source: format!("{PACKAGE} {version}"), jool: None })
}

fn place(unpacked: &Path, into: &Path) -> io::Result<()> {
    let kernels = ["usr/bin/linux.uml", "usr/bin/linux"].map(|path| unpacked.join(path));
    let kernel = kernels.iter().find(|path| path.exists());
    let kernel =
        kernel.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no usr/bin/linux.uml"))?;
    let about = kernel.metadata()?.permissions();
    let own = into.join("kernel");
    fs::write(&own, with_own_loader(fs::read(kernel)?)?)?;
    fs::set_permissions(&own, about)?;
    let folder = into.join("lib");
    fs::create_dir_all(&folder)?;
    let libraries = fs::read_dir(unpacked.join(LIBRARIES))?.flatten().map(|entry| entry.path());
    for library in libraries.filter(|path| path.is_file()) {
        let name = library.file_name().unwrap_or_default();
        fs::copy(&library, folder.join(if name == LOADER { "ld.so".as_ref() } else { name }))?;
    }
    pack(unpacked, &into.join("modules.cpio"))?;
    fs::remove_dir_all(unpacked)
}

/// The kernel file, changed to use the bundled loader, so that it also finds that loader when it restarts itself.
fn with_own_loader(mut file: Vec<u8>) -> io::Result<Vec<u8>> {
    let at = file.windows(NAMED.len()).position(|window| window == NAMED);
    let at = at.ok_or_else(|| io::Error::other("the kernel file names no loader that is known"))?;
    file[at..at + OWN.len()].copy_from_slice(OWN);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_named_anew_and_nothing_moves() {
        let file = [b"\x7fELF..", NAMED, b"rest"].concat();
        let own = with_own_loader(file.clone()).unwrap();
        assert_eq!(own.len(), file.len());
        assert!(own.starts_with(b"\x7fELF.../ld.so\0") && own.ends_with(b"\0rest"));
        assert!(with_own_loader(b"static".to_vec()).is_err());
    }
}
