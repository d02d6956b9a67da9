//! What a fuzzer's process needs of the system.
#![allow(unsafe_code)]

use rusqlite::ffi;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest processor time of one input, ns.
const MAX_NS: u64 = 1_000_000_000;
/// The input under way by its number, 0 between two; and the one that was when the timer last ran out.
static INPUT: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Room for the fuzzer's own signal handler, bytes.
const ROOM: usize = 256 << 10;

/// Watches inputs, and gives signal handlers a stack of their own: one that an input has filled has no room for the
/// handler that writes the input to a file. The fuzzer's handlers, which come later, keep this option of the signal.
pub fn prepare() {
    watch();
    // SQLite does not count its memory, behind a lock at each allocation, and takes more of it at once.
    // SAFETY: no connection is open yet, and the arguments are of the documented types.
    unsafe {
        assert_eq!(ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0), ffi::SQLITE_OK);
        assert_eq!(ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOOKASIDE, 1200, 200), ffi::SQLITE_OK);
    }
    let room = Box::leak(vec![0_u8; ROOM].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: ROOM };
    // SAFETY: the memory is never freed; all zeros is a valid `sigaction`, whose handler is the default one.
    unsafe {
        assert_eq!(libc::sigaltstack(&stack, null_mut()), 0);
        let mut action: libc::sigaction = zeroed();
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, null_mut()), 0);
    }
}

/// Gives a target one input, which may take a second of the processor: unlike the fuzzer's own limit, it does not count
/// time for which other programs have it. Prints the longest time so far.
pub fn run_within_limit(target: fn(&[u8]), data: &[u8]) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    static SLOWEST_NS: AtomicU64 = AtomicU64::new(10_000_000);
    let began = processor_ns();
    INPUT.store(LAST.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    target(data);
    INPUT.store(0, Ordering::Relaxed);
    let took = processor_ns() - began;
    if took > SLOWEST_NS.fetch_max(took, Ordering::Relaxed) {
        eprintln!("processor time: {} ms", took / 1_000_000);
        assert!(took <= MAX_NS, "an input takes {took} ns of the processor");
    }
}

/// Aborts at an input that does not end: each second of processor time it looks whether the input is still the same.
fn watch() {
    extern "C" fn look(_: libc::c_int) {
        let input = INPUT.load(Ordering::Relaxed);
        if input != 0 && SEEN.swap(input, Ordering::Relaxed) == input {
            let said = b"an input takes more than a second of the processor\n";
            // SAFETY: both calls may be made by signal handlers, and the bytes are as many as is said.
            unsafe {
                libc::write(libc::STDERR_FILENO, said.as_ptr().cast(), said.len());
                libc::abort();
            }
        }
    }
    let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: second, it_value: second };
    // SAFETY: all zeros is a valid `sigaction`, and the handler calls only what signal handlers may.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = look as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGPROF, &action, null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_PROF, &timer, null_mut()), 0);
    }
}

/// Processor time of this process, ns.
fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a variable of its type.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
