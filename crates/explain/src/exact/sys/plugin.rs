//! A plugin for QEMU's emulator (TCG plugin API, version 1): counts the executions of each instruction of the guest.
//!
//! Compiled by build.rs alone, as a shared library. Marks in the guest's code begin and end a phase (`mark.rs`). At
//! the end of a phase, its counts go to the file that the argument `out` names: a line `phase NUMBER`, then a line
//! `ADDRESS COUNT` for each instruction that was executed, by address. The file ends with the line `end`.
//!
//! QEMU adds to a counter before each instruction, so an instruction that faults and is repeated counts twice, as it
//! does in QEMU's instruction counter, which the guest reads as its clock.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Mutex, PoisonError};

/// The version of the interface, which QEMU looks up.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = 1;

/// `QEMU_PLUGIN_INLINE_ADD_U64` and `QEMU_PLUGIN_CB_NO_REGS`.
const ADD: c_uint = 0;
const NO_REGISTERS: c_uint = 0;
/// Counters that are allocated at once. They stay where they are: translated code points to them.
const CHUNK: usize = 4096;
/// A mark: `mov ebx, 0x7e5a4c01` at the beginning of a phase, `mov ebx, 0x7e5a4c00` at its end; then `fs addr32 nop`.
/// These are the upper bytes of the constant.
const TAG: [u8; 3] = [0x4c, 0x5a, 0x7e];
const NOP: [u8; 3] = [0x64, 0x67, 0x90];

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: extern "C" fn(u64, *mut c_void));
    fn qemu_plugin_register_atexit_cb(id: u64, callback: extern "C" fn(u64, *mut c_void), data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_inline(insn: *mut c_void, op: c_uint, to: *mut c_void, add: u64);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut c_void,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_uint,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(block: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const c_void, number: usize) -> *mut c_void;
    fn qemu_plugin_insn_data(insn: *const c_void) -> *const u8;
    fn qemu_plugin_insn_size(insn: *const c_void) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
}

struct State {
    /// `None` once writing failed: the file then lacks its end.
    out: Option<BufWriter<File>>,
    /// The counter of each address.
    counters: HashMap<u64, *mut u64>,
    chunks: Vec<Box<[u64; CHUNK]>>,
    used: usize,
    phases: u32,
}

// SAFETY: the pointers are into `chunks`, which are never freed, and the emulator runs one thread.
unsafe impl Send for State {}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with_state(act: impl FnOnce(&mut State)) {
    if let Some(state) = STATE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(state);
    }
}

impl State {
    fn counter(&mut self, address: u64) -> *mut u64 {
        let State { counters, chunks, used, .. } = self;
        *counters.entry(address).or_insert_with(|| {
            if *used == CHUNK || chunks.is_empty() {
                chunks.push(Box::new([0; CHUNK]));
                *used = 0;
            }
            *used += 1;
            let last = chunks.len() - 1;
            &raw mut chunks[last][*used - 1]
        })
    }

    fn write(&mut self, act: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if self.out.as_mut().is_some_and(|out| act(out).is_err()) {
            self.out = None;
        }
    }

    fn end_phase(&mut self) {
        // SAFETY: counters are never freed, and translated code does not run during a callback.
        let counted = self.counters.iter().map(|(address, counter)| (*address, unsafe { **counter }));
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
        state.counters.values().for_each(|counter| unsafe { **counter = 0 });
    });
}

extern "C" fn translated(_id: u64, block: *mut c_void) {
    with_state(|state| {
        // The tag of the instruction before.
        let mut tag = None;
        // SAFETY: QEMU's block and its instructions are valid during this call; the bytes are those of the
        // instruction. Counters live as long as the code.
        unsafe {
            for number in 0..qemu_plugin_tb_n_insns(block) {
                let insn = qemu_plugin_tb_get_insn(block, number);
                let bytes =
                    std::slice::from_raw_parts(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
                match tag.take() {
                    Some(is_begin) if bytes == NOP => {
                        let data = usize::from(is_begin) as *mut c_void;
                        qemu_plugin_register_vcpu_insn_exec_cb(insn, mark, NO_REGISTERS, data);
                    }
                    _ => {
                        let counter = state.counter(qemu_plugin_insn_vaddr(insn));
                        qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD, counter.cast(), 1);
                    }
                }
                tag = match bytes {
                    [0xbb, which @ (0 | 1), rest @ ..] if rest == TAG => Some(*which == 1),
                    _ => None,
                };
            }
        }
    });
}

extern "C" fn ended(_id: u64, _data: *mut c_void) {
    with_state(|state| state.write(|out| writeln!(out, "end").and_then(|()| out.flush())));
}

/// Called once when QEMU loads the plugin. Returns 0, or 1 if the file cannot be created.
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
    let Some(Ok(file)) = file else { return 1 };
    let out = Some(BufWriter::new(file));
    let state = State { out, counters: HashMap::new(), chunks: Vec::new(), used: 0, phases: 0 };
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    // SAFETY: the callbacks are functions of this library, which QEMU does not unload.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, ended, std::ptr::null_mut());
    }
    0
}
