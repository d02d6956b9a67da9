//! The programs of a Wi-Fi network: access point, stations, and a tool to look at them, with all their libraries and
//! the loader that fits. They are packed for a guest and never run on this machine.

use crate::image::apt::Apt;
use crate::image::cpio::Archive;
use crate::{Step, failed, run};
use stacklab_testbed::{LOADER, TestbedError};
use stacklab_wifi::{FOLDER, VERSIONS};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The image's file with the programs.
pub(crate) const ARCHIVE: &str = "wifi.cpio";

/// The packages of the programs, and the programs in them.
const PROGRAMS: [(&str, &str); 3] =
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
/// The folder of libraries and of the loader in their packages.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Fetches the programs, and packs them as an archive for a guest's initramfs.
pub(super) fn pack(
    apt: &Apt,
    by_way_of: &Path,
    archive: &Path,
    step: &mut Step<'_>,
) -> Result<(), TestbedError> {
    let folder = by_way_of.join("wifi");
    fs::create_dir_all(&folder).map_err(TestbedError::file(&folder))?;
    let mut versions = String::new();
    for (package, _) in PROGRAMS {
        versions += &format!("{package} {}\n", apt.unpack(package, &folder, step)?);
    }
    for package in LIBRARY_PACKAGES {
        apt.unpack(package, &folder, step)?;
    }
    let mut files = BTreeSet::from([folder.join(LIBRARIES).join(LOADER)]);
    for (package, program) in PROGRAMS {
        let program = folder.join(program);
        files.extend(libraries(&folder, package, &program)?);
        files.insert(program);
    }
    write(&files, &versions, archive).map_err(TestbedError::file(archive))
}

/// The libraries of a program in an unpacked folder, as its own loader lists them. Executes the loader only.
fn libraries(folder: &Path, package: &str, program: &Path) -> Result<Vec<PathBuf>, TestbedError> {
    let own = folder.join(LIBRARIES);
    let attempted = format!("list the libraries of {package}");
    let mut list = Command::new(own.join(LOADER));
    list.args(["--inhibit-cache", "--library-path"]).arg(&own).arg("--list").arg(program);
    let listed = run(list, &attempted, "")?;
    let missing = |library| format!("{library} is in none of the packages that are fetched");
    within(folder, &listed).map_err(|library| failed(&attempted, missing(library), ""))
}

/// Parses `libc.so.6 => /unpacked/libc.so.6 (0x7f..)`. An error is the library that is not in the folder.
fn within(folder: &Path, listed: &str) -> Result<Vec<PathBuf>, String> {
    let found = listed.lines().filter_map(|line| {
        let (name, place) = line.split_once(" => ")?;
        Some((name.trim(), Path::new(place.split(" (").next().unwrap_or(place).trim())))
    });
    found
        .map(|(name, path)| path.starts_with(folder).then(|| path.to_owned()).ok_or_else(|| name.to_owned()))
        .collect()
}

fn write(files: &BTreeSet<PathBuf>, versions: &str, archive: &Path) -> io::Result<()> {
    let mut out = Archive::create(archive)?;
    out.programs(FOLDER, files)?;
    out.file(&format!("{FOLDER}/{VERSIONS}"), versions.as_bytes())?;
    out.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_archive_has_programs_and_libraries_in_one_folder_with_their_versions() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["usr/sbin/hostapd", "usr/lib/libz.so.1"].map(|path| folder.path().join(path));
        for path in &files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "content").unwrap();
        }
        let archive = folder.path().join(ARCHIVE);
        write(&BTreeSet::from(files.clone()), "hostapd 2:2.10-24\n", &archive).unwrap();
        let bytes = fs::read(&archive).unwrap();
        let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        assert!(holds(b"wifi/hostapd\0") && holds(b"wifi/libz.so.1\0") && holds(b"hostapd 2:2.10-24\n"));
        fs::remove_file(&files[0]).unwrap();
        let said = write(&BTreeSet::from(files), "", &archive).unwrap_err().to_string();
        assert!(said.contains("usr/sbin/hostapd"), "{said}");
    }
}
