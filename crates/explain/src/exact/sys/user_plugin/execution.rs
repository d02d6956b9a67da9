//! Keeps programs under the emulator that a program executes.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr::null;

/// Scripts whose interpreter is a script: as many as Linux follows.
const MAX_INTERPRETERS: usize = 4;
const MAX_INTERPRETER_LINE: usize = 256;
/// How names of variables begin that the emulator or its loader would take for theirs.
const OF_EMULATOR: [&[u8]; 2] = [b"LD_", b"QEMU_"];

unsafe extern "C" {
    fn execve(file: *const c_char, arguments: *const *const c_char, variables: *const *const c_char)
    -> c_int;
}

/// How this process was started, read before a program can change its root or its folder.
pub(super) struct Emulator {
    path: CString,
    name: CString,
    /// Its options before `-plugin`, without those that set variables.
    options: Vec<CString>,
    /// The plugin's own arguments, and the path of its library.
    plugin: CString,
    library: OsString,
    /// The program that it emulates.
    program: CString,
}

impl Emulator {
    pub(super) fn read() -> Option<Self> {
        let own = read_arguments();
        let path = std::env::current_exe().ok()?;
        let place = own.iter().position(|argument| argument.as_bytes() == b"-plugin")?;
        let mut options = Vec::new();
        // Each has a value.
        for option in own[1..place].chunks(2) {
            if option[0].as_bytes() != b"-E" {
                options.extend_from_slice(option);
            }
        }
        let plugin = own.get(place + 1)?.clone();
        let library = plugin.as_bytes().split(|byte| *byte == b',').next()?.to_vec();
        let is_named = own.get(place + 2)?.as_bytes() == b"-0";
        let program = own.get(place + if is_named { 4 } else { 2 })?;
        let program = std::path::absolute(OsStr::from_bytes(program.as_bytes())).ok()?;
        Some(Emulator {
            path: CString::new(path.into_os_string().into_vec()).ok()?,
            name: own[0].clone(),
            options,
            plugin,
            library: OsString::from_vec(library),
            program: CString::new(program.into_os_string().into_vec()).ok()?,
        })
    }

    /// Makes the emulator's command for a program that is about to be executed. The error says what will be executed
    /// without it, if that is possible at all.
    ///
    /// # Safety
    /// The addresses are those of a path and of two lists of strings in the emulated program, whose own are `base` less
    /// than those of this process.
    pub(super) unsafe fn prepare(
        &self,
        base: usize,
        path: u64,
        arguments: u64,
        variables: u64,
    ) -> Result<Command, String> {
        let [path, arguments, variables] = [path, arguments, variables].map(|address| match address {
            0 => null(),
            address => base.wrapping_add(address as usize) as *const c_void,
        });
        if path.is_null() {
            return Err("a program without a path".to_owned());
        }
        // SAFETY: as above.
        let path = unsafe { CStr::from_ptr(path.cast()) };
        // SAFETY: as above.
        let [arguments, variables] =
            unsafe { [read_strings(arguments.cast()), read_strings(variables.cast())] };
        let shown = path.to_string_lossy();
        File::open(&self.library)
            .map_err(|error| format!("{shown}, from where the counts cannot be reached ({error})"))?;
        let program = self.write_program(path, arguments)?;
        let mut command =
            Command { path: self.path.clone(), words: vec![self.name.clone()], variables: Vec::new() };
        command.words.extend(self.options.iter().cloned());
        for variable in variables {
            if !OF_EMULATOR.iter().any(|prefix| variable.as_bytes().starts_with(prefix)) {
                command.variables.push(variable);
            } else if variable.as_bytes().contains(&b',') {
                return Err(format!(
                    "{shown} with {}, whose comma cannot be passed on",
                    variable.to_string_lossy()
                ));
            } else {
                command.words.extend([c"-E".to_owned(), variable]);
            }
        }
        command.words.extend([c"-plugin".to_owned(), self.plugin.clone()]);
        command.words.extend(program);
        Ok(command)
    }

    /// The program's part of the command.
    fn write_program(&self, path: &CStr, mut arguments: Vec<CString>) -> Result<Vec<CString>, String> {
        let mut file = path.to_owned();
        if file.as_bytes() == b"/proc/self/exe" {
            // The emulator's own, for this process.
            file = self.program.clone();
        }
        for _ in 0..MAX_INTERPRETERS {
            let kind = read_kind(Path::new(OsStr::from_bytes(file.as_bytes())));
            match kind
                .map_err(|error| format!("{}, which cannot be read ({error})", file.to_string_lossy()))?
            {
                FileKind::Program => {
                    let name = if arguments.is_empty() { file.clone() } else { arguments.remove(0) };
                    let mut words = vec![c"-0".to_owned(), name, file];
                    words.extend(arguments);
                    return Ok(words);
                }
                FileKind::Script(mut interpreter) => {
                    if !arguments.is_empty() {
                        arguments.remove(0);
                    }
                    interpreter.push(file);
                    arguments.splice(0..0, interpreter);
                    file = arguments[0].clone();
                }
                FileKind::Foreign => {
                    return Err(format!("{}, which is not for x86-64 Linux", file.to_string_lossy()));
                }
            }
        }
        Err(format!("{}, a script of a script", path.to_string_lossy()))
    }
}

pub(super) struct Command {
    path: CString,
    words: Vec<CString>,
    variables: Vec<CString>,
}

impl Command {
    /// Executes it. Returns if that fails.
    pub(super) fn execute(&self) -> io::Error {
        let words = list_pointers(&self.words);
        let variables = list_pointers(&self.variables);
        // SAFETY: both lists end with a null pointer.
        unsafe { execve(self.path.as_ptr(), words.as_ptr(), variables.as_ptr()) };
        io::Error::last_os_error()
    }

    /// The path of the program in it, for messages.
    pub(super) fn describe(&self, error: &io::Error) -> String {
        let place = self.words.iter().position(|word| word.as_bytes() == b"-0");
        let program = place.and_then(|place| self.words.get(place + 2));
        let program = program.map(|program| program.to_string_lossy()).unwrap_or_default();
        format!("{program}, where the emulator cannot be executed ({error})")
    }
}

fn list_pointers(strings: &[CString]) -> Vec<*const c_char> {
    let mut pointers: Vec<*const c_char> = strings.iter().map(|string| string.as_ptr()).collect();
    pointers.push(null());
    pointers
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

enum FileKind {
    Program,
    /// The interpreter, with its argument if it has one.
    Script(Vec<CString>),
    /// A program for another processor, or what only the kernel may know how to execute.
    Foreign,
}

fn read_kind(path: &Path) -> io::Result<FileKind> {
    let mut start = Vec::new();
    if !path.metadata()?.is_file() {
        return Ok(FileKind::Foreign);
    }
    File::open(path)?.take(MAX_INTERPRETER_LINE as u64).read_to_end(&mut start)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        let line = line[..end].trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let argument = line[end..].trim_ascii();
        let mut words = vec![CString::new(&line[..end])?];
        if !argument.is_empty() {
            words.push(CString::new(argument)?);
        }
        return Ok(FileKind::Script(words));
    }
    Ok(match start.get(..20) {
        // A 64-bit ELF file for x86-64.
        Some([0x7f, b'E', b'L', b'F', 2, 1, .., 62, 0]) => FileKind::Program,
        _ => FileKind::Foreign,
    })
}

/// The arguments of the emulator.
pub(super) fn read_arguments() -> Vec<CString> {
    let text = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = text.strip_suffix(b"\0").unwrap_or(&text).split(|byte| *byte == 0);
    words.filter_map(|word| CString::new(word).ok()).collect()
}
