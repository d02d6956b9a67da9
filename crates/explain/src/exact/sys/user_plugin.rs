//! A plugin for QEMU's user-mode emulator (TCG plugin API): counts how often each block of a program's instructions is
//! executed, in all of its processes and threads.
//!
//! Compiled by build.rs alone, as a shared library. Each process has two files in the folder that the argument `out`
//! names. `NUMBER.blocks` is mapped while the process runs, so that its counts are there however it ends: a header of
//! two numbers of 64 bits (blocks, and how many had no room), then a [`Block`] each. `NUMBER.files` has the paths of
//! the files whose code was executed, a line each. The file `escaped` has a line for each program that was started and
//! cannot be emulated.
//!
//! QEMU leaves the emulation when a program calls execve. The plugin is called before that, and executes the emulator
//! with the new program instead. A process that forks continues in both, and the child gets other files.
//!
//! A block ends at a jump, so one that is left early, by a fault, counts as a whole: that is rare and nearly always
//! the end of the program.

#[path = "user_plugin/execution.rs"]
mod execution;

use execution::{execute, note_escape, read_arguments};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
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
/// Most blocks of a process; its file is sparse.
const MAX_BLOCKS: usize = 1 << 21;
/// Most programs that one process executes, one after the other.
const MAX_EXECUTIONS: u32 = 10_000;
const HEADER_BYTES: usize = 16;
const FILE_BYTES: usize = HEADER_BYTES + MAX_BLOCKS * size_of::<Block>();

const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const MAP_FIXED: c_int = 16;

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
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        from: i64,
    ) -> *mut c_void;
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

/// A block of instructions, as the file has it.
#[repr(C)]
struct Block {
    executions: AtomicU64,
    /// Of its first instruction in the file with the code; an address where there is no file.
    offset: u64,
    /// The line of `NUMBER.files`.
    file: u32,
    instructions: u32,
}

/// A range of this process's addresses with the contents of a file.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: u32,
}

struct PluginState {
    folder: PathBuf,
    /// The file of counts, mapped.
    counts: *mut u8,
    /// Where the paths go.
    paths_file: Option<File>,
    /// File, offset and number of instructions of each block, and which one it is.
    blocks: HashMap<(u32, u64, u32), usize>,
    paths: Vec<String>,
    mappings: Vec<Mapping>,
}

// SAFETY: the file stays mapped for as long as the process lives, and counters in it are atomic.
unsafe impl Send for PluginState {}

static STATE: Mutex<Option<PluginState>> = Mutex::new(None);
/// Whether mappings have changed since they were read.
static IS_STALE: AtomicBool = AtomicBool::new(true);
/// What the emulator adds to an address of the program to get one of this process.
static GUEST_BASE: AtomicUsize = AtomicUsize::new(0);

fn with_state(act: impl FnOnce(&mut PluginState)) {
    if let Some(state) = STATE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(state);
    }
}

impl PluginState {
    fn create(folder: PathBuf) -> Option<Self> {
        let mut state = PluginState {
            folder,
            counts: null_mut(),
            paths_file: None,
            blocks: HashMap::new(),
            paths: Vec::new(),
            mappings: Vec::new(),
        };
        state.open_files(null_mut())?;
        Some(state)
    }

    /// Makes this process's files, and maps that of the counts, at an address if there is one. A process that executes
    /// another program keeps its number.
    fn open_files(&mut self, at: *mut u8) -> Option<()> {
        let id = std::process::id();
        let mut number = 0;
        let file = loop {
            match self.create_file(&format!("{id}-{number}.blocks")) {
                Some(file) => break file,
                None if number == MAX_EXECUTIONS => return None,
                None => number += 1,
            }
        };
        self.paths_file = Some(self.create_file(&format!("{id}-{number}.files"))?);
        file.set_len(FILE_BYTES as u64).ok()?;
        let flags = if at.is_null() { MAP_SHARED } else { MAP_SHARED | MAP_FIXED };
        // SAFETY: it replaces nothing but the mapping of the parent's file, which has this length.
        let mapped = unsafe { mmap(at.cast(), FILE_BYTES, PROT_READ_WRITE, flags, file.as_raw_fd(), 0) };
        if mapped as isize == -1 {
            return None;
        }
        self.counts = mapped.cast();
        Some(())
    }

