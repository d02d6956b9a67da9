//! Programs that are packed for a guest with all their libraries and never run on this machine: Jool, a translator
//! between IPv4 and IPv6, with its modules, which are compiled for a newly built kernel; and those of a Wi-Fi network:
//! access point, stations, and a tool to look at them, with the loader that fits.

use crate::command::run_slowly;
use crate::image::apt::Apt;
use crate::image::archive::Archive;
use crate::image::debian::modules_into;
use crate::{Step, describe_failure, run};
use stacklab_testbed::mechanism::translate::JOOL_FOLDER;
use stacklab_testbed::{LOADER, TestbedError};
use stacklab_wifi::{FOLDER, VERSIONS};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

const JOOL_MODULES: &str = "jool-dkms";
const JOOL_TOOLS: &str = "jool-tools";
const JOOL_LIBRARIES: [&str; 3] = ["libc6", "libnl-3-200", "libnl-genl-3-200"];
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
pub(super) fn pack_jool(
    apt: &Apt,
    by_way_of: &Path,
    archive: &Path,
    make: impl Fn(&str) -> Command,
    step: &mut Step<'_>,
) -> Result<String, TestbedError> {
    let folder = by_way_of.join("jool");
    let version = apt.unpack(JOOL_MODULES, &folder, step)?;
    for package in [JOOL_TOOLS].into_iter().chain(JOOL_LIBRARIES) {
        apt.unpack(package, &folder, step)?;
    }
    let source = source(&folder).map_err(TestbedError::file(&folder))?;
    step(&format!("compiling Jool {version}"));
    for (place, _) in COMPILED {
        let mut compile = make("modules");
        compile.arg(format!("M={}", source.join(place).display()));
        let attempted = format!("compile {JOOL_MODULES} {version}");
        run_slowly(compile, &attempted, "", &format!("compiling Jool {version}"), step)?;
    }
    write_jool(&folder, &source, archive).map_err(TestbedError::file(archive))?;
    // 4.1.13-1.1: the version of Jool, then Debian's revision.
    Ok(version.split('-').next().unwrap_or(&version).to_owned())
}

/// The folder of the modules' source: `usr/src/jool-VERSION/src/mod`.
fn source(unpacked: &Path) -> io::Result<PathBuf> {
    let found = fs::read_dir(unpacked.join("usr/src"))?.flatten().map(|entry| entry.path().join("src/mod"));
    let mut found = found.filter(|path| path.exists());
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no usr/src/jool-*/src/mod"))
}

fn write_jool(unpacked: &Path, source: &Path, archive: &Path) -> io::Result<()> {
    let mut out = Archive::create(archive)?;
    let mut modules = Vec::new();
    for (place, name) in COMPILED {
        let module = fs::read(source.join(place).join(format!("{name}.ko")))?;
        modules.push((name.to_owned(), module));
    }
    modules_into(modules, &mut out)?;
    out.programs(JOOL_FOLDER, FILES.map(|file| unpacked.join(file)))?;
    out.finish().map(drop)
}

pub(crate) const WIFI_ARCHIVE: &str = "wifi.cpio";

const WIFI_PROGRAMS: [(&str, &str); 3] =
    [("hostapd", "usr/sbin/hostapd"), ("wpasupplicant", "usr/sbin/wpa_supplicant"), ("iw", "usr/sbin/iw")];
/// The packages with the programs' libraries.
const LIBRARY_PACKAGES: [&str; 11] = [
    "libc6",
    "libnl-3-200",
    "libnl-genl-3-200",
    "libnl-route-3-200",
    "libssl3t64",
    "libdbus-1-3",
    "libpcsclite1",
    "libsystemd0",
    "libcap2",
    "zlib1g",
    "libzstd1",
];
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

pub(super) fn pack_wifi(
    apt: &Apt,
    by_way_of: &Path,
    archive: &Path,
    step: &mut Step<'_>,
) -> Result<(), TestbedError> {
    let folder = by_way_of.join("wifi");
    fs::create_dir_all(&folder).map_err(TestbedError::file(&folder))?;
    let mut versions = String::new();
    for (package, _) in WIFI_PROGRAMS {
        versions += &format!("{package} {}\n", apt.unpack(package, &folder, step)?);
    }
    for package in LIBRARY_PACKAGES {
        apt.unpack(package, &folder, step)?;
    }
    let mut files = BTreeSet::from([folder.join(LIBRARIES).join(LOADER)]);
    for (package, program) in WIFI_PROGRAMS {
        let program = folder.join(program);
        files.extend(libraries(&folder, package, &program)?);
        files.insert(program);
    }
    write_wifi(&files, &versions, archive).map_err(TestbedError::file(archive))
}

