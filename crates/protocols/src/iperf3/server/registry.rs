//! Which tests there are, and which wait for streams.

use crate::iperf3::server::ServerLimits;
use crate::iperf3::{Cookie, MAX_STREAMS, answer_to};
use stacklab_traffic::host::zone::ScopedAddr;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that have not said their cookie, or are of a test, at once; and those from one address, or network of
/// IPv6, beside those of the streams that its tests wait for.
const MAX_CONNECTIONS: usize = 512;
const MAX_CONNECTIONS_OF_NETWORK: usize = 8;
/// Tests from one address or network.
const MAX_TESTS_OF_NETWORK: usize = 8;
/// Streams at once, and those to one address or network: as many as one test has.
const MAX_STREAMS_OF_ALL: usize = 512;
const MAX_STREAMS_OF_NETWORK: usize = 2 * MAX_STREAMS as usize;
/// How long the tests have to end after the last one.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct ArrivedStream {
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
    connections: Arc<Places>,
    tests: Arc<Places>,
    streams: Arc<Places>,
    /// Streams that tests wait for.
    awaited: Arc<Places>,
    /// Tests that are over.
    pub served: AtomicU64,
    /// Connections so far: streams of a test come in the order in which they were accepted.
    pub order: AtomicU64,
    waiting: Mutex<HashMap<Cookie, Sender<ArrivedStream>>>,
    /// A greeting over UDP names no test: of each client's address, one test at a time waits for some.
    greeting: Mutex<HashMap<IpAddr, Sender<Greeted>>>,
}

/// Places of which each address, or network of IPv6, takes a part at most.
#[derive(Default)]
struct Places(Mutex<HashMap<ScopedAddr, usize>>);

impl Places {
    fn of(&self, client: &ScopedAddr) -> usize {
        lock(&self.0).get(&client.network()).copied().unwrap_or(0)
    }

    fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

/// One or several of a number of places; free again when this is dropped.
pub(super) struct Slot {
    places: Arc<Places>,
    network: ScopedAddr,
    taken: usize,
}

impl Slot {
    fn take(places: &Arc<Places>, client: &ScopedAddr, taken: usize, limits: PlaceLimits) -> Option<Self> {
        let network = client.network();
        let mut all = lock(&places.0);
        let own = all.get(&network).copied().unwrap_or(0) + taken;
        if own > limits.of_network || all.values().sum::<usize>() + taken > limits.of_all {
            return None;
        }
        all.insert(network.clone(), own);
        Some(Slot { places: Arc::clone(places), network, taken })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut all = lock(&self.places.0);
        if let Some(own) = all.get_mut(&self.network) {
            *own -= self.taken;
        }
        all.retain(|_, own| *own > 0);
    }
}

/// How many places all clients may take, and those of one address or network.
#[derive(Clone, Copy)]
struct PlaceLimits {
    of_all: usize,
    of_network: usize,
}

impl Registry {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Registry {
            limits,
            connections: Arc::default(),
            tests: Arc::default(),
            streams: Arc::default(),
            awaited: Arc::default(),
            served: AtomicU64::new(0),
            order: AtomicU64::new(0),
            waiting: Mutex::default(),
            greeting: Mutex::default(),
        }
    }

    /// A place for a connection from this address.
    pub(super) fn connection(&self, client: &ScopedAddr) -> Option<Slot> {
        let of_network = MAX_CONNECTIONS_OF_NETWORK + self.tests.of(client) + self.awaited.of(client);
        Slot::take(&self.connections, client, 1, PlaceLimits { of_all: MAX_CONNECTIONS, of_network })
    }

    /// A place for a test of this address: never all of several.
    pub(super) fn begin(&self, client: &ScopedAddr) -> Option<Slot> {
        let of_all = self.limits.clients;
        let of_network = of_all.div_ceil(2).min(MAX_TESTS_OF_NETWORK);
        Slot::take(&self.tests, client, 1, PlaceLimits { of_all, of_network })
    }

    pub(super) fn streams(&self, client: &ScopedAddr, count: usize) -> Option<Slot> {
        let limits = PlaceLimits { of_all: MAX_STREAMS_OF_ALL, of_network: MAX_STREAMS_OF_NETWORK };
        Slot::take(&self.streams, client, count, limits)
    }

    /// Lets this many further connections from this address in, which are streams that a test waits for.
    pub(super) fn admit_streams(&self, client: &ScopedAddr, count: usize) -> Option<Slot> {
        let limits = PlaceLimits { of_all: MAX_STREAMS_OF_ALL, of_network: MAX_STREAMS_OF_NETWORK };
        Slot::take(&self.awaited, client, count, limits)
    }

