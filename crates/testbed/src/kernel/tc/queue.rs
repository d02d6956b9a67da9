//! The queue at an end of the link: a shaper on a link with a rate, a queue with a packet limit, or none.

use crate::error::{Attempt, Fault};
use crate::kernel::netlink::{interface, with_netlink};
use crate::kernel::tc::htb::{self, in_bursts};
use crate::kernel::tc::netem::Impairment;
use crate::kernel::tc::request::{create, remove_root};
use crate::kernel::tc::tbf::Bucket;
use rtnetlink::packet_route::RouteNetlinkMessage::NewQueueDiscipline;
use rtnetlink::packet_route::tc::TcHandle;

/// The shaper's handle, `1:`, and the handle of the queue inside it.
const SHAPER: TcHandle = TcHandle { major: 1, minor: 0 };
const INSIDE_SHAPER: TcHandle = TcHandle { major: 1, minor: 1 };

/// The queueing disciplines of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
    /// The token bucket, if the link has a rate.
    pub bucket: Option<Bucket>,
    /// The queue limit in packets. `None`: the bucket's byte limit, or no queue without a bucket.
    pub packets: Option<u32>,
}

impl Queue {
    /// Sets it up at an interface in the calling thread's namespace, in place of the previous one. Packets that leave
    /// are delayed or lost according to `impair`.
    pub(crate) fn apply(
        self,
        name: &str,
        before: Option<Queue>,
        impair: Option<Impairment>,
    ) -> Result<(), Fault> {
        with_netlink(async |netlink| {
            let index = interface(&netlink, name).await?.header.index;
            // Remove the old one and create it anew: a shaper that is only changed keeps its inner queue.
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
