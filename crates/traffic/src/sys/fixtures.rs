//! The allocator of this crate's tests: the system's allocator, with a per-thread count of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Constant and without a destructor, so that reading it allocates nothing.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// Number of allocations on this thread so far.
pub(crate) fn asked() -> u64 {
    ASKED.get()
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    ASKED.set(ASKED.get() + 1);
}

// SAFETY: every call is passed unchanged to the system's allocator. Counting uses a constant-initialised thread-local
// cell and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system allocator's, from which the place came.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the system allocator's, from which the place came.
        unsafe { System.realloc(place, layout, bytes) }
    }
}
