//! Limits of what is sent: probes a second, and bytes in all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a wait looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);

/// What may still be sent and read.
pub(crate) struct Pace {
    gap: Duration,
    next: Instant,
    /// Bytes that may still be read.
    pub bytes_left: u64,
    interrupted: &'static AtomicBool,
}

/// The user interrupted.
pub(crate) struct Interrupted;

impl Pace {
    pub(crate) fn new(per_second: f64, bytes: u64, interrupted: &'static AtomicBool) -> Self {
        let gap = Duration::from_secs_f64(1.0 / per_second);
        Pace { gap, next: Instant::now(), bytes_left: bytes, interrupted }
    }

    /// Waits until the next probe may leave.
    pub(crate) fn probe(&mut self) -> Result<(), Interrupted> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Interrupted);
            }
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(left.min(LOOK));
        }
        // What was late is not made good: no second has more probes than it may.
        self.next = Instant::now() + self.gap;
        Ok(())
    }
}
