//! Reads what the plugin for user mode leaves (`sys/user_plugin.rs`): which blocks of which files were executed, and
//! how often. Untrusted input: the counted programs could write to these files.

use stacklab_model::printable_text;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Most blocks of a process, as in the plugin, and most processes of a run.
const MAX_BLOCKS: u64 = 1 << 21;
const MAX_PROCESSES: usize = 10_000;
/// Most instructions of a run: more than any machine executes, and sums of several runs have room in 63 bits.
const MAX_INSTRUCTIONS: u64 = 1 << 60;
const HEADER_BYTES: usize = 320;
const TEXT_OFFSET: usize = 64;
const FILES_OFFSET: u64 = 4096;
const FILES_BYTES: u64 = 4 << 20;
const BLOCK_BYTES: usize = 24;

/// A file with code. Another one may have been at its path at another time.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CodeFile {
    /// Empty for code that was made in memory.
    pub path: String,
    pub identity: Identity,
}

/// What distinguishes a file from another one at its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    device: i64,
    inode: i64,
    size: i64,
    modified: [i64; 2],
}

impl Identity {
    /// That of the file which is now at a path.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let about = path.metadata().ok()?;
        let modified = [about.mtime(), about.mtime_nsec()];
        Some(Identity {
            device: about.dev() as i64,
            inode: about.ino() as i64,
            size: about.size() as i64,
            modified,
        })
    }
}

impl CodeFile {
    /// Reads a line of the plugin: device, inode, size, time of the last change in seconds and nanoseconds, and path.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = words.next()?.parse::<i128>().ok()? as i64;
        }
        let [device, inode, size, seconds, nanoseconds] = numbers;
        let identity = Identity { device, inode, size, modified: [seconds, nanoseconds] };
        Some(CodeFile { path: words.next()?.to_owned(), identity })
    }
}

/// The instructions of the processes of a client or a server, by file and offset of their blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Executed {
    pub files: BTreeMap<CodeFile, BTreeMap<u64, u64>>,
}

impl Executed {
    /// All instructions.
    pub(super) fn total(&self) -> u64 {
        let mut total: u64 = 0;
        for instructions in self.files.values().flat_map(BTreeMap::values) {
            total = total.saturating_add(*instructions);
        }
        total
    }

    fn add(&mut self, file: &CodeFile, offset: u64, instructions: u64) {
        if !self.files.contains_key(file) {
            self.files.insert(file.clone(), BTreeMap::new());
        }
        if let Some(blocks) = self.files.get_mut(file) {
            let count = blocks.entry(offset).or_default();
            *count = count.saturating_add(instructions);
        }
    }
}

/// Reads the files of all processes of a folder. The error says why they do not have all instructions.
pub(super) fn read_folder(folder: &Path) -> Result<Executed, String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(describe_unreadable)? {
        names.insert(entry.map_err(describe_unreadable)?.file_name());
        if names.len() > MAX_PROCESSES {
            return Err(format!("it starts more than {MAX_PROCESSES} processes"));
        }
    }
    if names.is_empty() {
        return Err("the emulator has counted nothing".to_owned());
    }
    let mut executed = Executed::default();
    for name in &names {
        let path = folder.join(name);
        if !fs::symlink_metadata(&path).map_err(describe_unreadable)?.is_file() {
            return Err("its processes change the files of their counts".to_owned());
        }
        let counts = BufReader::new(File::open(&path).map_err(describe_unreadable)?);
        let executes = read_process(counts, &mut executed)?;
        let next =
            name.to_str().and_then(next_name).ok_or("its processes add files to those of their counts")?;
        if executes && !names.contains(next.as_ref() as &std::ffi::OsStr) {
            return Err("it starts a program that the emulator did not count".to_owned());
        }
    }
    if executed.total() > MAX_INSTRUCTIONS {
        return Err(
            "its processes change the files of their counts: no program has as many instructions".to_owned()
        );
    }
    Ok(executed)
}

/// The name of the file that a process has after another one, once it has executed another program.
fn next_name(name: &str) -> Option<String> {
    let (process, number) = name.strip_suffix(".blocks")?.split_once('-')?;
    let next = number.parse::<u64>().ok()?.checked_add(1)?;
    Some(format!("{process}-{next}.blocks"))
}

/// Adds the counts of a process. Returns whether it ended by the execution of another program.
fn read_process(mut counts: impl Read + Seek, executed: &mut Executed) -> Result<bool, String> {
    let mut header = [0; HEADER_BYTES];
    counts.read_exact(&mut header).map_err(describe_unreadable)?;
    let mut numbers = [0; 6];
    for (number, bytes) in numbers.iter_mut().zip(header.chunks(8)) {
        *number = read_number(bytes);
    }
    let [blocks, lost, uncounted, executes, incomplete, file_bytes] = numbers;
    if uncounted > 0 {
        let text = &header[TEXT_OFFSET..];
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let text = String::from_utf8_lossy(&text[..end]);
        return Err(format!(
            "it starts {}; that cannot be emulated here: name programs for x86-64 Linux alone",
            printable_text(&text)
        ));
    }
    if incomplete > 0 || file_bytes > FILES_BYTES {
        return Err(
            "one of its processes could not keep its counts: it has lost the right to, or too many files"
                .to_owned(),
        );
    }
    if lost > 0 || blocks > MAX_BLOCKS {
        return Err(format!("one of its processes executes more than {MAX_BLOCKS} blocks of code"));
    }
    let mut text = vec![0; file_bytes as usize];
    counts.seek(SeekFrom::Start(FILES_OFFSET)).map_err(describe_unreadable)?;
    counts.read_exact(&mut text).map_err(describe_unreadable)?;
    let mut files = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        files.push(CodeFile::parse(line).ok_or("a file with code has no description")?);
    }
    counts.seek(SeekFrom::Start(FILES_OFFSET + FILES_BYTES)).map_err(describe_unreadable)?;
    for _ in 0..blocks {
        let mut block = [0; BLOCK_BYTES];
        counts.read_exact(&mut block).map_err(describe_unreadable)?;
        let executions = read_number(&block[..8]);
        let file = files.get(read_number(&block[16..20]) as usize).ok_or("a block has no file")?;
        let instructions = executions.saturating_mul(read_number(&block[20..]));
        if instructions > 0 {
            executed.add(file, read_number(&block[8..16]), instructions);
        }
    }
    Ok(executes > 0)
}

