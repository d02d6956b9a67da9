//! The lifetime of neighbour entries: a network's ends forget each other's link-layer address again and again in
//! trials, and then ask for it, by ARP and by neighbour discovery.

use futures_util::TryStreamExt;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use stacklab_testbed::kernel::netlink::{Netlink, index};
use stacklab_testbed::{Attempt, Fault, INTERFACE};
use std::net::IpAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Both ends' entries, and the thread that removes them during a trial. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Neighbours {
    lifetime: Duration,
    ends: Arc<Mutex<[Entries; 2]>>,
    forgetting: Option<Forgetting>,
}

/// The thread, and what ends it when it is dropped.
type Forgetting = (Sender<()>, JoinHandle<Result<(), Fault>>);

#[derive(Debug)]
pub(super) struct Entries {
    netlink: Netlink,
    interface: u32,
    peer: [IpAddr; 2],
}

impl Neighbours {
    /// The entries of both ends, which stay until a trial begins.
    pub(super) fn new(lifetime: Duration, ends: [Entries; 2]) -> Self {
        Neighbours { lifetime, ends: Arc::new(Mutex::new(ends)), forgetting: None }
    }

    /// Removes the entries, and again after each lifetime.
    pub(super) fn begin(&mut self) -> Result<(), Fault> {
        let (stop, stopped) = mpsc::channel::<()>();
        let (lifetime, ends) = (self.lifetime, self.ends.clone());
        let forget = move || {
            let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                ends.iter().try_for_each(Entries::forget)?;
                if stopped.recv_timeout(lifetime) != Err(RecvTimeoutError::Timeout) {
                    return Ok(());
                }
            }
        };
        let thread = thread::Builder::new().name("neighbours".to_owned()).spawn(forget);
        self.forgetting = Some((stop, thread.attempt("start removing neighbour entries")?));
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Fault> {
        let Some((stop, thread)) = self.forgetting.take() else { return Ok(()) };
        drop(stop);
        thread.join().map_err(|_| "its thread has panicked").attempt("remove neighbour entries")?
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        // Nobody is left to report an error to.
        let _ = self.end();
    }
}

impl Entries {
    /// A host's entries of these addresses. Call it in its network namespace.
    pub(super) fn open(peer: [IpAddr; 2]) -> Result<Self, Fault> {
        let netlink = Netlink::open()?;
        Ok(Entries { netlink, interface: index(INTERFACE)?, peer })
    }

    /// Removes them. One whose address the host is asking for stays, and the packets that wait for it.
    fn forget(&self) -> Result<(), Fault> {
        self.netlink.run(async |netlink| {
            let mut all = netlink.neighbours().get().execute();
            while let Some(entry) = all.try_next().await.attempt("list the neighbour entries")? {
                if self.is_known(&entry) {
                    let removed = netlink.neighbours().del(entry).execute().await;
                    removed.attempt(format!("remove a neighbour entry on {INTERFACE}"))?;
                }
            }
            Ok(())
        })
    }

    fn is_known(&self, entry: &NeighbourMessage) -> bool {
        use NeighbourState::{Delay, Permanent, Probe, Reachable, Stale};
        let is_of_peer = entry.attributes.iter().any(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                self.peer.contains(&(*address).into())
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                self.peer.contains(&(*address).into())
            }
            _ => false,
        });
        entry.header.ifindex == self.interface
            && is_of_peer
            && matches!(entry.header.state, Reachable | Stale | Delay | Probe | Permanent)
    }
}
