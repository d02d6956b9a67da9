//! The thread that looks after a stack while nobody calls it.

use crate::sys::stack::neighbours::announce_neighbours;
use crate::sys::stack::packets::Stack;
use crate::sys::{Nanos, now_ns};
use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(5);
/// How often the stack hears of its neighbours, which it forgets after a minute, nanoseconds.
const ANNOUNCE_INTERVAL_NS: Nanos = 20_000_000_000;

pub(super) fn start(stack: &Arc<Stack>) -> io::Result<()> {
    let watched = Arc::downgrade(stack);
    thread::Builder::new().name("stack".to_owned()).spawn(move || look_after(&watched)).map(drop)
}

fn look_after(stack: &Weak<Stack>) {
    let mut announced_ns = now_ns();
    loop {
        thread::sleep(INTERVAL);
        let Some(stack) = stack.upgrade() else { return };
        // Whoever has the lock moves packets itself, or will once it waits.
        let Some(mut state) = stack.try_lock() else { continue };
        if now_ns() - announced_ns > ANNOUNCE_INTERVAL_NS {
            state.end.announced = announce_neighbours(&stack.config);
            announced_ns = now_ns();
        }
        if state.leader.is_none() {
            state.move_packets();
            stack.wake_ready(&mut state);
            stack.woken.notify_one();
        }
        state.end_connections();
    }
}
