//! A plugin for QEMU's emulator (TCG plugin API): counts the executions of each instruction of the guest.
//!
//! Compiled by build.rs alone, as a shared library. Marks in the guest's code begin and end a phase (`mod.rs`). At
//! the end of a phase, its counts go to the file that the argument `out` names: a line `phase NUMBER`, then a line
//! `ADDRESS COUNT` for each instruction that was executed, by address. The file ends with the line `end`.
//!
//! QEMU adds to a counter before each instruction, so an instruction that faults and is repeated counts twice, as it
//! does in QEMU's instruction counter, which the guest reads as its clock.
//!
//! | version of the interface | difference to the one before |
//! |---|---|
//! | 1 | - |
//! | 2 | counters are in scoreboards, an array for each CPU |
//! | 3 | `qemu_plugin_insn_data` copies the bytes |
//! | 7 | callbacks get user data instead of the plugin's number |
//!
//! One library serves all: functions that are in some versions only are looked up, and functions with a new argument
//! are declared with it, because the calling convention of x86-64 lets older ones ignore it.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The version of the interface, which QEMU compares with those that it has.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

const VERSION: &str = "STACKLAB_PLUGIN_VERSION";

/// Runs when the library is loaded: QEMU reads the version before it calls any function.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    if let Some(version) = std::env::var(VERSION).ok().and_then(|version| version.parse().ok()) {
        qemu_plugin_version.store(version, Ordering::Relaxed);
    }
}

fn version() -> c_int {
    qemu_plugin_version.load(Ordering::Relaxed)
}

/// `QEMU_PLUGIN_INLINE_ADD_U64` and `QEMU_PLUGIN_CB_NO_REGS`.
const ADD: c_uint = 0;
const NO_REGISTERS: c_uint = 0;
/// Counters that are allocated at once. They stay where they are: translated code points to them.
const CHUNK: usize = 4096;
/// Longest instruction of x86-64, bytes.
const MAX_LENGTH: usize = 15;
/// A mark: `mov ebx, 0x7e5a4c01` at the beginning of a phase, `mov ebx, 0x7e5a4c00` at its end; then `fs addr32 nop`.
/// These are the upper bytes of the constant.
const TAG: [u8; 3] = [0x4c, 0x5a, 0x7e];
const NOP: [u8; 3] = [0x64, 0x67, 0x90];

type Callback = extern "C" fn(*mut c_void, *mut c_void);

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: Callback, data: *mut c_void);
    fn qemu_plugin_register_atexit_cb(id: u64, callback: Callback, data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut c_void,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_uint,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(block: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const c_void, number: usize) -> *mut c_void;
    /// Returns the bytes before version 3, and since then copies them.
    fn qemu_plugin_insn_data(insn: *const c_void, into: *mut u8, length: usize) -> *const u8;
    fn qemu_plugin_insn_size(insn: *const c_void) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
}

/// How QEMU adds to a counter.
#[derive(Clone, Copy)]
enum Adder {
    /// Version 1: anywhere.
    Pointer(unsafe extern "C" fn(insn: *mut c_void, op: c_uint, to: *mut c_void, add: u64)),
    /// In a scoreboard, which has an array for each CPU.
    Scoreboard {
        new: unsafe extern "C" fn(bytes: usize) -> *mut c_void,
        find: unsafe extern "C" fn(scoreboard: *mut c_void, cpu: c_uint) -> *mut u64,
        add: unsafe extern "C" fn(insn: *mut c_void, op: c_uint, to: Place, add: u64),
    },
}

/// `qemu_plugin_u64`: a counter in the array of each CPU.
#[repr(C)]
struct Place {
    scoreboard: *mut c_void,
    offset: usize,
}

