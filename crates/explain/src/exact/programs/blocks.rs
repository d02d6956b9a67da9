//! Reads what the plugin for user mode leaves (`sys/user_plugin.rs`): which blocks of which files were executed, and
//! how often. Untrusted input: the counted programs could write to these files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Most blocks of a process, as in the plugin, and most processes of a run.
const MAX_BLOCKS: u64 = 1 << 21;
const MAX_PROCESSES: usize = 10_000;
/// Most bytes of the paths of a process.
const MAX_PATHS_BYTES: u64 = 16 << 20;
const BLOCK_BYTES: usize = 24;

/// The instructions of the processes of a client or a server, by file and offset of their blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Executed {
    pub files: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl Executed {
    /// All instructions.
    pub(super) fn total(&self) -> u64 {
        self.files.values().flat_map(BTreeMap::values).sum()
    }

    fn add(&mut self, file: &str, offset: u64, instructions: u64) {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), BTreeMap::new());
        }
        if let Some(blocks) = self.files.get_mut(file) {
            let count = blocks.entry(offset).or_default();
            *count = count.saturating_add(instructions);
        }
    }
}

/// Reads the files of all processes of a folder. The error says why they do not have all instructions.
pub(super) fn read_folder(folder: &Path) -> Result<Executed, String> {
    if let Ok(escaped) = fs::read_to_string(folder.join("escaped")) {
        let first = escaped.lines().next().unwrap_or_default();
        return Err(format!(
            "it starts {first:.200}, which cannot be emulated here: name programs for x86-64 Linux alone"
        ));
    }
    let mut executed = Executed::default();
    let mut processes = 0;
    for entry in fs::read_dir(folder).map_err(describe_unreadable)? {
        let path = entry.map_err(describe_unreadable)?.path();
        if path.extension().is_none_or(|ending| ending != "blocks") {
            continue;
        }
        processes += 1;
        if processes > MAX_PROCESSES {
            return Err(format!("it starts more than {MAX_PROCESSES} processes"));
        }
        let paths = File::open(path.with_extension("files")).map_err(describe_unreadable)?;
        let counts = File::open(&path).map_err(describe_unreadable)?;
        read_process(BufReader::new(counts), paths, &mut executed)?;
    }
    if processes == 0 {
        return Err("the emulator has counted nothing".to_owned());
    }
    Ok(executed)
}

/// Adds the counts of a process.
fn read_process(mut counts: impl Read, paths: impl Read, executed: &mut Executed) -> Result<(), String> {
    let mut text = Vec::new();
    paths.take(MAX_PATHS_BYTES).read_to_end(&mut text).map_err(describe_unreadable)?;
    let text = String::from_utf8_lossy(&text);
    let files: Vec<&str> = text.lines().collect();
    let mut header = [0; 16];
    counts.read_exact(&mut header).map_err(describe_unreadable)?;
    let blocks = number(&header[..8]);
    let lost = number(&header[8..]);
    if lost > 0 || blocks > MAX_BLOCKS {
        return Err(format!("one of its processes executes more than {MAX_BLOCKS} blocks of code"));
    }
    for _ in 0..blocks {
        let mut block = [0; BLOCK_BYTES];
        counts.read_exact(&mut block).map_err(describe_unreadable)?;
        let executions = number(&block[..8]);
        let file = files.get(number(&block[16..20]) as usize).ok_or("a block has no file")?;
        let instructions = executions.saturating_mul(number(&block[20..]));
        if instructions > 0 {
            executed.add(file, number(&block[8..16]), instructions);
        }
    }
    Ok(())
}

fn describe_unreadable(reason: io::Error) -> String {
    format!("cannot read the counts of a process: {reason}")
}

/// A number of up to eight bytes as this machine, and so the plugin, has it.
fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(blocks: &[(u64, u64, u32, u32)], lost: u64) -> Vec<u8> {
        let mut bytes = [(blocks.len() as u64).to_le_bytes(), lost.to_le_bytes()].concat();
        for (executions, offset, file, instructions) in blocks {
            bytes.extend([executions.to_le_bytes(), offset.to_le_bytes()].concat());
            bytes.extend([file.to_le_bytes(), instructions.to_le_bytes()].concat());
        }
        bytes
    }

    #[test]
    fn counts_of_processes_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let one = process(&[(2, 0x1000, 0, 5), (1, 0x2000, 1, 3), (0, 0x3000, 1, 9)], 0);
        let other = process(&[(10, 0x1000, 1, 5)], 0);
        for (name, counts, paths) in [("1-0", one, "/a\n/b\n"), ("2-0", other, "/b\n/a\n")] {
            fs::write(folder.path().join(format!("{name}.blocks")), counts).unwrap();
            fs::write(folder.path().join(format!("{name}.files")), paths).unwrap();
        }
        let executed = read_folder(folder.path()).unwrap();
        assert_eq!(executed.total(), 63);
        assert_eq!(executed.files["/a"], BTreeMap::from([(0x1000, 60)]));
        assert_eq!(executed.files["/b"], BTreeMap::from([(0x2000, 3)]));
        fs::write(folder.path().join("escaped"), "/opt/other\n").unwrap();
        assert!(read_folder(folder.path()).unwrap_err().contains("starts /opt/other"));
    }

    #[test]
    fn incomplete_counts_are_refused() {
        let whole = process(&[(2, 0, 0, 5)], 0);
        for (counts, paths, why) in [
            (&whole[..10], "/a\n", "cannot read"),
            (&whole[..30], "/a\n", "cannot read"),
            (&whole[..], "", "no file"),
            (&process(&[], 1)[..], "", "more than"),
            (&u64::MAX.to_le_bytes().repeat(2)[..], "", "more than"),
        ] {
            let error = read_process(counts, paths.as_bytes(), &mut Executed::default()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(read_folder(folder.path()).unwrap_err().contains("counted nothing"));
    }
}
