//! What waits to leave by an end of the link: the shaper of a link with a rate, a queue of so many packets, or nothing.

use crate::error::{Attempt, Fault};
use crate::kernel::netlink::{interface, with_netlink};
use crate::kernel::tc::htb::{self, in_bursts};
use crate::kernel::tc::netem::Impairment;
use crate::kernel::tc::request::{create, remove_root};
use crate::kernel::tc::tbf::Bucket;
use rtnetlink::packet_route::RouteNetlinkMessage::NewQueueDiscipline;
use rtnetlink::packet_route::tc::TcHandle;

/// The shaper's handle, `1:`, and the place of the queue inside it.
const SHAPER: TcHandle = TcHandle { major: 1, minor: 0 };
const INSIDE_SHAPER: TcHandle = TcHandle { major: 1, minor: 1 };

/// The queueing disciplines of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
    /// What shapes it, where the link has a rate.
    pub bucket: Option<Bucket>,
    /// Packets that may wait; `None` is as many bytes as the bucket says, and none at all without one.
    pub packets: Option<u32>,
}

impl Queue {
    /// Sets it up at an interface in the calling thread's namespace, in place of the one before; packets that leave by it
    /// are delayed or lost as `impair` says.
    pub(crate) fn apply(
        self,
        name: &str,
        before: Option<Queue>,
        impair: Option<Impairment>,
    ) -> Result<(), Fault> {
        with_netlink(async |netlink| {
            let index = interface(&netlink, name).await?.header.index;
            // Removed and made anew: a shaper that is only changed keeps the queue inside it.
            if before.is_some_and(|before| before.bucket.is_some() || before.packets.is_some()) {
                remove_root(&netlink, index).await.attempt(format!("remove the queue of {name}"))?;
            }
            let mut place = TcHandle::ROOT;
            if let Some(bucket) = self.bucket.filter(in_bursts) {
                htb::apply(&netlink, index, name, &bucket).await?;
                place = htb::INSIDE;
            } else if let Some(bucket) = self.bucket {
                let at = (TcHandle::ROOT, SHAPER);
                let shaped = create(&netlink, NewQueueDiscipline, index, at, "tbf", bucket.encode()).await;
                shaped.attempt(format!("shape {name} with tbf"))?;
                place = INSIDE_SHAPER;
            }
            if let Some(packets) = self.packets {
                // struct tc_fifo_qopt: limit
                let options = packets.to_ne_bytes().to_vec();
                let at = (place, TcHandle::UNSPEC);
                let queued = create(&netlink, NewQueueDiscipline, index, at, "pfifo", options).await;
                queued.attempt(format!("queue {packets} packets at {name}"))?;
            }
            if let Some(impair) = impair.filter(|_| self.packets.is_none()) {
                let options = impair.encode(self.bucket.as_ref());
                let at = (place, TcHandle::UNSPEC);
                let made = create(&netlink, NewQueueDiscipline, index, at, "netem", options).await;
                made.attempt(format!("delay or lose packets at {name} with netem"))?;
            }
            Ok(())
        })
    }
}
