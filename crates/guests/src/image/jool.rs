//! Jool, a translator between IPv4 and IPv6 in the kernel: modules that are compiled for a newly built kernel, and
//! the programs that configure them, with their libraries.

use crate::image::apt::Apt;
use crate::image::cpio::Archive;
use crate::image::modules;
use crate::{Step, run};
use stacklab_testbed::TestbedError;
use stacklab_testbed::mechanism::translate::JOOL_FOLDER;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages with the source of its modules and with its programs.
const MODULES: &str = "jool-dkms";
const PROGRAMS: &str = "jool-tools";
/// The packages with the programs' libraries.
const LIBRARIES: [&str; 3] = ["libc6", "libnl-3-200", "libnl-genl-3-200"];
/// The programs and their shared libraries.
const FILES: [&str; 7] = [
    "usr/bin/jool",
    "usr/bin/jool_siit",
    "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "usr/lib/x86_64-linux-gnu/libc.so.6",
    "usr/lib/x86_64-linux-gnu/libm.so.6",
    "usr/lib/x86_64-linux-gnu/libnl-3.so.200",
    "usr/lib/x86_64-linux-gnu/libnl-genl-3.so.200",
];
/// The folders and names of its modules, each after its dependencies.
const COMPILED: [(&str, &str); 3] = [("common", "jool_common"), ("nat64", "jool"), ("siit", "jool_siit")];

/// Compiles the modules in a temporary folder, and packs all that a guest needs as an archive for its initramfs.
/// `make` returns a command that builds a target of the kernel. Returns the version.
pub(super) fn pack(
    apt: &Apt,
    by_way_of: &Path,
    archive: &Path,
    make: impl Fn(&str) -> Command,
    step: &mut Step<'_>,
) -> Result<String, TestbedError> {
    let folder = by_way_of.join("jool");
    let version = apt.unpack(MODULES, &folder, step)?;
    for package in [PROGRAMS].into_iter().chain(LIBRARIES) {
        apt.unpack(package, &folder, step)?;
    }
    let source = source(&folder).map_err(TestbedError::file(&folder))?;
    step(&format!("compiling Jool {version}"));
    for (place, _) in COMPILED {
        let mut compile = make("modules");
        compile.arg(format!("M={}", source.join(place).display()));
        run(compile, &format!("compile {MODULES} {version}"), "")?;
    }
    write(&folder, &source, archive).map_err(TestbedError::file(archive))?;
    // 4.1.13-1.1: the version of Jool, then Debian's revision.
    Ok(version.split('-').next().unwrap_or(&version).to_owned())
}

/// The folder of the modules' source: `usr/src/jool-VERSION/src/mod`.
fn source(unpacked: &Path) -> io::Result<PathBuf> {
    let found = fs::read_dir(unpacked.join("usr/src"))?.flatten().map(|entry| entry.path().join("src/mod"));
    let mut found = found.filter(|path| path.exists());
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no usr/src/jool-*/src/mod"))
}

fn write(unpacked: &Path, source: &Path, archive: &Path) -> io::Result<()> {
    let mut out = Archive::create(archive)?;
    let module = |(place, name): (&str, &str)| {
        Ok((name.to_owned(), fs::read(source.join(place).join(format!("{name}.ko")))?))
    };
    modules::pack(COMPILED.into_iter().map(module).collect::<io::Result<_>>()?, &mut out)?;
    out.programs(JOOL_FOLDER, FILES.map(|file| unpacked.join(file)))?;
    out.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_testbed::host::program::LOADER;

    #[test]
    fn an_archive_has_the_modules_in_their_order_and_all_that_the_programs_need() {
        let folder = tempfile::tempdir().unwrap();
        assert!(source(folder.path()).is_err());
        let modules = folder.path().join("usr/src/jool-4.1.13/src/mod");
        for (place, name) in COMPILED {
            fs::create_dir_all(modules.join(place)).unwrap();
            fs::write(modules.join(place).join(format!("{name}.ko")), name).unwrap();
        }
        assert_eq!(source(folder.path()).unwrap(), modules);
        let archive = folder.path().join("modules.cpio");
        let said = write(folder.path(), &modules, &archive).unwrap_err().to_string();
        assert!(said.contains("usr/bin/jool"), "{said}");
        for file in FILES {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        write(folder.path(), &modules, &archive).unwrap();
        let bytes = fs::read(&archive).unwrap();
        let at = |name: &str| bytes.windows(name.len()).position(|window| window == name.as_bytes());
        let order =
            ["modules/000-jool_common.ko\0", "modules/001-jool.ko\0", "modules/002-jool_siit.ko\0"].map(at);
        assert!(order.is_sorted() && order[0].is_some(), "{order:?}");
        assert!(at("jool/jool_siit\0").is_some() && at(&format!("jool/{}\0", LOADER)).is_some());
    }
}
