//! Waiting. Of several threads that wait, one sleeps at the end of the link; it leads, and moves the packets of all.
//! The others are woken when their sockets are ready.
//!
//! A thread whose socket became ready gives the lead to nobody: most often it waits again at once. If it does not, the
//! thread in the background wakes another one. A thread that begins to wait takes the lead from one for which nothing
//! has come for a while: in an interleaved trial, the threads of the arms whose turn it is not.

use crate::sys::stack::packets::{Stack, StackState};
use crate::sys::stack::waiter::{Leader, Waiter};
use crate::sys::stack::would_block;
use crate::sys::{Interest, Nanos, now_ns};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread may lead for which nothing comes, if another one waits.
const IDLE_LEAD_NS: Nanos = 1_000_000;

thread_local! {
    /// Wakes this thread at the end of the link. Without one it sleeps no longer than it asked to.
    static BELL: Option<Arc<EventFd>> =
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok().map(Arc::new);
}

impl Stack {
    /// Repeats an attempt, with packets moved in between, until it succeeds or fails; `WouldBlock` after the limit. The
    /// sockets are those on which it depends.
    pub(super) fn wait<T>(
        &self,
        sockets: &[(usize, Interest)],
        limit: Duration,
        mut attempt: impl FnMut(&mut StackState) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.lock();
        match attempt(&mut state) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => {
                self.wake_ready(&mut state);
                return done;
            }
        }
        state.move_packets();
        self.wake_ready(&mut state);
        match attempt(&mut state) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !limit.is_zero() => {}
            done => return done,
        }
        let since_ns = now_ns();
        let deadline_ns = since_ns + limit.as_nanos() as Nanos;
        let id = state.add_waiter(sockets);
        let done = loop {
            let left_ns = deadline_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                break would_block();
            }
            state = self.sleep(state, id, since_ns, Duration::from_nanos(left_ns));
            match attempt(&mut state) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => break done,
            }
        };
        state.waiters.retain(|waiter| waiter.id != id);
        done
    }

    /// Wakes the threads whose sockets have become ready since frames were taken.
    pub(super) fn wake_ready(&self, state: &mut StackState) {
        if !std::mem::take(&mut state.has_news) || state.waiters.is_empty() {
            return;
        }
        let waiters = std::mem::take(&mut state.waiters);
        let mut is_follower_ready = false;
        for waiter in &waiters {
            if !waiter.sockets.iter().any(|(key, what)| state.is_ready(*key, *what)) {
                continue;
            }
            match &state.leader {
                Some(leader) if leader.id == waiter.id => leader.wake(),
                _ => is_follower_ready = true,
            }
        }
        state.waiters = waiters;
        if is_follower_ready {
            self.woken.notify_all();
        }
    }

    /// Sleeps until something may have changed, or the time is over; as the leader, moves packets then.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, StackState>,
        id: u64,
        since_ns: Nanos,
        left: Duration,
    ) -> MutexGuard<'a, StackState> {
        let is_full = state.end.is_full();
        if let Some(leader) = &state.leader {
            let is_idle = now_ns() - leader.since_ns > IDLE_LEAD_NS && leader.since_ns < since_ns;
            if is_idle || is_full && !leader.awaits_room {
                leader.wake();
            }
            if !is_idle {
                return self.follow(state, left);
            }
        }
        let bell = BELL.with(Option::clone);
        state.leader = Some(Leader { id, since_ns, awaits_room: is_full, bell: bell.clone() });
        let left = state.until_due().map_or(left, |due| due.min(left));
        drop(state);
        self.await_frame(bell.as_deref(), is_full, left);
        let mut state = self.lock();
        if state.leader.as_ref().is_none_or(|leader| leader.id != id) {
            // Another thread has taken the lead.
            return state;
        }
        state.leader = None;
        state.move_packets();
        self.wake_ready(&mut state);
        state
    }

    fn follow<'a>(&'a self, state: MutexGuard<'a, StackState>, left: Duration) -> MutexGuard<'a, StackState> {
        let (state, _) = self.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        state
    }

    /// Sleeps until the link has a frame, or room if it is full; another thread rings; or the time is over.
    fn await_frame(&self, bell: Option<&EventFd>, is_full: bool, limit: Duration) {
        let awaited = if is_full { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        // The kernel passes over what is negative.
        let bell_fd = bell.map_or(-1, |bell| bell.as_fd().as_raw_fd());
        let mut entries = [
            libc::pollfd { fd: self.link, events: awaited, revents: 0 },
            libc::pollfd { fd: bell_fd, events: libc::POLLIN, revents: 0 },
        ];
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
        };
        // SAFETY: the kernel reads and writes two entries, whose descriptors are open for as long as the stack is
        // there, and reads one time; all outlive the call.
        unsafe { libc::ppoll(entries.as_mut_ptr(), entries.len() as _, &raw const limit, std::ptr::null()) };
        if let Some(bell) = bell.filter(|_| entries[1].revents != 0) {
            // The rings so far are one.
            let _ = bell.read();
        }
    }
}

impl StackState {
    fn add_waiter(&mut self, sockets: &[(usize, Interest)]) -> u64 {
        self.last_waiter += 1;
        self.waiters.push(Waiter { id: self.last_waiter, sockets: sockets.to_vec() });
        self.last_waiter
    }
}
