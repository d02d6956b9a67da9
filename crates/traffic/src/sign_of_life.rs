//! A sign of life while a step takes long: nothing is silent for longer than five seconds.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long nothing is said at the most.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// What is being done, since when, and when something was last said.
struct OngoingWork {
    what: String,
    began: Instant,
    said: Instant,
}

/// A thread that says what is being done, and for how long, when nothing else was said for five seconds. It wakes only
/// then: it must not disturb what is measured.
pub struct SignOfLife {
    work: Arc<Mutex<OngoingWork>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SignOfLife {
    /// `say` is given what is done, and the seconds since its beginning.
    pub fn new(say: impl Fn(&str, u64) + Send + 'static) -> Self {
        let now = Instant::now();
        let work = Arc::new(Mutex::new(OngoingWork { what: String::new(), began: now, said: now }));
        let (end, ended) = channel();
        let watched = Arc::clone(&work);
        // Without a thread nothing is said, and the step is done all the same.
        let thread = Builder::new().spawn(move || watch(&watched, &ended, MAX_SILENCE, say)).ok();
        SignOfLife { work, end: Some(end), thread }
    }

    /// Something else begins, and was said.
    pub fn begin(&self, what: String) {
        let now = Instant::now();
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) =
            OngoingWork { what, began: now, said: now };
    }

    /// Something else begins, of which nothing was said.
    pub fn go_on(&self, what: String) {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        (work.what, work.began) = (what, Instant::now());
    }
}

fn watch(work: &Mutex<OngoingWork>, ended: &Receiver<()>, most: Duration, say: impl Fn(&str, u64)) {
    let mut wait = most;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = work.said.elapsed();
        if silent >= most {
            if !work.what.is_empty() {
                say(&work.what, work.began.elapsed().as_secs());
            }
            work.said = Instant::now();
        }
        wait = most.saturating_sub(work.said.elapsed());
    }
}

impl Drop for SignOfLife {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_work_is_mentioned() {
        let now = Instant::now();
        let work = Mutex::new(OngoingWork { what: "short".to_owned(), began: now, said: now });
        let said = Mutex::new(Vec::new());
        let (end, ended) = channel();
        std::thread::scope(|scope| {
            let watched = &work;
            let notes = &said;
            scope.spawn(move || {
                watch(watched, &ended, Duration::from_millis(500), |what, _| {
                    notes.lock().unwrap().push(what.to_owned());
                });
            });
            std::thread::sleep(Duration::from_millis(50));
            let now = Instant::now();
            *work.lock().unwrap() = OngoingWork { what: "long".to_owned(), began: now, said: now };
            std::thread::sleep(Duration::from_millis(1300));
            drop(end);
        });
        let said = said.into_inner().unwrap();
        assert!(!said.is_empty() && said.iter().all(|what| what == "long"), "{said:?}");
    }
}
