//! The sessions that a stateful session-reflector remembers.

use crate::stamp::rate::client_of;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

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
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

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
        assert_eq!((sessions.len(), all(&mut sessions, 200)), (MOST_SESSIONS, 0));
        let later = NOW + 2 * SESSION_IDLE_NS;
        assert_eq!(sessions.count((client(200, 5000), 0), later), Some(0));
        assert_eq!((sessions.len(), sessions.of_client.len()), (1, 1));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let mut sessions = Sessions::default();
        let of = |host: u128| SocketAddr::new(IpAddr::V6((0x2001_0db8 << 96 | host).into()), 5000);
        assert_eq!(
            (0..1000).filter(|host| sessions.count((of(*host), 0), NOW).is_some()).count(),
            MOST_OF_CLIENT
        );
    }
}
