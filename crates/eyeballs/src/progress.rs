//! What is said on standard error while a client is measured: a line at least every five seconds.

use stacklab_model::say;
use std::time::{Duration, Instant};

const LINE_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct RunProgress {
    runs: usize,
    done: usize,
    label: String,
    next: Instant,
}

impl RunProgress {
    pub(crate) fn new(runs: usize) -> Self {
        RunProgress { runs, done: 0, label: String::new(), next: Instant::now() + LINE_INTERVAL }
    }

    /// Begins a run.
    pub(crate) fn begin(&mut self, label: &str) {
        self.done += 1;
        label.clone_into(&mut self.label);
        self.show();
    }

    /// Says which run it is, if it is time for a line.
    pub(crate) fn show(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        say!("stacklab: run {} of {}: {}", self.done, self.runs, self.label);
        self.next = Instant::now() + LINE_INTERVAL;
    }
}
