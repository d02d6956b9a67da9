//! Requests to a guest in virtual time, which must repeat: a line over a device interrupts the guest at a time that
//! depends on the machine outside. Instead the guest takes requests when it has none under way, all of those that were
//! made together in one batch, and stands still until there are some.

use crate::inside::testbeds::REQUESTS;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The end of a batch. Lines of JSON have no such character.
const END: u8 = 4;
/// The guest's time between the last answer and the next request's work: what is still on its way arrives.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Batches {
    pipe: File,
    batch: Vec<u8>,
}

impl Batches {
    /// Makes the link and the pipe by which a guest that will be started in this folder takes requests.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let link = folder.join(REQUESTS);
        let pipe = link.with_added_extension("pipe");
        mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR)?;
        symlink(&pipe, &link)?;
        // With both ends here, neither end waits for the other one to be opened.
        Ok(Batches { pipe: OpenOptions::new().read(true).write(true).open(&pipe)?, batch: Vec::new() })
    }
}

impl Write for Batches {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.batch.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.batch.is_empty() {
            self.batch.push(END);
            self.pipe.write_all(&std::mem::take(&mut self.batch))?;
        }
        Ok(())
    }
}

/// How many requests are under way in the guest. Each has one answer.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    count: Mutex<usize>,
    none: Condvar,
}

impl UnderWay {
    pub(crate) fn count_request(&self) {
        *self.lock() += 1;
    }

    pub(crate) fn count_answer(&self) {
        let mut count = self.lock();
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.none.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Taken<F> {
    under_way: Arc<UnderWay>,
    next: F,
    part: VecDeque<u8>,
    ends: bool,
}

impl<F: FnMut() -> io::Result<Vec<u8>>> Taken<F> {
    /// Batches whose parts come from `next`, each once all requests of the one before are answered.
    pub(crate) fn new(under_way: Arc<UnderWay>, next: F) -> Self {
        Taken { under_way, next, part: VecDeque::new(), ends: true }
    }
}

impl<F: FnMut() -> io::Result<Vec<u8>>> Read for Taken<F> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            if self.ends {
                drop(self.under_way.none.wait_while(self.under_way.lock(), |count| *count > 0));
                thread::sleep(PAUSE);
            }
            let mut part = (self.next)()?;
            self.ends = part.pop_if(|last| *last == END).is_some();
            self.part = part.into();
        }
        self.part.read(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn what_is_flushed_is_one_batch() {
        let folder = tempfile::tempdir().unwrap();
        let mut batches = Batches::create(folder.path()).unwrap();
        let mut pipe = File::open(folder.path().join("requests.pipe")).unwrap();
        batches.flush().unwrap();
        batches.write_all(b"0 one\n").unwrap();
        batches.write_all(b"1 two\n").unwrap();
        batches.flush().unwrap();
        batches.flush().unwrap();
        batches.write_all(b"2 three\n").unwrap();
        batches.flush().unwrap();
        let mut read = [0; 22];
        pipe.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"0 one\n1 two\n\x042 three\n\x04");
    }

    #[test]
    fn takes_a_batch_once_the_last_is_answered() {
        let under_way = Arc::new(UnderWay::default());
        let mut parts: VecDeque<&[u8]> = [&b"0 one\n1 t"[..], b"wo\n", b"\x04", b"2 three\n\x04"].into();
        let (sender, taken) = mpsc::channel();
        let mut read = Taken::new(Arc::clone(&under_way), move || {
            let part = parts.pop_front().ok_or(io::ErrorKind::UnexpectedEof)?;
            sender.send(part.to_vec()).unwrap();
            Ok(part.to_vec())
        });
        let mut lines = [0; 12];
        read.read_exact(&mut lines).unwrap();
        assert_eq!(&lines, b"0 one\n1 two\n");
        under_way.count_request();
        under_way.count_request();
        let rest = thread::spawn(move || {
            let mut line = [0; 8];
            read.read_exact(&mut line).map(|()| line)
        });
        under_way.count_answer();
        // The empty rest of the first batch is taken, nothing else.
        for _ in 0..3 {
            taken.recv_timeout(Duration::from_secs(30)).expect("a part of the first batch");
        }
        assert!(taken.recv_timeout(Duration::from_millis(50)).is_err());
        under_way.count_answer();
        assert_eq!(&rest.join().unwrap().unwrap(), b"2 three\n");
        assert_eq!(taken.try_iter().count(), 1);
    }
}
