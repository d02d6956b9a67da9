//! How fast each client of a session-reflector sends.

use stacklab_model::network_of;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// Clients whose packets are counted. Of more, those that are furthest from their limit give way: forged addresses must
/// not keep others out.
const MAX_CLIENTS: usize = 4096;
/// So long may a client send at any rate before the limit holds, nanoseconds.
const BURST_NS: u64 = 1_000_000_000;

/// A limit for each client ([`network_of`]).
pub(super) struct RateLimit {
    gap_ns: u64,
    /// When each client would have sent all of its packets, had it kept the rate; nanoseconds since 1970.
    clients: HashMap<IpAddr, u64>,
    /// The same times in their order.
    by_time: BTreeSet<(u64, IpAddr)>,
}

impl RateLimit {
    /// At most this many packets per second for each client.
    pub(super) fn new(per_second: u32) -> Self {
        let gap_ns = 1_000_000_000 / u64::from(per_second.max(1));
        RateLimit { gap_ns, clients: HashMap::new(), by_time: BTreeSet::new() }
    }

    /// Whether a packet that arrived now, nanoseconds since 1970, is within the limit; then it counts.
    pub(super) fn admits(&mut self, peer: IpAddr, now_ns: u64) -> bool {
        let client = network_of(peer);
        let known = self.clients.get(&client).copied();
        // Nobody is further ahead than that, unless the clock was set back.
        let furthest = now_ns.saturating_add(BURST_NS + self.gap_ns);
        let since = known.filter(|until| *until <= furthest).unwrap_or(0).max(now_ns);
        if since - now_ns > BURST_NS {
            return false;
        }
        if let Some(until) = known {
            self.by_time.remove(&(until, client));
        } else if self.clients.len() >= MAX_CLIENTS
            && let Some((_, furthest_from_limit)) = self.by_time.pop_first()
        {
            self.clients.remove(&furthest_from_limit);
        }
        let until = since.saturating_add(self.gap_ns);
        self.clients.insert(client, until);
        self.by_time.insert((until, client));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_536_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn count_answers(limit: &mut RateLimit, peer: &str, times: impl Iterator<Item = u64>) -> usize {
        let peer = peer.parse().unwrap();
        times.filter(|now| limit.admits(peer, *now)).count()
    }

    #[test]
    fn rate_limited_client_does_not_hold_up_others() {
        let mut limit = RateLimit::new(100);
        let twice_as_many = (0..2_000).map(|packet| NOW + packet * SECOND / 200);
        // Ten seconds, and the burst.
        assert!((1_095..=1_105).contains(&count_answers(&mut limit, "192.0.2.1", twice_as_many)));
        assert_eq!(count_answers(&mut limit, "192.0.2.2", (0..100).map(|_| NOW + 10 * SECOND)), 100);
        let kept = (0..5_000).map(|packet| NOW + 20 * SECOND + packet * SECOND / 100);
        assert_eq!(count_answers(&mut limit, "192.0.2.1", kept), 5_000);
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
    fn flood_of_clients_is_bounded_and_silences_nobody() {
        let mut limit = RateLimit::new(1);
        let fast = "192.0.2.1";
        assert_eq!(count_answers(&mut limit, fast, [NOW; 5].into_iter()), 2);
        let clients = (0..10_000_u32).filter(|host| limit.admits(IpAddr::V4((*host).into()), NOW));
        assert_eq!(clients.count(), 10_000);
        assert_eq!((limit.clients.len(), limit.by_time.len()), (MAX_CLIENTS, MAX_CLIENTS));
        assert_eq!(
            count_answers(&mut limit, fast, [NOW; 5].into_iter()),
            0,
            "who has reached the limit does not give way"
        );
        assert!(limit.admits(fast.parse().unwrap(), NOW - 3_600 * SECOND));
        assert_eq!((limit.clients.len(), limit.by_time.len()), (MAX_CLIENTS, MAX_CLIENTS));
    }
}
