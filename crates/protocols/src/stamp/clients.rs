//! What a session-reflector knows of its clients: how fast each sends, and the sessions of a stateful one.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Most clients whose packets are counted. A packet of a further one is not answered, until one of them is quiet.
const MOST_CLIENTS: usize = 4096;
/// So long may a client send at any rate before the limit holds, nanoseconds.
const BURST_NS: u64 = 1_000_000_000;

/// The client of an address: an IPv4 address, or an IPv6 network of 64 bits, of which one host may have many.
pub(super) fn client_of(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}

/// A limit for each client ([`client_of`]).
pub(super) struct RateLimit {
    gap_ns: u64,
    /// When each client would have sent all of its packets, had it kept the rate; nanoseconds since 1970.
    clients: HashMap<IpAddr, u64>,
}

impl RateLimit {
    /// At most this many packets per second for each client.
    pub(super) fn new(per_second: u32) -> Self {
        RateLimit { gap_ns: 1_000_000_000 / u64::from(per_second.max(1)), clients: HashMap::new() }
    }

    /// Whether a packet that arrived now, nanoseconds since 1970, is within the limit; then it counts.
    pub(super) fn admits(&mut self, peer: IpAddr, now_ns: u64) -> bool {
        let client = client_of(peer);
        if !self.clients.contains_key(&client) && self.clients.len() >= MOST_CLIENTS {
            self.clients.retain(|_, until| *until > now_ns);
            if self.clients.len() >= MOST_CLIENTS {
                return false;
            }
        }
        let until = self.clients.entry(client).or_insert(0);
        // Nobody is further ahead than that, unless the clock was set back.
        if *until > now_ns.saturating_add(BURST_NS + self.gap_ns) {
            *until = 0;
        }
        let since = (*until).max(now_ns);
        let is_within = since - now_ns <= BURST_NS;
        if is_within {
            *until = since.saturating_add(self.gap_ns);
        }
        is_within
    }
}

/// Most sessions that are remembered. A packet of a further one is not answered.
pub(super) const MOST_SESSIONS: usize = 4096;
/// Most sessions of one client ([`client_of`]): it leaves room for others.
pub(super) const MOST_OF_CLIENT: usize = 256;
/// A session that sends nothing for so long is forgotten, nanoseconds: REFWAIT of TWAMP, 900 s.
pub(super) const SESSION_IDLE_NS: u64 = 900_000_000_000;
/// How often sessions are looked through for idle ones, nanoseconds.
const SWEEP_NS: u64 = 1_000_000_000;

/// An address and port, and the number of a session of it.
type SenderId = (SocketAddr, u16);

struct ReflectedSession {
    answered: u32,
    last_ns: u64,
}

impl ReflectedSession {
    fn is_idle(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns) > SESSION_IDLE_NS
    }
}

/// How many packets of each session were answered.
#[derive(Default)]
pub(super) struct Sessions {
    all: HashMap<SenderId, ReflectedSession>,
    of_client: HashMap<IpAddr, usize>,
    /// When idle ones were last forgotten, nanoseconds since 1970.
    swept_ns: u64,
}

impl Sessions {
    /// The number of the answer to a packet that arrived now, nanoseconds since 1970: how many packets of the session
    /// were answered before. `None` if it is a session too many.
    pub(super) fn count(&mut self, key: SenderId, now_ns: u64) -> Option<u32> {
        if !self.all.contains_key(&key) {
            let client = client_of(key.0.ip());
            if !self.has_room(client) {
                self.forget_idle(now_ns);
                if !self.has_room(client) {
                    return None;
                }
            }
            *self.of_client.entry(client).or_insert(0) += 1;
        }
        let session = self.all.entry(key).or_insert(ReflectedSession { answered: 0, last_ns: now_ns });
        if session.is_idle(now_ns) {
            session.answered = 0;
        }
        let sequence = session.answered;
        (session.answered, session.last_ns) = (sequence.wrapping_add(1), now_ns);
        Some(sequence)
    }

    fn has_room(&self, client: IpAddr) -> bool {
        self.all.len() < MOST_SESSIONS && self.of_client.get(&client).is_none_or(|own| *own < MOST_OF_CLIENT)
    }