fn describe_unreadable(reason: io::Error) -> String {
    format!("cannot read the counts of a process: {reason}")
}

/// A number of up to eight bytes as this machine, and so the plugin, has it.
fn read_number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Places of the header's numbers.
    const LOST: usize = 1;
    const UNCOUNTED: usize = 2;
    const EXECUTES: usize = 3;
    const INCOMPLETE: usize = 4;
    const FILES: usize = 5;

    fn process(blocks: &[(u64, u64, u32, u32)], files: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; (FILES_OFFSET + FILES_BYTES) as usize];
        bytes[FILES_OFFSET as usize..][..files.len()].copy_from_slice(files);
        set(&mut bytes, 0, blocks.len() as u64);
        set(&mut bytes, FILES, files.len() as u64);
        for (executions, offset, file, instructions) in blocks {
            bytes.extend([executions.to_le_bytes(), offset.to_le_bytes()].concat());
            bytes.extend([file.to_le_bytes(), instructions.to_le_bytes()].concat());
        }
        bytes
    }

    fn set(bytes: &mut [u8], number: usize, value: u64) {
        bytes[8 * number..][..8].copy_from_slice(&value.to_le_bytes());
    }

    fn code_file(path: &str, inode: i64) -> CodeFile {
        let identity = Identity { device: 1, inode, size: 3, modified: [4, 5] };
        CodeFile { path: path.to_owned(), identity }
    }

    #[test]
    fn counts_of_processes_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = process(
            &[(2, 0x1000, 0, 5), (1, 0x2000, 1, 3), (0, 0x3000, 1, 9)],
            b"1 2 3 4 5 /a\n1 2 3 4 5 /b\xff\n",
        );
        let other =
            process(&[(10, 0x1000, 1, 5), (7, 0, 2, 1)], b"1 2 3 4 5 /b\xff\n1 2 3 4 5 /a\n1 9 3 4 5 /a\n");
        fs::write(folder.path().join("1-0.blocks"), &one).unwrap();
        fs::write(folder.path().join("2-0.blocks"), other).unwrap();
        let executed = read_folder(folder.path()).unwrap();
        assert_eq!(executed.total(), 70);
        assert_eq!(executed.files[&code_file("/a", 2)], BTreeMap::from([(0x1000, 60)]));
        assert_eq!(executed.files[&code_file("/a", 9)], BTreeMap::from([(0, 7)]), "another file at the path");
        assert_eq!(executed.files[&code_file("/b\u{fffd}", 2)], BTreeMap::from([(0x2000, 3)]));
        set(&mut one, EXECUTES, 1);
        fs::write(folder.path().join("1-0.blocks"), one).unwrap();
        assert!(read_folder(folder.path()).unwrap_err().contains("did not count"));
        fs::write(folder.path().join("1-1.blocks"), process(&[], b"")).unwrap();
        assert_eq!(read_folder(folder.path()).unwrap(), executed);
    }

    #[test]
    fn incomplete_counts_are_refused() {
        let whole = process(&[(2, 0, 0, 5)], b"1 2 3 4 5 /a\n");
        let mut tables = Vec::new();
        for (number, value, why) in [
            (LOST, 1, "more than"),
            (0, MAX_BLOCKS + 1, "more than"),
            (UNCOUNTED, 1, "it starts /opt/other; that"),
            (INCOMPLETE, 1, "could not keep"),
            (FILES, FILES_BYTES + 1, "could not keep"),
            (FILES, 0, "no file"),
            (FILES, 8, "no description"),
        ] {
            let mut bytes = whole.clone();
            set(&mut bytes, number, value);
            bytes[TEXT_OFFSET..][..10].copy_from_slice(b"/opt/other");
            tables.push((bytes, why));
        }
        tables.push((whole[..10].to_vec(), "cannot read"));
        tables.push((whole[..whole.len() - 1].to_vec(), "cannot read"));
        for (counts, why) in tables {
            let error = read_process(Cursor::new(counts), &mut Executed::default()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(read_folder(folder.path()).unwrap_err().contains("counted nothing"));
    }

    #[test]
    fn files_of_programs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = [(u64::MAX, 0, 0, 9), (1 << 60, 8, 0, 1)];
        fs::write(folder.path().join("1-0.blocks"), process(&blocks, b"1 2 3 4 5 /a\n")).unwrap();
        assert!(read_folder(folder.path()).unwrap_err().contains("as many instructions"));
        // Opening a FIFO would wait for a writer.
        nix::unistd::mkfifo(&folder.path().join("0-0.blocks"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_folder(folder.path()).unwrap_err().contains("change the files"));
    }
}
