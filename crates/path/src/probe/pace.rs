//! Limits: probes a second, bytes in all, and the time that a peer has.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct Pace {
    gap: Duration,
    next: Instant,
    pub bytes_left: u64,
    interrupted: &'static AtomicBool,
}

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
            sleep(left.min(POLL_INTERVAL));
        }
        // What was late is not made good: no second has more probes than it may.
        self.next = Instant::now() + self.gap;
        Ok(())
    }
}

/// A stream of which each read and write ends at the deadline at the latest, or after the longest wait: a byte now and
/// then does not hold it open.
pub(super) struct Timed {
    stream: TcpStream,
    longest: Duration,
    pub deadline: Instant,
}

impl Timed {
    /// With this much time from now on, and for each wait.
    pub(super) fn new(stream: TcpStream, longest: Duration) -> Self {
        Timed { stream, longest, deadline: Instant::now() + longest }
    }

    fn remaining_time(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left.min(self.longest))) }
    }
}

impl Read for Timed {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.remaining_time()?)?;
        self.stream.read(room)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.remaining_time()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_byte_now_and_then_does_not_hold_it_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut slow, _) = listener.accept().unwrap();
        let writer = thread::spawn(move || {
            while slow.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let limit = Duration::from_millis(200);
        let mut timed = Timed::new(stream, limit);
        let began = Instant::now();
        let mut room = vec![0; 1 << 20];
        let ended = timed.read_exact(&mut room).unwrap_err();
        assert!(matches!(ended.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{ended}");
        assert!(began.elapsed() >= limit);
        // It reads again with a new deadline.
        timed.deadline = Instant::now() + Duration::from_secs(30);
        timed.longest = Duration::from_secs(30);
        timed.read_exact(&mut room[..1]).unwrap();
        drop(timed);
        writer.join().unwrap();
    }
}