    /// The test of a cookie, if it waits for streams.
    pub(super) fn waiting(&self, cookie: &Cookie) -> Option<Sender<ArrivedStream>> {
        lock(&self.waiting).get(cookie).cloned()
    }

    /// From now on streams with this cookie are the caller's. `None` if another test has it.
    pub(super) fn await_streams(&self, cookie: Cookie) -> Option<Awaited<'_, Cookie, ArrivedStream>> {
        Awaited::register(&self.waiting, cookie)
    }

    /// From now on greetings from this address are the caller's. `None` if another test waits for some.
    pub(super) fn await_greetings(&self, from: IpAddr) -> Option<Awaited<'_, IpAddr, Greeted>> {
        Awaited::register(&self.greeting, from)
    }

    /// Gives a greeting to the test that waits for it. Other packets are not answered.
    pub(super) fn deliver_greeting(&self, from: SocketAddr, bytes: &[u8]) {
        if let Some(answer) = answer_to(bytes)
            && let Some(test) = lock(&self.greeting).get(&from.ip())
        {
            let _ = test.send(Greeted { from, answer });
        }
    }

    /// Waits until the last test has ended, or for some seconds.
    pub(super) fn wait_until_empty(&self) {
        let start = Instant::now();
        while !self.tests.is_empty() && start.elapsed() < END_LIMIT {
            thread::sleep(POLL_INTERVAL);
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
        self.arrivals.recv_timeout(POLL_INTERVAL).ok()
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

    fn registry(clients: usize) -> Registry {
        let limits = ServerLimits { clients, longest: Duration::from_secs(1), most_bits_per_second: 1e9 };
        Registry::new(limits)
    }

    fn ip(text: &str) -> ScopedAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_as_many_as_there_are_and_free_again() {
        let registry = registry(2);
        let first = registry.begin(&ip("192.0.2.1"));
        let _second = registry.begin(&ip("192.0.2.2")).unwrap();
        assert!(first.is_some() && registry.begin(&ip("192.0.2.3")).is_none());
        drop(first);
        assert!(registry.begin(&ip("192.0.2.3")).is_some());
        assert!(registry.streams(&ip("192.0.2.3"), MAX_STREAMS_OF_NETWORK + 1).is_none());
    }

    fn same_address(_: usize) -> ScopedAddr {
        ip("192.0.2.1")
    }

    fn same_network(place: usize) -> ScopedAddr {
        ip(&format!("2001:db8:0:1::{place:x}"))
    }

    #[test]
    fn one_address_or_ipv6_network_has_limited_places() {
        let registry = registry(32);
        // A host has as many addresses of its network of IPv6 as it likes.
        for (own, other) in [
            (same_address as fn(usize) -> ScopedAddr, "192.0.2.2"),
            (same_network as fn(usize) -> ScopedAddr, "2001:db8:0:2::1"),
        ] {
            let tests: Vec<Slot> = (0..8).map(|place| registry.begin(&own(place)).unwrap()).collect();
            assert!(registry.begin(&own(8)).is_none() && registry.begin(&ip(other)).is_some());
            drop(tests);
            let silent: Vec<Slot> = (0..8).map(|place| registry.connection(&own(place)).unwrap()).collect();
            assert!(registry.connection(&own(8)).is_none() && registry.connection(&ip(other)).is_some());
            // The streams that a test waits for come in all the same.
            let awaited = registry.admit_streams(&own(0), 3).unwrap();
            let streams: Vec<Slot> = (0..3).map(|place| registry.connection(&own(place)).unwrap()).collect();
            assert!(registry.connection(&own(9)).is_none());
            drop((awaited, silent, streams));
            let streams = registry.streams(&own(0), MAX_STREAMS_OF_NETWORK).unwrap();
            assert!(registry.streams(&own(1), 1).is_none());
            assert!(registry.streams(&ip(other), 1).is_some());
            drop(streams);
        }
        assert!(registry.tests.is_empty() && registry.connections.is_empty() && registry.streams.is_empty());
    }

    #[test]
    fn greeting_goes_to_the_test_that_awaits_its_address() {
        let registry = registry(2);
        let from: SocketAddr = "192.0.2.1:7".parse().unwrap();
        registry.deliver_greeting(from, &crate::iperf3::greeting());
        let waits = registry.await_greetings(from.ip()).unwrap();
        assert!(registry.await_greetings(from.ip()).is_none());
        assert!(waits.next().is_none(), "nobody waited when it came");
        registry.deliver_greeting(from, b"what");
        registry.deliver_greeting(from, &crate::iperf3::greeting());
        assert_eq!(waits.next().unwrap().from, from);
        drop(waits);
        assert!(registry.await_greetings(from.ip()).is_some());
    }
}