impl Adder {
    /// `None` if QEMU lacks the functions of this version.
    fn find() -> Option<Self> {
        // SAFETY: these are the types of QEMU's functions.
        unsafe {
            Some(match version() {
                1 => Self::Pointer(transmute(find_function(c"qemu_plugin_register_vcpu_insn_exec_inline")?)),
                _ => Self::Scoreboard {
                    new: transmute(find_function(c"qemu_plugin_scoreboard_new")?),
                    find: transmute(find_function(c"qemu_plugin_scoreboard_find")?),
                    add: transmute(find_function(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?),
                },
            })
        }
    }
}

fn find_function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: without a handle, it searches the program and its libraries.
    let function = unsafe { dlsym(null_mut(), name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

struct Chunk {
    scoreboard: *mut c_void,
    /// Of the only CPU.
    counters: *mut u64,
}

struct PluginState {
    /// `None` once writing failed: the file then lacks its end.
    out: Option<BufWriter<File>>,
    adder: Adder,
    /// The number of each address's counter.
    numbers: HashMap<u64, usize>,
    chunks: Vec<Chunk>,
    phases: u32,
}

// SAFETY: chunks are never freed, and the emulator runs one thread.
unsafe impl Send for PluginState {}

static STATE: Mutex<Option<PluginState>> = Mutex::new(None);

fn with_state(act: impl FnOnce(&mut PluginState)) {
    if let Some(state) = STATE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(state);
    }
}

impl PluginState {
    /// Makes QEMU count the executions of an instruction.
    ///
    /// # Safety
    /// The instruction is one of the block that QEMU translates.
    unsafe fn count(&mut self, insn: *mut c_void) {
        let next = self.numbers.len();
        // SAFETY: the instruction is QEMU's; memory of chunks lives as long as the code, and indexes are within them.
        unsafe {
            let number = *self.numbers.entry(qemu_plugin_insn_vaddr(insn)).or_insert(next);
            if number == self.chunks.len() * CHUNK {
                self.chunks.push(match self.adder {
                    Adder::Pointer(_) => Chunk {
                        scoreboard: null_mut(),
                        counters: Box::leak(Box::new([0; CHUNK])).as_mut_ptr(),
                    },
                    Adder::Scoreboard { new, find, .. } => {
                        let scoreboard = new(CHUNK * size_of::<u64>());
                        Chunk { scoreboard, counters: find(scoreboard, 0) }
                    }
                });
            }
            let place = Place {
                scoreboard: self.chunks[number / CHUNK].scoreboard,
                offset: number % CHUNK * size_of::<u64>(),
            };
            match self.adder {
                Adder::Pointer(add) => add(insn, ADD, self.counter(number).cast(), 1),
                Adder::Scoreboard { add, .. } => add(insn, ADD, place, 1),
            }
        }
    }

    fn counter(&self, number: usize) -> *mut u64 {
        self.chunks[number / CHUNK].counters.wrapping_add(number % CHUNK)
    }

    fn write(&mut self, act: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if self.out.as_mut().is_some_and(|out| act(out).is_err()) {
            self.out = None;
        }
    }

    fn end_phase(&mut self) {
        // SAFETY: counters are never freed, and translated code does not run during a callback.
        let counted =
            self.numbers.iter().map(|(address, number)| (*address, unsafe { *self.counter(*number) }));
        let mut counted: Vec<(u64, u64)> = counted.filter(|(_, count)| *count > 0).collect();
        counted.sort_unstable();
        let number = self.phases;
        self.phases += 1;
        self.write(|out| {
            writeln!(out, "phase {number}")?;
            counted.iter().try_for_each(|(address, count)| writeln!(out, "{address:x} {count}"))
        });
    }
}

extern "C" fn mark(_cpu: c_uint, is_begin: *mut c_void) {
    with_state(|state| {
        if is_begin.is_null() {
            state.end_phase();
        }
        // SAFETY: as in `end_phase`.
        (0..state.numbers.len()).for_each(|number| unsafe { *state.counter(number) = 0 });
    });
}

extern "C" fn translated(first: *mut c_void, second: *mut c_void) {
    let block = if version() < 7 { second } else { first };
    with_state(|state| {
        // The tag of the instruction before.
        let mut tag = None;
        // SAFETY: QEMU's block and its instructions are valid during this call; the bytes are those of the
        // instruction.
        unsafe {
            for number in 0..qemu_plugin_tb_n_insns(block) {
                let insn = qemu_plugin_tb_get_insn(block, number);
                let mut copy = [0; MAX_LENGTH];
                let data = qemu_plugin_insn_data(insn, copy.as_mut_ptr(), MAX_LENGTH);
                let data = if version() < 3 { data } else { copy.as_ptr() };
                let bytes = std::slice::from_raw_parts(data, qemu_plugin_insn_size(insn).min(MAX_LENGTH));
                match tag.take() {
                    Some(is_begin) if bytes == NOP => {
                        let data = usize::from(is_begin) as *mut c_void;
                        qemu_plugin_register_vcpu_insn_exec_cb(insn, mark, NO_REGISTERS, data);
                    }
                    _ => state.count(insn),
                }
                tag = match bytes {
                    [0xbb, which @ (0 | 1), rest @ ..] if rest == TAG => Some(*which == 1),
                    _ => None,
                };
            }
        }
    });
}

extern "C" fn ended(_: *mut c_void, _: *mut c_void) {
    with_state(|state| state.write(|out| writeln!(out, "end").and_then(|()| out.flush())));
}

/// Called once when QEMU loads the plugin. Returns 0, or 1 if the file cannot be created or QEMU lacks a function.
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
    if argc != 1 {
        return 1;
    }
    // SAFETY: there is one argument.
    let argument = unsafe { CStr::from_ptr(*argv) };
    let file = argument.to_str().ok().and_then(|text| text.strip_prefix("out=")).map(File::create);
    let (Some(Ok(file)), Some(adder)) = (file, Adder::find()) else { return 1 };
    let out = Some(BufWriter::new(file));
    let state = PluginState { out, adder, numbers: HashMap::new(), chunks: Vec::new(), phases: 0 };
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    // SAFETY: the callbacks are functions of this library, which QEMU does not unload.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated, null_mut());
        qemu_plugin_register_atexit_cb(id, ended, null_mut());
    }
    0
}
