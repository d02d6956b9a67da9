//! Removes symbols and debug data, which are most of a program's file. A guest's memory has to hold the file twice.

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
    const INTERPRETER: u32 = 3;
    let kind = |header: usize| Some(u32::from_le_bytes(file.get(header..header + 4)?.try_into().ok()?));
    let named = || {
        let headers = program_headers(file)?;
        Some(headers.into_iter().any(|header| kind(header) == Some(INTERPRETER)))
    };
    named().unwrap_or(false)
}

fn end_of_segments(file: &[u8]) -> Option<usize> {
    let headers = program_headers(file)?;
    let mut end = headers.last()? + short(file, PROGRAM_HEADER_BYTES)?;
    for header in headers {
        end = end.max(long(file, header + SEGMENT_OFFSET)?.checked_add(long(file, header + SEGMENT_BYTES)?)?);
    }
    // The file header stays.
    (FILE_HEADER_BYTES..=file.len()).contains(&end).then_some(end)
}

fn program_headers(file: &[u8]) -> Option<Vec<usize>> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = long(file, PROGRAM_HEADERS_AT)?;
    let (each, count) = (short(file, PROGRAM_HEADER_BYTES)?, short(file, PROGRAM_HEADERS)?);
    // Check that all program headers are within the file.
    first.checked_add(each * count).filter(|end| *end <= file.len())?;
    Some((0..count).map(|number| first + number * each).collect())
}

fn short(file: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?)))
}

fn long(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn a_program_runs_without_its_symbols_and_is_smaller() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let bare = without_symbols(whole.clone());
        assert!(bare.len() < whole.len() / 2, "{} of {}", bare.len(), whole.len());
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
}