    fn create_file(&self, name: &str) -> Option<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.folder.join(name)).ok()
    }

    fn block(&self, number: usize) -> *mut Block {
        self.counts.wrapping_add(HEADER_BYTES + number * size_of::<Block>()).cast()
    }

    /// One of the header's numbers.
    fn header(&self, number: usize) -> &AtomicU64 {
        // SAFETY: the file is mapped, and begins with two of them.
        unsafe { &*self.counts.cast::<AtomicU64>().add(number) }
    }

    /// The counter of the block at an address of this process; `None` if there is no room.
    fn find_block(&mut self, address: u64, instructions: u32) -> Option<*mut Block> {
        let (file, offset) = self.locate(address);
        let next = self.blocks.len();
        if let Some(number) = self.blocks.get(&(file, offset, instructions)) {
            return Some(self.block(*number));
        }
        if next == MAX_BLOCKS {
            self.header(1).fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.blocks.insert((file, offset, instructions), next);
        let block = self.block(next);
        // SAFETY: the place is inside the mapped file, and nobody else has it yet.
        unsafe { block.write(Block { executions: AtomicU64::new(0), offset, file, instructions }) };
        self.header(0).store(next as u64 + 1, Ordering::Relaxed);
        Some(block)
    }

    /// The file that an address has its code from, and the offset in it.
    fn locate(&mut self, address: u64) -> (u32, u64) {
        if IS_STALE.swap(false, Ordering::Relaxed) || self.find_mapping(address).is_none() {
            self.read_mappings();
        }
        match self.find_mapping(address) {
            Some(mapping) => (mapping.file, address - mapping.start + mapping.offset),
            None => (self.number_path(""), address),
        }
    }

    fn find_mapping(&self, address: u64) -> Option<&Mapping> {
        let next = self.mappings.partition_point(|mapping| mapping.end <= address);
        self.mappings.get(next).filter(|mapping| mapping.start <= address)
    }

    fn read_mappings(&mut self) {
        let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        self.mappings.clear();
        for line in text.lines() {
            if let Some((start, end, offset, path)) = parse_mapping(line) {
                let file = self.number_path(path);
                self.mappings.push(Mapping { start, end, offset, file });
            }
        }
    }

    fn number_path(&mut self, path: &str) -> u32 {
        if let Some(known) = self.paths.iter().position(|other| other == path) {
            return known as u32;
        }
        if let Some(file) = &mut self.paths_file {
            let _ = writeln!(file, "{path}");
        }
        self.paths.push(path.to_owned());
        self.paths.len() as u32 - 1
    }

    /// In the child of a fork: the same blocks, without the parent's counts.
    fn start_child(&mut self) {
        let mut known: Vec<(usize, (u32, u64, u32))> =
            self.blocks.iter().map(|(key, number)| (*number, *key)).collect();
        known.sort_unstable();
        if self.open_files(self.counts).is_none() {
            note_escape(&self.folder, "a process whose counts have no file");
            return;
        }
        for (number, (file, offset, instructions)) in known {
            // SAFETY: as in `find_block`; the one thread of the child is here.
            unsafe {
                self.block(number).write(Block { executions: AtomicU64::new(0), offset, file, instructions })
            };
        }
        self.header(0).store(self.blocks.len() as u64, Ordering::Relaxed);
        if let Some(file) = &mut self.paths_file {
            for path in &self.paths {
                let _ = writeln!(file, "{path}");
            }
        }
    }
}

/// Start, end, offset and path of a line of /proc/self/maps, if it maps a file.
fn parse_mapping(line: &str) -> Option<(u64, u64, u64, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let path = &rest[rest.find('/')?..];
    let offset = rest.split(' ').nth(1)?;
    Some((parse_hex(start)?, parse_hex(end)?, parse_hex(offset)?, path))
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
        EXECVE => unsafe {
            if let Some(program) = execute(GUEST_BASE.load(Ordering::Relaxed), first, second, third) {
                with_state(|state| note_escape(&state.folder, &program));
            }
        },
        EXECVEAT => with_state(|state| note_escape(&state.folder, "a program, by execveat")),
        _ => {}
    }
}

extern "C" fn leave_call(_id: u64, _cpu: c_uint, number: i64, result: i64) {
    IS_STALE.fetch_or([MMAP, MPROTECT, MUNMAP, MREMAP].contains(&number), Ordering::Relaxed);
    if [CLONE, FORK, VFORK, CLONE3].contains(&number) && result == 0 {
        with_state(PluginState::start_child);
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
        if let Some(path) = argument.to_str().ok().and_then(|text| text.strip_prefix("out=")) {
            folder = Some(PathBuf::from(path));
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
