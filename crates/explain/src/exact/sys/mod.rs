//! Marks in this program's code that the plugin finds, messages between them, the clock and the random numbers of the
//! emulated machine, and children that end with this process.
#![allow(unsafe_code)]

// Compiled by build.rs as libraries that QEMU loads; named here for rustfmt alone.
#[cfg(any())]
mod plugin;
#[cfg(any())]
mod user_plugin;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The beginning of a phase: the plugin counts from here.
#[inline(never)]
pub(super) fn begin() {
    mark::<0x7e5a_4c01>();
}

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

/// Sends a message from one socket and receives it at the other, as large as it is. Two system calls and little code
/// around them: the counts are to be the kernel's.
pub(super) fn pass(from: &OwnedFd, to: &OwnedFd, message: &[u8], received: &mut [u8]) -> io::Result<()> {
    let from = from.as_raw_fd();
    let to = to.as_raw_fd();
    // SAFETY: the buffers are valid for the lengths that are passed with them.
    let sent = unsafe { libc::send(from, message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut left = &mut received[..sent as usize];
    // A stream may deliver it in parts.
    while !left.is_empty() {
        // SAFETY: as above.
        let got = unsafe { libc::recv(to, left.as_mut_ptr().cast(), left.len(), 0) };
        match got {
            ..0 => return Err(io::Error::last_os_error()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => left = &mut left[got as usize..],
        }
    }
    Ok(())
}

/// Credits the kernel's random number generator with these bytes. Until it is seeded, each number that a connection or
/// a key needs costs thousands of instructions, as it does in no system that has run for a while.
pub(super) fn seed_random(bytes: &[u8; 256]) -> io::Result<()> {
    /// `_IOW('R', 3, int[2])`
    const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
    #[repr(C)]
    struct Pool {
        bits: libc::c_int,
        length: libc::c_int,
        bytes: [u8; 256],
    }
    let pool = Pool { bits: 8 * 256, length: 256, bytes: *bytes };
    let device = File::options().write(true).open("/dev/urandom")?;
    // SAFETY: the kernel reads a header and `length` bytes after it.
    Errno::result(unsafe { libc::ioctl(device.as_raw_fd(), RNDADDENTROPY as _, &raw const pool) })?;
    Ok(())
}

pub(super) fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec there is this one system call.
    unsafe {
        command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
    }
}
