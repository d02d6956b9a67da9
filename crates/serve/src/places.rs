//! The connections that are served at once. Strangers have no token and can open any number of them: so connections on
//! which nobody has shown the token give way to newer ones, and each client has few.

use stacklab_model::network_of;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Connections at once, and those of one client: an IPv4 address, or a /64 of IPv6. Browsers have six to a server.
const MAX_CONNECTIONS: usize = 256;
const MAX_OF_CLIENT: usize = 32;

/// All places that are taken, the oldest first.
#[derive(Default)]
pub(super) struct Places(Mutex<Vec<Arc<ConnectionPlace>>>);

/// The place of a connection.
pub(super) struct ConnectionPlace {
    client: IpAddr,
    has_shown_token: AtomicBool,
    end: Notify,
}

impl ConnectionPlace {
    /// From now on it gives way to no other connection.
    pub(super) fn keep(&self) {
        self.has_shown_token.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection must give way to another one.
    pub(super) async fn wait_to_give_way(&self) {
        self.end.notified().await;
    }
}

/// A place until this is dropped.
pub(super) struct TakenPlace {
    places: Arc<Places>,
    pub(super) place: Arc<ConnectionPlace>,
}

impl Places {
    /// Takes a place for a connection from this address; the oldest connection without the token gives way if there is
    /// no other place. `None` if none is free.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<TakenPlace> {
        let client = network_of(peer);
        let mut taken = self.lock();
        let own = taken.iter().filter(|place| place.client == client).count();
        if own >= MAX_OF_CLIENT {
            make_room(&mut taken, |place| place.client == client)?;
        } else if taken.len() >= MAX_CONNECTIONS {
            make_room(&mut taken, |_| true)?;
        }
        let place =
            Arc::new(ConnectionPlace { client, has_shown_token: AtomicBool::new(false), end: Notify::new() });
        taken.push(Arc::clone(&place));
        Some(TakenPlace { places: Arc::clone(self), place })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ConnectionPlace>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the oldest of these connections on which nobody has shown the token; `None` if there is none.
fn make_room(
    taken: &mut Vec<Arc<ConnectionPlace>>,
    is_meant: impl Fn(&ConnectionPlace) -> bool,
) -> Option<()> {
    let oldest =
        taken.iter().position(|place| is_meant(place) && !place.has_shown_token.load(Ordering::Relaxed))?;
    taken.remove(oldest).end.notify_one();
    Some(())
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.places.lock().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn ipv6(network: u32, host: u32) -> IpAddr {
        let bits = 0x2001_0db8 << 96 | u128::from(network) << 64 | u128::from(host);
        IpAddr::V6(Ipv6Addr::from_bits(bits))
    }

    fn ipv4(network: u32, _: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + network).into())
    }

    fn is_waiting(taken: &TakenPlace) -> bool {
        taken.places.lock().iter().any(|place| Arc::ptr_eq(place, &taken.place))
    }

    #[test]
    fn one_client_has_few_places_and_its_oldest_gives_way() {
        for address in [ipv4, ipv6] {
            let places = Arc::new(Places::default());
            let other = places.take(address(2, 1)).unwrap();
            let own: Vec<TakenPlace> =
                (0..MAX_OF_CLIENT as u32).map(|host| places.take(address(1, host)).unwrap()).collect();
            own[0].place.keep();
            let next = places.take(address(1, 900)).unwrap();
            assert_eq!(
                [&own[0], &own[1], &own[2], &other, &next].map(is_waiting),
                [true, false, true, true, true]
            );
            own.iter().chain([&next]).for_each(|taken| taken.place.keep());
            assert!(places.take(address(1, 901)).is_none(), "all have shown the token");
            assert!(places.take(address(3, 0)).is_some());
            drop(own);
            assert!(places.take(address(1, 901)).is_some());
        }
        assert_eq!(network_of("::ffff:192.0.2.1".parse().unwrap()), IpAddr::from([192, 0, 2, 1]));
    }

    #[test]
    fn strangers_give_way_and_known_clients_stay() {
        let places = Arc::new(Places::default());
        let owner = places.take(ipv4(0, 0)).unwrap();
        owner.place.keep();
        let strangers: Vec<TakenPlace> =
            (1..1000).map(|network| places.take(ipv6(network, 0)).unwrap()).collect();
        assert_eq!(places.lock().len(), MAX_CONNECTIONS);
        assert!(is_waiting(&owner) && !is_waiting(&strangers[0]) && is_waiting(&strangers[998]));
        drop((owner, strangers));
        assert!(places.lock().is_empty());
    }
}