/// The libraries of a program in an unpacked folder, as its own loader lists them. Executes the loader only.
fn libraries(folder: &Path, package: &str, program: &Path) -> Result<Vec<PathBuf>, TestbedError> {
    let own = folder.join(LIBRARIES);
    let attempted = format!("list the libraries of {package}");
    let mut list = Command::new(own.join(LOADER));
    list.args(["--inhibit-cache", "--library-path"]).arg(&own).arg("--list").arg(program);
    let listed = run(list, &attempted, "")?;
    within(folder, &listed).map_err(|library| {
        let reason = format!("{library} is in none of the packages that are fetched");
        describe_failure(&attempted, reason, "")
    })
}

/// Parses `libc.so.6 => /unpacked/libc.so.6 (0x7f..)`. An error is the library that is not in the folder.
fn within(folder: &Path, listed: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for line in listed.lines() {
        let Some((name, place)) = line.split_once(" => ") else { continue };
        let path = Path::new(place.split(" (").next().unwrap_or(place).trim());
        if !path.starts_with(folder) {
            return Err(name.trim().to_owned());
        }
        found.push(path.to_owned());
    }
    Ok(found)
}

fn write_wifi(files: &BTreeSet<PathBuf>, versions: &str, archive: &Path) -> io::Result<()> {
    let mut out = Archive::create(archive)?;
    out.programs(FOLDER, files)?;
    out.file(&format!("{FOLDER}/{VERSIONS}"), versions.as_bytes())?;
    out.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_testbed::host::program::LOADER;

    #[test]
    fn archive_has_ordered_modules_and_program_needs() {
        let folder = tempfile::tempdir().unwrap();
        assert!(source(folder.path()).is_err());
        let modules = folder.path().join("usr/src/jool-4.1.13/src/mod");
        for (place, name) in COMPILED {
            fs::create_dir_all(modules.join(place)).unwrap();
            fs::write(modules.join(place).join(format!("{name}.ko")), name).unwrap();
        }
        assert_eq!(source(folder.path()).unwrap(), modules);
        let archive = folder.path().join("modules.cpio");
        let said = write_jool(folder.path(), &modules, &archive).unwrap_err().to_string();
        assert!(said.contains("usr/bin/jool"), "{said}");
        for file in FILES {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        write_jool(folder.path(), &modules, &archive).unwrap();
        let bytes = fs::read(&archive).unwrap();
        let at = |name: &str| bytes.windows(name.len()).position(|window| window == name.as_bytes());
        let order =
            ["modules/000-jool_common.ko\0", "modules/001-jool.ko\0", "modules/002-jool_siit.ko\0"].map(at);
        assert!(order.is_sorted() && order[0].is_some(), "{order:?}");
        assert!(at("jool/jool_siit\0").is_some() && at(&format!("jool/{}\0", LOADER)).is_some());
    }

    #[test]
    fn libraries_come_from_the_packages_or_not_at_all() {
        let listed = "\tlinux-vdso.so.1 (0x1)\n\
            \tlibnl-3.so.200 => /unpacked/usr/lib/x86_64-linux-gnu/libnl-3.so.200 (0x2)\n\
            \t/lib64/ld-linux-x86-64.so.2 => /unpacked/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 (0x3)\n";
        let folder = Path::new("/unpacked");
        let found = within(folder, listed).unwrap();
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["libnl-3.so.200", LOADER]);
        let of_the_machine = "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x4)\n";
        assert_eq!(within(folder, &format!("{listed}{of_the_machine}")), Err("libz.so.1".to_owned()));
        assert_eq!(within(folder, "\tlibz.so.1 => not found\n"), Err("libz.so.1".to_owned()));
    }

    #[test]
    fn archive_has_programs_and_libraries_with_versions() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["usr/sbin/hostapd", "usr/lib/libz.so.1"].map(|path| folder.path().join(path));
        for path in &files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "content").unwrap();
        }
        let archive = folder.path().join(WIFI_ARCHIVE);
        write_wifi(&BTreeSet::from(files.clone()), "hostapd 2:2.10-24\n", &archive).unwrap();
        let bytes = fs::read(&archive).unwrap();
        let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        assert!(holds(b"wifi/hostapd\0") && holds(b"wifi/libz.so.1\0") && holds(b"hostapd 2:2.10-24\n"));
        fs::remove_file(&files[0]).unwrap();
        let said = write_wifi(&BTreeSet::from(files), "", &archive).unwrap_err().to_string();
        assert!(said.contains("usr/sbin/hostapd"), "{said}");
    }
}
