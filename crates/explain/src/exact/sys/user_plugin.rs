//! A plugin for QEMU's user-mode emulator (TCG plugin API): counts how often each block of a program's instructions is
//! executed, in all of its processes and threads.
//!
//! Compiled by build.rs alone, as a shared library. Each process has a file in the folder that the argument `out`
//! names, `PROCESS-NUMBER.blocks` (`user_plugin/counts_file.rs`): a header, a line for each file whose code was
//! executed, and the blocks.
//!
//! QEMU leaves the emulation when a program calls execve. The plugin is called before that, and executes the emulator
//! with the new program instead. If it cannot, it notes that the next call executes something that is not counted, and
//! takes the note back if the call fails. A process that forks continues in both, and the child gets another file.
//!
//! A block ends at a jump, so one that is left early, by a fault, counts as a whole: that is rare and nearly always
//! the end of the program.

#[path = "user_plugin/counts_file.rs"]
mod counts_file;
#[path = "user_plugin/execution.rs"]
mod execution;

use counts_file::{Block, CountsFile, MAX_BLOCKS, Number, describe_file};
use execution::{Emulator, read_arguments};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The version of the interface. Those that QEMU has known since 7.0 are alike in what is used here.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs when the library is loaded: QEMU reads the version before it calls any function. It is an argument of the
/// plugin, which QEMU passes later, and not in the environment, which programs see and may clear.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    let arguments = read_arguments();
    let of_plugin = arguments.iter().find_map(|argument| argument.to_str().ok()?.split_once(",version="));
    if let Some(Ok(version)) = of_plugin.map(|(_, version)| version.parse()) {
        qemu_plugin_version.store(version, Ordering::Relaxed);
    }
}

/// `QEMU_PLUGIN_CB_NO_REGS`.
const NO_REGISTERS: c_uint = 0;

/// System calls of x86-64.
const MMAP: i64 = 9;
const MPROTECT: i64 = 10;
const MUNMAP: i64 = 11;
const MREMAP: i64 = 25;
const CLONE: i64 = 56;
const FORK: i64 = 57;
const VFORK: i64 = 58;
const EXECVE: i64 = 59;
const EXECVEAT: i64 = 322;
const CLONE3: i64 = 435;

type Callback = extern "C" fn(*mut c_void, *mut c_void);
type SyscallCallback = extern "C" fn(u64, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: Callback, data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut c_void,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_uint,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_syscall_cb(id: u64, callback: SyscallCallback);
    fn qemu_plugin_register_vcpu_syscall_ret_cb(id: u64, callback: extern "C" fn(u64, c_uint, i64, i64));
    fn qemu_plugin_tb_n_insns(block: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const c_void, number: usize) -> *mut c_void;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
    fn qemu_plugin_insn_haddr(insn: *const c_void) -> *const c_void;
}

/// A range of this process's addresses with the contents of a file.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: u32,
}

struct PluginState {
    emulator: Emulator,
    counts: CountsFile,
    /// File, offset and number of instructions of each block, and which one it is.
    blocks: HashMap<(u32, u64, u32), usize>,
    /// Which line each path and identity of mapped files is.
    known: HashMap<Vec<u8>, u32>,
    /// What the file has of them.
    lines: Vec<Vec<u8>>,
    mappings: Vec<Mapping>,
}

static STATE: Mutex<Option<PluginState>> = Mutex::new(None);
/// Whether mappings have changed since they were read.
static IS_STALE: AtomicBool = AtomicBool::new(true);
/// What the emulator adds to an address of the program to get one of this process.
static GUEST_BASE: AtomicUsize = AtomicUsize::new(0);

fn with_state<T>(act: impl FnOnce(&mut PluginState) -> T) {
    if let Some(state) = STATE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(state);
    }
}

impl PluginState {
    fn create(folder: &Path) -> Option<Self> {
        Some(PluginState {
            emulator: Emulator::read()?,
            counts: CountsFile::create(folder)?,
            blocks: HashMap::new(),
            known: HashMap::new(),
            lines: Vec::new(),
            mappings: Vec::new(),
        })
    }

    /// The counter of the block at an address of this process; `None` if there is no room.
    fn find_block(&mut self, address: u64, instructions: u32) -> Option<*mut Block> {
        let (file, offset) = self.locate(address);
        let next = self.blocks.len();
        if let Some(number) = self.blocks.get(&(file, offset, instructions)) {
            return Some(self.counts.block(*number));
        }
        if next == MAX_BLOCKS {
            self.counts.number(Number::Lost).fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.blocks.insert((file, offset, instructions), next);
        Some(self.counts.write_block(next, (file, offset, instructions)))
    }

    /// The file that an address has its code from, and the offset in it.
    fn locate(&mut self, address: u64) -> (u32, u64) {
        if IS_STALE.swap(false, Ordering::Relaxed) || self.find_mapping(address).is_none() {
            self.read_mappings();
        }
        match self.find_mapping(address) {
            Some(mapping) => (mapping.file, address - mapping.start + mapping.offset),
            None => (self.number_file(b"", b""), address),
        }
    }

    fn find_mapping(&self, address: u64) -> Option<&Mapping> {
        let next = self.mappings.partition_point(|mapping| mapping.end <= address);
        self.mappings.get(next).filter(|mapping| mapping.start <= address)
    }

    fn read_mappings(&mut self) {
        let text = fs::read("/proc/self/maps").unwrap_or_default();
        self.mappings.clear();
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(Line { start, end, offset, inode, path }) = parse_mapping(line) {
                let file = self.number_file(path, inode);
                self.mappings.push(Mapping { start, end, offset, file });
            }
        }
    }

