//! Which tests there are, and which wait for streams.

use crate::iperf3::server::ServerLimits;
use crate::iperf3::{Cookie, answer_to};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that have not said their cookie, or are of a test, at once.
const MOST_CONNECTIONS: usize = 512;
const MOST_STREAMS: usize = 256;
/// How long the tests have to end after the last one.
const END_LIMIT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct Arrived {
    pub stream: TcpStream,
    /// Streams of a test come in this order.
    pub order: u64,
}

/// A stream of UDP: where it is from, and the answer to its greeting.
pub(super) struct Greeted {
    pub from: SocketAddr,
    pub answer: [u8; 4],
}

pub(super) struct Registry {
    pub limits: ServerLimits,
    connections: Arc<AtomicUsize>,
    tests: Arc<AtomicUsize>,
    streams: Arc<AtomicUsize>,
    /// Tests that are over.
    pub served: AtomicU64,
    /// Connections so far: streams of a test come in the order in which they were accepted.
    pub order: AtomicU64,
    waiting: Mutex<HashMap<Cookie, Sender<Arrived>>>,
    /// A greeting over UDP names no test: of each client's address, one test at a time waits for some.
    greeting: Mutex<HashMap<IpAddr, Sender<Greeted>>>,
}

/// One or several of a number of places; free again when this is dropped.
pub(super) struct Slot {
    count: Arc<AtomicUsize>,
    taken: usize,
}

impl Slot {
    fn take(count: &Arc<AtomicUsize>, taken: usize, most: usize) -> Option<Self> {
        let fits = |now: usize| (now + taken <= most).then_some(now + taken);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).ok()?;
        Some(Slot { count: Arc::clone(count), taken })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.count.fetch_sub(self.taken, Ordering::SeqCst);
    }
}

impl Registry {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Registry {
            limits,
            connections: Arc::default(),
            tests: Arc::default(),
            streams: Arc::default(),
            served: AtomicU64::new(0),
            order: AtomicU64::new(0),
            waiting: Mutex::default(),
            greeting: Mutex::default(),
        }
    }

    pub(super) fn connection(&self) -> Option<Slot> {
        Slot::take(&self.connections, 1, MOST_CONNECTIONS)
    }

    pub(super) fn begin(&self) -> Option<Slot> {
        Slot::take(&self.tests, 1, self.limits.clients)
    }

    pub(super) fn streams(&self, count: usize) -> Option<Slot> {
        Slot::take(&self.streams, count, MOST_STREAMS)
    }

    /// The test of a cookie, if it waits for streams.
    pub(super) fn waiting(&self, cookie: &Cookie) -> Option<Sender<Arrived>> {
        lock(&self.waiting).get(cookie).cloned()
    }

    /// From now on streams with this cookie are the caller's. `None` if another test has it.
    pub(super) fn await_streams(&self, cookie: Cookie) -> Option<Awaited<'_, Cookie, Arrived>> {
        Awaited::register(&self.waiting, cookie)
    }

    /// From now on greetings from this address are the caller's. `None` if another test waits for some.
    pub(super) fn await_greetings(&self, from: IpAddr) -> Option<Awaited<'_, IpAddr, Greeted>> {
        Awaited::register(&self.greeting, from)
    }

    /// Gives a greeting to the test that waits for it. Other packets are not answered.
    pub(super) fn greeted(&self, from: SocketAddr, bytes: &[u8]) {
        if let Some(answer) = answer_to(bytes)
            && let Some(test) = lock(&self.greeting).get(&from.ip())
        {
            let _ = test.send(Greeted { from, answer });
        }
    }

    /// Waits until the last test has ended, or for some seconds.
    pub(super) fn wait_until_empty(&self) {
        let start = Instant::now();
        while self.tests.load(Ordering::SeqCst) > 0 && start.elapsed() < END_LIMIT {
            thread::sleep(LOOK);
        }
    }
}

/// What arrives for a test; registered until this is dropped.
pub(super) struct Awaited<'a, K: std::hash::Hash + Eq + Copy, T> {
    place: &'a Mutex<HashMap<K, Sender<T>>>,
    key: K,
    arrivals: Receiver<T>,
}

impl<'a, K: std::hash::Hash + Eq + Copy, T> Awaited<'a, K, T> {
    fn register(place: &'a Mutex<HashMap<K, Sender<T>>>, key: K) -> Option<Self> {
        let mut all = lock(place);
        if all.contains_key(&key) {
            return None;
        }
        let (sender, arrivals) = channel();
        all.insert(key, sender);
        Some(Awaited { place, key, arrivals })
    }

    pub(super) fn next(&self) -> Option<T> {
        self.arrivals.recv_timeout(LOOK).ok()
    }
}

impl<K: std::hash::Hash + Eq + Copy, T> Drop for Awaited<'_, K, T> {
    fn drop(&mut self) {
        lock(self.place).remove(&self.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_as_many_as_there_are_and_free_again() {
        let limits = ServerLimits { clients: 2, longest: Duration::from_secs(1), most_bits_per_second: 1e9 };
        let registry = Registry::new(limits);
        let first = registry.begin();
        let _second = registry.begin().unwrap();
        assert!(first.is_some() && registry.begin().is_none());
        drop(first);
        assert!(registry.begin().is_some());
        assert!(registry.streams(MOST_STREAMS + 1).is_none());
    }

    #[test]
    fn a_greeting_is_the_test_s_that_waits_for_one_from_this_address() {
        let limits = ServerLimits { clients: 2, longest: Duration::from_secs(1), most_bits_per_second: 1e9 };
        let registry = Registry::new(limits);
        let from: SocketAddr = "192.0.2.1:7".parse().unwrap();
        registry.greeted(from, &crate::iperf3::greeting());
        let waits = registry.await_greetings(from.ip()).unwrap();
        assert!(registry.await_greetings(from.ip()).is_none());
        assert!(waits.next().is_none(), "nobody waited when it came");
        registry.greeted(from, b"what");
        registry.greeted(from, &crate::iperf3::greeting());
        assert_eq!(waits.next().unwrap().from, from);
        drop(waits);
        assert!(registry.await_greetings(from.ip()).is_some());
    }
}
