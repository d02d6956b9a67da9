//! What a fuzzer's process needs of the system.

use std::mem::zeroed;
use std::ptr::null_mut;

/// Room for the fuzzer's own signal handler, bytes.
const ROOM: usize = 256 << 10;

/// Gives signal handlers a stack of their own: one that an input has filled has no room for the handler that writes the
/// input to a file. The fuzzer's handlers, which come later, keep this option of the signal.
pub fn signals_have_room() {
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
