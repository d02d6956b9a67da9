//! Marks in this program's code that the plugin finds, the clock of the emulated machine, and children that end with
//! this process.
#![allow(unsafe_code)]

// Compiled by build.rs as a library that QEMU loads; named here for rustfmt alone.
#[cfg(any())]
mod plugin;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The beginning of a phase: the plugin counts from here.
#[inline(never)]
pub(super) fn begin() {
    mark::<0x7e5a_4c01>();
}

/// The end of a phase.
#[inline(never)]
pub(super) fn end() {
    mark::<0x7e5a_4c00>();
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn mark<const TAG: u32>() {
    // SAFETY: the code changes no memory and restores the register that it loads. Both instructions are in one aligned
    // block of 16 bytes, so that QEMU translates them together.
    unsafe {
        std::arch::asm!(
            "mov {kept}, rbx",
            ".p2align 4",
            "mov ebx, {tag}",
            ".byte 0x64, 0x67, 0x90",
            "mov rbx, {kept}",
            kept = out(reg) _,
            tag = const TAG,
            options(nostack)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn mark<const TAG: u32>() {}

/// The processor's time stamp counter. QEMU with `-icount shift=0` counts one tick for each instruction.
#[cfg(target_arch = "x86_64")]
pub(super) fn ticks() -> u64 {
    // SAFETY: each x86-64 processor has the instruction, and Linux permits it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn ticks() -> u64 {
    0
}

/// Makes the kernel kill the child when this process ends.
pub(super) fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec there is this one system call.
    unsafe {
        command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
    }
}
