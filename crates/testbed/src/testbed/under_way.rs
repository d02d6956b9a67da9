//! Requests under way on a channel. A guest in virtual time stands still while there are none: otherwise as much of its
//! time would pass as the machine outside happens to take.

use crate::kernel::sys::PidFd;
use nix::sys::signal::Signal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fmt, io, thread};

/// What follows from requests on a channel. Each is one line, and so is its answer.
pub(crate) trait UnderWay: fmt::Debug + Send + Sync {
    /// A request comes by.
    fn asked(&self);

    /// An answer has come by.
    fn answered(&self);
}

/// The guest's end. Without a request under way, whoever sent the last answer is busy until there is one: virtual time
/// passes only while all processes wait.
#[derive(Debug, Default)]
pub(crate) struct Hold(AtomicUsize);

impl Hold {
    /// Returns when there is a request under way.
    pub fn hold(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            // Reading a clock would take time.
            thread::yield_now();
        }
    }
}

impl UnderWay for Hold {
    fn asked(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    fn answered(&self) {
        let less = |count: usize| count.checked_sub(1);
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        self.hold();
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
    use std::fs;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_hold_ends_with_a_request() {
        let hold = Arc::new(Hold::default());
        hold.asked();
        hold.asked();
        hold.answered();
        let (sender, ended) = mpsc::channel();
        let other = Arc::clone(&hold);
        thread::spawn(move || {
            other.answered();
            sender.send(()).unwrap();
        });
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "nothing is under way");
        hold.asked();
        ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn a_process_is_stopped_while_nothing_is_asked() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let is = |wanted: char| {
            let start = Instant::now();
            loop {
                let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
                let state = stat.rsplit(") ").next().unwrap().chars().next().unwrap();
                if (state == 'T') == (wanted == 'T') {
                    return;
                }
                assert!(start.elapsed() < Duration::from_secs(60), "{state}, not {wanted}");
                thread::yield_now();
            }
        };
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