    /// The line of a file. One at the same path may be another file, which has another inode.
    fn number_file(&mut self, path: &[u8], inode: &[u8]) -> u32 {
        let key = [path, b"\n", inode].concat();
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let number = self.lines.len() as u32;
        let line = describe_file(path.to_vec());
        self.counts.write_line(&line);
        self.known.insert(key, number);
        self.lines.push(line);
        number
    }

    /// In the child of a fork: the same blocks, without the parent's counts.
    fn start_child(&mut self) {
        self.counts.start_child();
        for (block, number) in &self.blocks {
            self.counts.write_block(*number, *block);
        }
        for line in &self.lines {
            self.counts.write_line(line);
        }
    }

    /// Executes a program under the emulator. Returns if that is not possible, or fails.
    ///
    /// # Safety
    /// The addresses are the arguments of the program's call of execve.
    unsafe fn execute(&self, path: u64, arguments: u64, variables: u64) {
        let base = GUEST_BASE.load(Ordering::Relaxed);
        // SAFETY: as above.
        let what = match unsafe { self.emulator.prepare(base, path, arguments, variables) } {
            Ok(command) => {
                let executed = self.counts.number(Number::Executed);
                executed.fetch_add(1, Ordering::Relaxed);
                let error = command.execute();
                executed.fetch_sub(1, Ordering::Relaxed);
                command.describe(&error)
            }
            Err(what) => what,
        };
        self.counts.note_escape(&what);
    }
}

/// A line of /proc/self/maps that maps a file.
struct Line<'a> {
    start: u64,
    end: u64,
    offset: u64,
    /// Its device and its number there.
    inode: &'a [u8],
    path: &'a [u8],
}

/// START-END ACCESS OFFSET DEVICE INODE, and a path after spaces.
fn parse_mapping(line: &[u8]) -> Option<Line<'_>> {
    let path = line.iter().position(|byte| *byte == b'/')?;
    let (line, path) = line.split_at(path);
    let line = str::from_utf8(line).ok()?.trim_end();
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (_access, rest) = rest.split_once(' ')?;
    let (offset, inode) = rest.split_once(' ')?;
    let [start, end, offset] = [parse_hex(start)?, parse_hex(end)?, parse_hex(offset)?];
    Some(Line { start, end, offset, inode: inode.as_bytes(), path })
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

extern "C" fn translate(first: *mut c_void, second: *mut c_void) {
    let block = if qemu_plugin_version.load(Ordering::Relaxed) < 7 { second } else { first };
    // SAFETY: QEMU's block is valid during this call, and counters are never unmapped.
    unsafe {
        let first = qemu_plugin_tb_get_insn(block, 0);
        let address = qemu_plugin_insn_haddr(first) as u64;
        GUEST_BASE.store(address.wrapping_sub(qemu_plugin_insn_vaddr(first)) as usize, Ordering::Relaxed);
        let instructions = qemu_plugin_tb_n_insns(block) as u32;
        with_state(|state| {
            if let Some(counter) = state.find_block(address, instructions) {
                qemu_plugin_register_vcpu_tb_exec_cb(block, count_execution, NO_REGISTERS, counter.cast());
            }
        });
    }
}

extern "C" fn count_execution(_cpu: c_uint, block: *mut c_void) {
    // SAFETY: it is a counter in the mapped file.
    unsafe { (*block.cast::<Block>()).executions.fetch_add(1, Ordering::Relaxed) };
}

#[allow(clippy::too_many_arguments)]
extern "C" fn enter_call(
    _id: u64,
    _cpu: c_uint,
    number: i64,
    first: u64,
    second: u64,
    third: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    match number {
        MMAP | MPROTECT | MUNMAP | MREMAP => IS_STALE.store(true, Ordering::Relaxed),
        // SAFETY: these are the arguments of the program's call.
        EXECVE => with_state(|state| unsafe { state.execute(first, second, third) }),
        EXECVEAT => with_state(|state| state.counts.note_escape("a program by execveat")),
        _ => {}
    }
}

extern "C" fn leave_call(_id: u64, _cpu: c_uint, number: i64, result: i64) {
    IS_STALE.fetch_or([MMAP, MPROTECT, MUNMAP, MREMAP].contains(&number), Ordering::Relaxed);
    if [CLONE, FORK, VFORK, CLONE3].contains(&number) && result == 0 {
        with_state(PluginState::start_child);
    }
    if [EXECVE, EXECVEAT].contains(&number) {
        // It has failed, and executed nothing.
        with_state(|state| state.counts.number(Number::Uncounted).fetch_sub(1, Ordering::Relaxed));
    }
}

/// Called once when QEMU loads the plugin. Returns 0, or 1 if its files cannot be created.
///
/// # Safety
/// QEMU calls it with `argc` arguments in `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _info: *const c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let mut folder = None;
    for number in 0..argc.max(0) as usize {
        // SAFETY: there are `argc` arguments.
        let argument = unsafe { CStr::from_ptr(*argv.add(number)) };
        if let Some(path) = argument.to_bytes().strip_prefix(b"out=") {
            folder = Some(Path::new(OsStr::from_bytes(path)));
        }
    }
    let Some(state) = folder.and_then(PluginState::create) else { return 1 };
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    // SAFETY: the callbacks are functions of this library, which QEMU does not unload.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translate, null_mut());
        qemu_plugin_register_vcpu_syscall_cb(id, enter_call);
        qemu_plugin_register_vcpu_syscall_ret_cb(id, leave_call);
    }
    0
}
