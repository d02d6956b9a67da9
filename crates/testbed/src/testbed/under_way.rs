//! Requests under way on a channel. A guest in virtual time stands still while there are none: otherwise as much of its
//! time would pass as the machine outside happens to take.

use crate::kernel::sys::PidFd;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};

/// What follows from requests on a channel. Each is one line, and so is its answer.
pub(crate) trait UnderWay: fmt::Debug + Send + Sync {
    /// A request comes by.
    fn asked(&self);

    /// An answer has come by.
    fn answered(&self);
}

/// The guest's time between an answer and the beginning of the next request's work. Reading a request takes some steps
/// of its clock, a few microseconds, and how many depends on the machine outside.
const PAUSE: Duration = Duration::from_millis(10);

/// The guest's end. Virtual time passes only while all processes wait. So without a request under way a thread is busy,
/// and a request's work begins at a time that follows from the answer before it.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    under_way: AtomicUsize,
    /// When the last answer was about to be sent, nanoseconds of the clock.
    answered_ns: AtomicU64,
    /// For the thread that holds: that nothing is under way.
    idle: Condvar,
    lock: Mutex<()>,
}

impl Hold {
    /// Is busy whenever nothing is under way, for as long as the process lives.
    pub fn hold(&self) {
        loop {
            while self.under_way.load(Ordering::Acquire) == 0 {
                // Reading a clock would take time.
                thread::yield_now();
            }
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let busy = |_: &mut ()| self.under_way.load(Ordering::Acquire) > 0;
            drop(self.idle.wait_while(guard, busy));
        }
    }
}

impl UnderWay for Hold {
    fn asked(&self) {
        if self.under_way.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let begins = Duration::from_nanos(self.answered_ns.load(Ordering::Acquire)) + PAUSE;
        let begins = TimeSpec::from_duration(begins);
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &begins)
            == Err(Errno::EINTR)
        {}
    }

    fn answered(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.answered_ns.store(now_ns, Ordering::Release);
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let less = |count: usize| count.checked_sub(1);
        let _ = self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        drop(guard);
        self.idle.notify_one();
    }
}

/// The end outside. A guest that holds uses a processor for nothing, so its process is stopped.
#[derive(Debug)]
pub(crate) struct Pause {
    requests: Mutex<usize>,
    process: PidFd,
}

impl Pause {
    /// Pauses a guest that has nothing to do yet.
    ///
    /// # Errors
    /// The kernel cannot name processes by descriptors.
    pub fn begin(process: u32) -> io::Result<Self> {
        let pause = Pause { requests: Mutex::new(0), process: PidFd::open(process)? };
        pause.signal(Signal::SIGSTOP);
        Ok(pause)
    }

    /// A guest that is gone takes no signals, and its channel says so.
    fn signal(&self, signal: Signal) {
        let _ = self.process.signal(signal);
    }
}

impl UnderWay for Pause {
    fn asked(&self) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests += 1;
        self.signal(Signal::SIGCONT);
    }

    fn answered(&self) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests = requests.saturating_sub(1);
        if *requests == 0 {
            self.signal(Signal::SIGSTOP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::gettid;
    use std::fs;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Instant;

    /// Waits until a process or thread, by its file of its state, is stopped, sleeps, or runs.
    fn wait_for(wanted: char, stat: &str) {
        let start = Instant::now();
        loop {
            let text = fs::read_to_string(stat).unwrap();
            let state = text.rsplit(") ").next().unwrap().chars().next().unwrap();
            if state == wanted {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{state}, not {wanted}");
            thread::yield_now();
        }
    }

    #[test]
    fn a_hold_is_busy_while_nothing_is_under_way() {
        let hold = Arc::new(Hold::default());
        let own = Arc::clone(&hold);
        let (sender, thread) = mpsc::channel();
        thread::spawn(move || {
            sender.send(gettid()).unwrap();
            own.hold();
        });
        let stat = format!("/proc/self/task/{}/stat", thread.recv().unwrap());
        wait_for('R', &stat);
        hold.asked();
        hold.asked();
        hold.answered();
        wait_for('S', &stat);
        hold.answered();
        wait_for('R', &stat);
    }

    #[test]
    fn a_request_begins_a_while_after_the_answer_before() {
        let hold = Hold::default();
        hold.asked();
        let began = Instant::now();
        hold.answered();
        hold.asked();
        assert!(began.elapsed() >= PAUSE);
        let began = Instant::now();
        hold.answered();
        thread::sleep(2 * PAUSE);
        hold.asked();
        assert!(began.elapsed() >= 2 * PAUSE);
    }

    #[test]
    fn a_process_is_stopped_while_nothing_is_asked() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let is = |wanted| wait_for(wanted, &format!("/proc/{}/stat", child.id()));
        let pause = Pause::begin(child.id()).unwrap();
        is('T');
        pause.asked();
        pause.asked();
        is('S');
        pause.answered();
        is('S');
        pause.answered();
        is('T');
        child.kill().unwrap();
        child.wait().unwrap();
        // Without effect, and without error.
        pause.asked();
    }
}
