//! The initramfs of a guest: this program as the init process, with its shared libraries.

use crate::image::cpio::Archive;
use crate::image::elf::{needs_a_loader, without_symbols};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program's name in the guest's root folder.
const PROGRAM: &str = "stacklab";

/// Writes an archive: first other archives (modules), then this program, then other programs at their own paths.
/// Leaves no incomplete file.
pub(crate) fn write(path: &Path, before: &[PathBuf], program: &Path, others: &[PathBuf]) -> io::Result<()> {
    let part = path.with_extension("part");
    let write = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(&part)?);
        for archive in before {
            io::copy(&mut File::open(archive)?, &mut out)?;
        }
        let mut archive = Archive::new(out);
        for folder in ["dev", "proc", "sys", "tmp"] {
            archive.folder(folder)?;
        }
        let mut files: BTreeSet<PathBuf> = others.iter().cloned().collect();
        for program in others.iter().map(PathBuf::as_path).chain([program]) {
            files.extend(libraries(program)?);
        }
        for file in files {
            let text = file.to_str().ok_or_else(|| io::Error::other("a file's path is not text"))?;
            archive.file(text.trim_start_matches('/'), &without_symbols(fs::read(&file)?))?;
        }
        archive.file(PROGRAM, &without_symbols(fs::read(program)?))?;
        archive.finish()?;
        fs::rename(&part, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&part)))
}

/// The shared libraries of a program, and its loader, as listed by the loader. Empty for a program without a loader.
fn libraries(program: &Path) -> io::Result<BTreeSet<PathBuf>> {
    // A program without a loader would be executed.
    if !needs_a_loader(&fs::read(program)?) {
        return Ok(BTreeSet::new());
    }
    let listed = Command::new(program).env("LD_TRACE_LOADED_OBJECTS", "1").output()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(paths(&text).into_iter().filter(|path| path.is_file()).collect())
}

/// Parses `libc.so.6 => /lib/libc.so.6 (0x7f..)`, and for the loader `/lib64/ld-linux-x86-64.so.2 (0x7f..)`.
fn paths(listed: &str) -> Vec<PathBuf> {
    let word = |line: &str| {
        let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
        Some(PathBuf::from(path))
    };
    listed.lines().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let listed =
            "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(paths(listed), [PathBuf::from("/lib/x/libc.so.6"), PathBuf::from("/lib64/ld.so.2")]);
        assert!(paths("\tstatically linked\n").is_empty());
    }

    #[test]
    fn this_program_is_packed_with_its_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let (before, path) = (folder.path().join("before"), folder.path().join("all.cpio"));
        fs::write(&before, "0707").unwrap();
        write(&path, &[before], &std::env::current_exe().unwrap(), &[]).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"0707070701"));
        let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        assert!(holds(b"libc.so.6\0") && holds(b"stacklab\0"));
        assert!(write(&folder.path().join("x"), &[], Path::new("/nonexistent"), &[]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-written is left");
    }
}
