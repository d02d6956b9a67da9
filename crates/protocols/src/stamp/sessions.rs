//! The sessions of a stateful session-reflector, which counts the packets of each.

use stacklab_model::network_of;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

/// Sessions that are remembered. For further ones the oldest sessions of one packet give way, which may be forged, then
/// those that send no longer.
const MAX_SESSIONS: usize = 4096;
/// Sessions of one client ([`network_of`]): of more, its own give way.
const MAX_OF_CLIENT: usize = 256;
/// A session that sends nothing for so long begins again, nanoseconds: REFWAIT of TWAMP, 900 s.
pub(super) const SESSION_IDLE_NS: u64 = 900_000_000_000;
/// A session of several packets, the last one less than this ago, does not give way, nanoseconds.
const IN_USE_NS: u64 = 10_000_000_000;

/// An address and port, and the number of a session of it.
type SenderId = (SocketAddr, u16);

#[derive(Clone, Copy)]
struct ReflectedSession {
    answered: u32,
    last_ns: u64,
}

impl ReflectedSession {
    fn is_idle(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns) > SESSION_IDLE_NS
    }

    fn is_in_use(&self, now_ns: u64) -> bool {
        self.answered > 1 && now_ns.abs_diff(self.last_ns) < IN_USE_NS
    }

    /// Its place in the order in which sessions give way.
    fn rank(&self) -> Rank {
        (self.answered > 1, self.last_ns)
    }
}

/// Whether a session has more than one packet, and when the last one came.
type Rank = (bool, u64);
type Ranked = BTreeSet<(Rank, SenderId)>;

/// How many packets of each session were answered.
#[derive(Default)]
pub(super) struct Sessions {
    all: HashMap<SenderId, ReflectedSession>,
    by_rank: Ranked,
    of_client: HashMap<IpAddr, Ranked>,
}

impl Sessions {
    /// The number of the answer to a packet that arrived now, nanoseconds since 1970: how many packets of the session
    /// were answered before. `None` if it is a session too many, which is to be answered without a count.
    pub(super) fn count(&mut self, sender: SenderId, now_ns: u64) -> Option<u32> {
        let known = self.forget(&sender);
        if known.is_none() && !self.make_room(network_of(sender.0.ip()), now_ns) {
            return None;
        }
        let answered = known.filter(|session| !session.is_idle(now_ns)).map_or(0, |session| session.answered);
        self.remember(sender, ReflectedSession { answered: answered.wrapping_add(1), last_ns: now_ns });
        Some(answered)
    }

    /// Removes a session if another one of this client has no place. Returns whether there is room now:
    /// sessions in use stay.
    fn make_room(&mut self, client: IpAddr, now_ns: u64) -> bool {
        let own = self.of_client.get(&client).filter(|own| own.len() >= MAX_OF_CLIENT);
        let all = (self.all.len() >= MAX_SESSIONS).then_some(&self.by_rank);
        let Some((_, first)) = own.or(all).and_then(|full| full.first().copied()) else { return true };
        if self.all[&first].is_in_use(now_ns) {
            return false;
        }
        self.forget(&first);
        true
    }

    fn remember(&mut self, sender: SenderId, session: ReflectedSession) {
        self.all.insert(sender, session);
        self.by_rank.insert((session.rank(), sender));
        self.of_client.entry(network_of(sender.0.ip())).or_default().insert((session.rank(), sender));
    }

    fn forget(&mut self, sender: &SenderId) -> Option<ReflectedSession> {
        let session = self.all.remove(sender)?;
        let ranked = (session.rank(), *sender);
        self.by_rank.remove(&ranked);
        let client = network_of(sender.0.ip());
        if let Some(own) = self.of_client.get_mut(&client) {
            own.remove(&ranked);
            if own.is_empty() {
                self.of_client.remove(&client);
            }
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_536_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn ipv4(number: u32) -> SocketAddr {
        SocketAddr::new(IpAddr::V4((0xc000_0200 + number).into()), 5000)
    }

    /// Of another network each.
    fn ipv6(number: u32) -> SocketAddr {
        SocketAddr::new(IpAddr::V6((0x2001_0db8 << 96 | u128::from(number) << 64 | 1).into()), 5000)
    }

    fn of_network(number: u32) -> SocketAddr {
        SocketAddr::new(IpAddr::V6((0x2001_0db8 << 96 | u128::from(number)).into()), 5000)
    }

    fn of_address(number: u32) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], number as u16))
    }

    #[test]
    fn flood_of_forged_sessions_keeps_nobody_out() {
        for forged in [ipv4, ipv6] {
            let mut sessions = Sessions::default();
            let real = (ipv4(900_000), 7);
            assert_eq!([0, 1].map(|_| sessions.count(real, NOW)), [Some(0), Some(1)]);
            for number in 0..3 * MAX_SESSIONS as u32 {
                assert_eq!(sessions.count((forged(number), 1), NOW + u64::from(number)), Some(0));
            }
            assert_eq!((sessions.all.len(), sessions.by_rank.len()), (MAX_SESSIONS, MAX_SESSIONS));
            assert_eq!(sessions.count(real, NOW + SECOND), Some(2));
            let newcomer = (ipv4(900_001), 0);
            assert_eq!([1, 2].map(|n| sessions.count(newcomer, NOW + n * SECOND)), [Some(0), Some(1)]);
            let kept: usize = sessions.of_client.values().map(BTreeSet::len).sum();
            assert_eq!(kept, MAX_SESSIONS);
        }
    }

    #[test]
    fn sessions_of_one_client_give_way_to_its_own() {
        for sender in [of_network, of_address] {
            let mut sessions = Sessions::default();
            let other = (ipv4(900_000), 0);
            sessions.count(other, NOW - SECOND);
            assert!((0..1000).all(|number| sessions.count((sender(number), 0), NOW) == Some(0)));
            assert_eq!(sessions.all.len(), MAX_OF_CLIENT + 1);
            assert_eq!(sessions.count(other, NOW), Some(1), "another client's stays");
        }
    }

    #[test]
    fn sessions_in_use_stay_and_newcomers_are_not_counted() {
        let mut sessions = Sessions::default();
        for number in 0..MAX_SESSIONS as u32 {
            assert_eq!([0, 1].map(|_| sessions.count((ipv4(number), 1), NOW)), [Some(0), Some(1)]);
        }
        let newcomer = (ipv4(900_000), 0);
        assert_eq!(sessions.count(newcomer, NOW + SECOND), None);
        assert_eq!(sessions.count((ipv4(0), 1), NOW + 9 * SECOND), Some(2));
        assert_eq!(sessions.count(newcomer, NOW + 11 * SECOND), Some(0));
        assert_eq!(sessions.count((ipv4(0), 1), NOW + 12 * SECOND), Some(3));
    }
}