    fn forget_idle(&mut self, now_ns: u64) {
        // At the first packet too many of a second; also if the clock was set back.
        if now_ns.abs_diff(self.swept_ns) < SWEEP_NS {
            return;
        }
        self.swept_ns = now_ns;
        self.all.retain(|_, session| !session.is_idle(now_ns));
        self.of_client.clear();
        for (peer, _) in self.all.keys() {
            *self.of_client.entry(client_of(peer.ip())).or_insert(0) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_536_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn answered(limit: &mut RateLimit, peer: &str, times: impl Iterator<Item = u64>) -> usize {
        let peer = peer.parse().unwrap();
        times.filter(|now| limit.admits(peer, *now)).count()
    }

    #[test]
    fn a_client_is_answered_at_the_rate_and_others_are_not_held_up() {
        let mut limit = RateLimit::new(100);
        let twice_as_many = |from: u64| (0..2_000).map(move |packet| from + packet * SECOND / 200);
        // Ten seconds, and the burst.
        assert!((1_095..=1_105).contains(&answered(&mut limit, "192.0.2.1", twice_as_many(NOW))));
        assert_eq!(answered(&mut limit, "192.0.2.2", (0..100).map(|_| NOW + 10 * SECOND)), 100);
        let kept = (0..5_000).map(|packet| NOW + 20 * SECOND + packet * SECOND / 100);
        assert_eq!(answered(&mut limit, "192.0.2.1", kept), 5_000);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let mut limit = RateLimit::new(100);
        let many =
            (0..1_000_u128).filter(|host| limit.admits(IpAddr::V6((0x2001_0db8 << 96 | *host).into()), NOW));
        assert_eq!(many.count(), 101);
        assert!(limit.admits("2001:db8:0:1::1".parse().unwrap(), NOW));
    }

    #[test]
    fn a_flood_of_clients_takes_bounded_memory_and_a_clock_that_is_set_back_silences_nobody() {
        let mut limit = RateLimit::new(10);
        let clients = (0..10_000_u32).filter(|host| limit.admits(IpAddr::V4((*host).into()), NOW));
        assert_eq!(clients.count(), MOST_CLIENTS);
        assert_eq!(limit.clients.len(), MOST_CLIENTS);
        assert!(limit.admits("192.0.2.1".parse().unwrap(), NOW + SECOND));
        assert_eq!(limit.clients.len(), 1);
        assert!(limit.admits("192.0.2.1".parse().unwrap(), NOW - 3_600 * SECOND));
    }

    fn client(number: usize, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, number as u8], port))
    }

    #[test]
    fn a_flood_of_sessions_takes_bounded_memory_and_leaves_room_to_other_clients() {
        let mut sessions = Sessions::default();
        let all = |sessions: &mut Sessions, number: usize| {
            (0..1000)
                .filter(|session| sessions.count((client(number, 5000), *session), NOW).is_some())
                .count()
        };
        assert_eq!(all(&mut sessions, 1), MOST_OF_CLIENT);
        assert_eq!(sessions.count((client(1, 5001), 0), NOW), None, "another port is the same client");
        assert_eq!(sessions.count((client(1, 5000), 0), NOW), Some(1), "what it has goes on");
        for number in 2..=MOST_SESSIONS / MOST_OF_CLIENT {
            assert_eq!(all(&mut sessions, number), MOST_OF_CLIENT);
        }
        assert_eq!((sessions.all.len(), all(&mut sessions, 200)), (MOST_SESSIONS, 0));
        let later = NOW + 2 * SESSION_IDLE_NS;
        assert_eq!(sessions.count((client(200, 5000), 0), later), Some(0));
        assert_eq!((sessions.all.len(), sessions.of_client.len()), (1, 1));
    }

    #[test]
    fn sessions_of_one_ipv6_network_are_of_one_client() {
        let mut sessions = Sessions::default();
        let of = |host: u128| SocketAddr::new(IpAddr::V6((0x2001_0db8 << 96 | host).into()), 5000);
        assert_eq!(
            (0..1000).filter(|host| sessions.count((of(*host), 0), NOW).is_some()).count(),
            MOST_OF_CLIENT
        );
    }
}
