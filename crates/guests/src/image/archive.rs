//! What a guest's kernel unpacks when it boots: archives in the cpio format "newc" (the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst), with this program as the init process and its shared
//! libraries. Programs are packed without symbols and debug data, which are most of a file: a guest's memory has to
//! hold it twice.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Archive<W> {
    out: W,
    folders: BTreeSet<String>,
    number: u32,
}

const FOLDER: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;

impl Archive<BufWriter<File>> {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Archive::new(BufWriter::new(File::create(path)?)))
    }
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(out: W) -> Self {
        Archive { out, folders: BTreeSet::new(), number: 0 }
    }

    /// Adds a folder and its parent folders. The path has no leading slash.
    pub(crate) fn folder(&mut self, path: &str) -> io::Result<()> {
        if path.is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above)?;
        }
        self.folders.insert(path.to_owned());
        self.entry(path, FOLDER, &[])
    }

    /// Adds an executable file. The path has no leading slash.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above)?;
        }
        self.entry(path, EXECUTABLE, content)
    }

    pub(crate) fn programs(
        &mut self,
        folder: &str,
        files: impl IntoIterator<Item: AsRef<Path>>,
    ) -> io::Result<()> {
        for path in files {
            let path = path.as_ref();
            let content = fs::read(path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.file(&format!("{folder}/{name}"), &without_symbols(content))?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{path} is larger than 4 GiB"))
        })?;
        self.number += 1;
        // The fields are: inode, mode, user, group, links, time, size, device (2), rdev (2), length of the name,
        // checksum.
        let name = path.len() as u32 + 1;
        let fields = [self.number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0];
        let mut head = String::from("070701");
        for field in fields {
            head.push_str(&format!("{field:08x}"));
        }
        self.out.write_all(head.as_bytes())?;
        self.out.write_all(path.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(head.len() + path.len() + 1)?;
        self.out.write_all(content)?;
        self.pad(content.len())
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..written.next_multiple_of(4) - written])
    }
}

/// Offsets in an ELF file of 64 bits, little-endian (the System V ABI's `Elf64_Ehdr` and `Elf64_Phdr`).
const PROGRAM_HEADERS_AT: usize = 32;
const SECTION_HEADERS_AT: usize = 40;
const PROGRAM_HEADER_BYTES: usize = 54;
const PROGRAM_HEADERS: usize = 56;
const SECTION_HEADERS: usize = 60;
const SECTION_NAMES: usize = 62;
const FILE_HEADER_BYTES: usize = 64;
const SEGMENT_OFFSET: usize = 8;
const SEGMENT_BYTES: usize = 32;

/// The file up to the end of its last segment, without sections. Other files are returned unchanged.
pub(crate) fn without_symbols(mut file: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_segments(&file) else { return file };
    file.truncate(end);
    file[SECTION_HEADERS_AT..SECTION_HEADERS_AT + 8].fill(0);
    file[SECTION_HEADERS..SECTION_HEADERS + 2].fill(0);
    file[SECTION_NAMES..SECTION_NAMES + 2].fill(0);
    file
}

/// Whether the file names a loader (`PT_INTERP`), as dynamically linked programs do.
pub(crate) fn needs_a_loader(file: &[u8]) -> bool {
    const INTERPRETER: [u8; 4] = 3_u32.to_le_bytes();
    let headers = program_headers(file).unwrap_or_default();
    headers.into_iter().any(|header| file.get(header..header + 4) == Some(&INTERPRETER[..]))
}

fn end_of_segments(file: &[u8]) -> Option<usize> {
    let headers = program_headers(file)?;
    let mut end = headers.last()? + short(file, PROGRAM_HEADER_BYTES)?;
    for header in headers {
        end = end.max(long(file, header + SEGMENT_OFFSET)?.checked_add(long(file, header + SEGMENT_BYTES)?)?);
    }
    (FILE_HEADER_BYTES..=file.len()).contains(&end).then_some(end)
}

fn program_headers(file: &[u8]) -> Option<Vec<usize>> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = long(file, PROGRAM_HEADERS_AT)?;
    let each = short(file, PROGRAM_HEADER_BYTES)?;
    let count = short(file, PROGRAM_HEADERS)?;
    first.checked_add(each * count).filter(|end| *end <= file.len())?;
    Some((0..count).map(|number| first + number * each).collect())
}

fn short(file: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?)))
}

fn long(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?)).ok()
}

const PROGRAM: &str = "stacklab";

/// Writes an archive: first other archives (modules), then this program, then other programs at their own paths.
/// Leaves no incomplete file.
pub(crate) fn write_initramfs(
    path: &Path,
    before: &[PathBuf],
    program: &Path,
    others: &[PathBuf],
) -> io::Result<()> {
    let part = path.with_extension("part");
    write_part(&part, before, program, others)
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| drop(fs::remove_file(&part)))
}

fn write_part(part: &Path, before: &[PathBuf], program: &Path, others: &[PathBuf]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(part)?);
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
    archive.finish().map(drop)
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
    let mut paths = Vec::new();
    for line in listed.lines() {
        let path = line.split_whitespace().find(|word| word.starts_with('/'));
        paths.extend(path.map(PathBuf::from));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Stdio;

    #[test]
    fn cpio_reads_what_was_written() {
        let mut archive = Archive::new(Vec::new());
        archive.file("usr/lib/x/one", b"1").unwrap();
        archive.file("usr/two", &[7; 1001]).unwrap();
        archive.file("usr/lib/three", b"").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let mut cpio = Command::new("cpio")
            .args(["-it", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cpio is installed");
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listed = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        let names: Vec<&str> = listed.lines().collect();
        assert_eq!(names, ["usr", "usr/lib", "usr/lib/x", "usr/lib/x/one", "usr/two", "usr/lib/three"]);
    }

    #[test]
    fn a_program_runs_without_its_symbols_and_is_smaller() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let bare = without_symbols(whole.clone());
        // By how much depends on the debug data that it was compiled with.
        assert!(bare.len() < whole.len(), "{} of {}", bare.len(), whole.len());
        assert!(needs_a_loader(&bare));
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&file, bare).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let listed = Command::new(&file).arg("--list").output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("without_its_symbols"));
    }

    #[test]
    fn what_is_no_program_stays_as_it_is() {
        for other in [&b"#!/bin/sh\n"[..], b"", b"\x7fELF\x02\x01"] {
            assert_eq!(without_symbols(other.to_vec()), other);
            assert!(!needs_a_loader(other));
        }
    }

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
        let before = folder.path().join("before");
        let path = folder.path().join("all.cpio");
        fs::write(&before, "0707").unwrap();
        write_initramfs(&path, &[before], &std::env::current_exe().unwrap(), &[]).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"0707070701"));
        let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        assert!(holds(b"libc.so.6\0") && holds(b"stacklab\0"));
        assert!(write_initramfs(&folder.path().join("x"), &[], Path::new("/nonexistent"), &[]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-written is left");
    }
}
