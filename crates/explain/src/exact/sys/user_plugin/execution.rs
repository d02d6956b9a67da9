//! Keeps programs under the emulator that a program executes.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::ptr::null;

/// Scripts whose interpreter is a script: as many as Linux follows.
const MAX_INTERPRETERS: usize = 4;
const MAX_INTERPRETER_LINE: usize = 256;

unsafe extern "C" {
    fn execve(file: *const c_char, arguments: *const *const c_char, variables: *const *const c_char)
    -> c_int;
}

/// Executes a program under the emulator. Returns if that fails, or if the program cannot be executed: then its own
/// call fails as it would elsewhere. Returns a program's name if it will be executed, but cannot be emulated.
///
/// # Safety
/// The addresses are those of a path and of two lists of strings in the emulated program, whose own are `base` less
/// than those of this process.
pub(super) unsafe fn execute(base: usize, path: u64, arguments: u64, variables: u64) -> Option<String> {
    let [path, arguments, variables] = [path, arguments, variables].map(|address| match address {
        0 => null(),
        address => base.wrapping_add(address as usize) as *const c_void,
    });
    if path.is_null() {
        return None;
    }
    // SAFETY: as above.
    let path = unsafe { CStr::from_ptr(path.cast()) };
    // SAFETY: as above.
    let arguments = unsafe { read_strings(arguments.cast()) };
    let command = match write_command(path, arguments)? {
        Emulated::Command(command) => command,
        Emulated::Foreign(program) => return Some(program),
    };
    let emulator = std::env::current_exe().ok()?;
    let emulator = CString::new(emulator.into_os_string().into_vec()).ok()?;
    let mut pointers: Vec<*const c_char> = command.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(null());
    let none = [null()];
    let variables = if variables.is_null() { none.as_ptr() } else { variables.cast() };
    // SAFETY: all lists end with a null pointer.
    unsafe { execve(emulator.as_ptr(), pointers.as_ptr(), variables) };
    None
}

enum Emulated {
    /// The emulator's, with its arguments.
    Command(Vec<CString>),
    /// The name of a program for another processor.
    Foreign(String),
}

/// # Safety
/// The pointer is null, or a list of strings begins there that ends with a null pointer.
unsafe fn read_strings(mut list: *const *const c_char) -> Vec<CString> {
    let mut strings = Vec::new();
    // SAFETY: as above.
    unsafe {
        while !list.is_null() && !(*list).is_null() {
            strings.push(CStr::from_ptr(*list).to_owned());
            list = list.add(1);
        }
    }
    strings
}

/// The emulator's command for a program and its arguments; `None` if it cannot be executed.
fn write_command(path: &CStr, mut arguments: Vec<CString>) -> Option<Emulated> {
    let own = read_arguments();
    let options = own.iter().position(|argument| argument.as_bytes() == b"-plugin")? + 2;
    let mut file = path.to_owned();
    if file.as_bytes() == b"/proc/self/exe" {
        // The emulator's own, for this process; the program's is behind its options.
        file = own.get(options + 2)?.clone();
    }
    for _ in 0..MAX_INTERPRETERS {
        match read_kind(Path::new(OsStr::from_bytes(file.as_bytes())))? {
            FileKind::Program => {
                let mut command = own[..options].to_vec();
                let name = if arguments.is_empty() { file.clone() } else { arguments.remove(0) };
                command.extend([c"-0".to_owned(), name, file]);
                command.extend(arguments);
                return Some(Emulated::Command(command));
            }
            FileKind::Script(mut interpreter) => {
                if !arguments.is_empty() {
                    arguments.remove(0);
                }
                interpreter.push(file);
                arguments.splice(0..0, interpreter);
                file = arguments[0].clone();
            }
            FileKind::Foreign => return Some(Emulated::Foreign(file.to_string_lossy().into_owned())),
        }
    }
    None
}

enum FileKind {
    Program,
    /// The interpreter, with its argument if it has one.
    Script(Vec<CString>),
    /// A program for another processor.
    Foreign,
}

fn read_kind(path: &Path) -> Option<FileKind> {
    let about = path.metadata().ok()?;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(MAX_INTERPRETER_LINE as u64).read_to_end(&mut start).ok()?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let argument = line[end..].trim_ascii();
        let mut words = vec![CString::new(&line[..end]).ok()?];
        if !argument.is_empty() {
            words.push(CString::new(argument).ok()?);
        }
        return Some(FileKind::Script(words));
    }
    match start.get(..20)? {
        // A 64-bit ELF file for x86-64.
        [0x7f, b'E', b'L', b'F', 2, 1, .., 62, 0] => Some(FileKind::Program),
        [0x7f, b'E', b'L', b'F', ..] => Some(FileKind::Foreign),
        _ => None,
    }
}

/// The arguments of the emulator.
pub(super) fn read_arguments() -> Vec<CString> {
    let text = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = text.strip_suffix(b"\0").unwrap_or(&text).split(|byte| *byte == 0);
    words.filter_map(|word| CString::new(word).ok()).collect()
}

pub(super) fn note_escape(folder: &Path, what: &str) {
    let file = OpenOptions::new().create(true).append(true).open(folder.join("escaped"));
    let _ = file.and_then(|mut file| writeln!(file, "{what}"));
}
