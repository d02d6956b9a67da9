//! A word to the user while another host says nothing.

use stacklab_model::say;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// After this time the user reads what is waited for.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// Says on standard error what is waited for, and for how long, unless this is dropped within 5 s.
pub struct WaitNotice {
    _ends: Sender<()>,
}

impl WaitNotice {
    /// What is waited for, as in `HOST to answer`, and the time limit.
    pub fn within(awaited: &str, timeout: Duration) -> Self {
        WaitNotice::until(awaited, &format!("for at most {} s", timeout.as_secs()))
    }

    /// What is waited for, and how long otherwise.
    pub fn until(awaited: &str, end: &str) -> Self {
        let text = format!("stacklab: waiting for {awaited}, {end}");
        WaitNotice::say_after(NOTICE_TIMEOUT, move || say!("{text}"))
    }

    fn say_after(after: Duration, say: impl FnOnce() + Send + 'static) -> Self {
        let (sender, ended) = mpsc::channel::<()>();
        // Without a thread nothing is said; the wait has its end all the same.
        let _ = thread::Builder::new().spawn(move || {
            if ended.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
                say();
            }
        });
        WaitNotice { _ends: sender }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_is_named_and_a_short_one_is_not() {
        let (sender, said) = mpsc::channel();
        let of_short = sender.clone();
        let short = WaitNotice::say_after(Duration::from_secs(60), move || of_short.send("short").unwrap());
        let _long = WaitNotice::say_after(Duration::from_millis(1), move || sender.send("long").unwrap());
        drop(short);
        assert_eq!(said.iter().collect::<Vec<_>>(), ["long"]);
    }
}
