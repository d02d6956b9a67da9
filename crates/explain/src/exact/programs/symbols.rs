//! Functions of ELF files, by the offset of their code in the file.

use crate::exact::programs::blocks::{CodeFile, Executed, Identity};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest file whose symbols are read, bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// Where distributions put files with the symbols of others.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// The symbols of all files so far; each file is read once.
#[derive(Debug, Default)]
pub(super) struct SymbolFiles {
    files: BTreeMap<CodeFile, FileSymbols>,
}

impl SymbolFiles {
    /// Reads the files of a run, before another run may put others in their places. One that was removed meanwhile has
    /// no symbols.
    pub(super) fn read_all(&mut self, executed: &Executed) {
        for file in executed.files.keys() {
            if !self.files.contains_key(file) {
                self.files.insert(file.clone(), read_same(file).unwrap_or_default());
            }
        }
    }

    /// The function at an offset of a file, or the section where that says something; `None` without a symbol.
    pub(super) fn name_at(&self, file: &CodeFile, offset: u64) -> Option<&str> {
        self.files.get(file).and_then(|symbols| symbols.name_at(offset))
    }
}

/// The symbols of a file if the one at its path is still the same.
fn read_same(file: &CodeFile) -> Option<FileSymbols> {
    let path = Path::new(&file.path);
    let symbols = FileSymbols::read(path)?;
    (Identity::of(path)? == file.identity).then_some(symbols)
}

/// The code of a file and the names in it, by address.
#[derive(Debug, Default)]
struct FileSymbols {
    segments: Vec<Segment>,
    functions: Vec<NamedRange>,
    /// Sections of stubs, which have no symbols.
    stubs: Vec<NamedRange>,
}

/// Bytes of the file that are loaded at an address.
#[derive(Debug)]
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

#[derive(Debug)]
struct NamedRange {
    start: u64,
    end: u64,
    name: String,
}

impl FileSymbols {
    fn read(path: &Path) -> Option<Self> {
        let data = read_file(path)?;
        let file = object::File::parse(&*data).ok()?;
        let mut symbols = FileSymbols::default();
        for segment in file.segments() {
            let (offset, bytes) = segment.file_range();
            symbols.segments.push(Segment { offset, bytes, address: segment.address() });
        }
        for section in file.sections() {
            if let Ok(name) = section.name()
                && name.starts_with(".plt")
            {
                let start = section.address();
                let end = start.saturating_add(section.size());
                symbols.stubs.push(NamedRange { start, end, name: name.to_owned() });
            }
        }
        let mut functions = list_functions(&file);
        let debug_file = file.build_id().ok().flatten().and_then(debug_file_of);
        if let Some(data) = debug_file.and_then(|path| read_file(&path))
            && let Ok(file) = object::File::parse(&*data)
        {
            functions.extend(list_functions(&file));
        }
        symbols.functions = order_functions(functions);
        Some(symbols)
    }

    fn name_at(&self, offset: u64) -> Option<&str> {
        let segment = self.segments.iter().find(|segment| {
            (segment.offset..segment.offset.saturating_add(segment.bytes)).contains(&offset)
        })?;
        let address = segment.address.wrapping_add(offset - segment.offset);
        if let Some(stub) = self.stubs.iter().find(|stub| (stub.start..stub.end).contains(&address)) {
            return Some(&stub.name);
        }
        let next = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions[..next].last().filter(|function| address < function.end)?;
        Some(&function.name)
    }
}

fn read_file(path: &Path) -> Option<Vec<u8>> {
    let about = path.metadata().ok()?;
    if !about.is_file() || about.len() > MAX_FILE_BYTES {
        return None;
    }
    fs::read(path).ok()
}

/// The file with the symbols of a file that was stripped, if it is installed.
fn debug_file_of(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Path::new(DEBUG_FILES).join(format!("{first:02x}")).join(format!("{rest}.debug")))
}

fn list_functions(file: &object::File<'_>) -> Vec<NamedRange> {
    let mut functions = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_code = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let Ok(name) = symbol.name() else { continue };
        if is_code && !name.is_empty() {
            let start = symbol.address();
            let end = start.saturating_add(symbol.size());
            functions.push(NamedRange { start, end, name: format!("{:#}", rustc_demangle::demangle(name)) });
        }
    }
    functions
}

/// By address, one name for each: that with the fewest underscores before it (`write`, not `__write`). One without a
/// size, as assembly code has it, ends where the next one begins.
fn order_functions(mut functions: Vec<NamedRange>) -> Vec<NamedRange> {
    functions.sort_by(|a, b| {
        let places = a.start.cmp(&b.start).then(b.end.cmp(&a.end));
        places
            .then_with(|| count_underscores(&a.name).cmp(&count_underscores(&b.name)))
            .then(a.name.cmp(&b.name))
    });
    functions.dedup_by_key(|function| function.start);
    for place in 1..functions.len() {
        let next = functions[place].start;
        let before = &mut functions[place - 1];
        if before.end == before.start {
            before.end = next;
        }
    }
    functions
}

fn count_underscores(name: &str) -> usize {
    name.len() - name.trim_start_matches('_').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, name: &str) -> NamedRange {
        NamedRange { start, end, name: name.to_owned() }
    }

    #[test]
    fn functions_have_one_name_each() {
        let functions = vec![
            range(0x30, 0x30, "assembly"),
            range(0x10, 0x20, "__write"),
            range(0x40, 0x50, "last"),
            range(0x10, 0x20, "write"),
        ];
        let segments = vec![Segment { offset: 0x1000, bytes: 0x100, address: 0 }];
        let stubs = vec![range(0x60, 0x70, ".plt")];
        let symbols = FileSymbols { segments, functions: order_functions(functions), stubs };
        for (offset, name) in [
            (0x1010, Some("write")),
            (0x101f, Some("write")),
            (0x1020, None),
            (0x103f, Some("assembly")),
            (0x1045, Some("last")),
            (0x1050, None),
            (0x1060, Some(".plt")),
            (0x2000, None),
            (0, None),
        ] {
            assert_eq!(symbols.name_at(offset), name, "{offset:x}");
        }
    }

    #[test]
    fn this_program_has_functions() {
        let own = std::env::current_exe().unwrap();
        let symbols = FileSymbols::read(&own).unwrap();
        assert!(symbols.functions.is_sorted_by_key(|function| function.start));
        let function = symbols.functions.iter().find(|function| function.name.contains("order_functions"));
        let Some(NamedRange { start, .. }) = function else { return };
        let mut segments = symbols.segments.iter();
        let segment = segments.find(|segment| start.wrapping_sub(segment.address) < segment.bytes).unwrap();
        let name = symbols.name_at(start - segment.address + segment.offset).unwrap();
        assert!(name.contains("order_functions"), "{name}");
        assert!(FileSymbols::read(Path::new("/nonexistent")).is_none());
    }

    #[test]
    fn another_file_at_a_path_has_no_symbols() {
        let path = std::env::current_exe().unwrap();
        let identity = Identity::of(&path).unwrap();
        let file = CodeFile { path: path.to_str().unwrap().to_owned(), identity };
        assert!(read_same(&file).is_some());
        assert!(read_same(&CodeFile { identity: Identity::default(), ..file }).is_none());
    }

    #[test]
    fn debug_files_are_named_by_build_id() {
        let path = debug_file_of(&[0xab, 1, 0xff]).unwrap();
        assert_eq!(path, Path::new("/usr/lib/debug/.build-id/ab/01ff.debug"));
        assert_eq!(debug_file_of(&[]), None);
    }
}
