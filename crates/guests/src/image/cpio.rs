//! Archives that a kernel unpacks when it boots: cpio in the "newc" format (the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use crate::image::elf::without_symbols;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes an archive. Creates folders as files need them.
pub(crate) struct Archive<W> {
    out: W,
    folders: BTreeSet<String>,
    number: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive<BufWriter<File>> {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Archive::new(BufWriter::new(File::create(path)?)))
    }
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Archive { out, folders: BTreeSet::new(), number: 0 }
    }

    /// Adds a folder and its parent folders. The path has no leading slash.
    pub(super) fn folder(&mut self, path: &str) -> io::Result<()> {
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
    pub(super) fn file(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above)?;
        }
        self.entry(path, PROGRAM, content)
    }

    /// Adds programs and libraries to one folder, without their symbols.
    pub(super) fn programs(
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

    pub(super) fn finish(mut self) -> io::Result<W> {
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

    /// Pads to a word boundary: names and contents start at whole words.
    fn pad(&mut self, written: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..written.next_multiple_of(4) - written])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

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
}
