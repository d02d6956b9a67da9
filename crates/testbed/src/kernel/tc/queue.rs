//! The queue at an end of the link: a shaper on a link with a rate, a queue with a packet limit, or none.

use crate::error::{Attempt, Fault};
use crate::kernel::netlink::{interface, with_netlink};
use crate::kernel::tc::htb::{self, in_bursts};
use crate::kernel::tc::netem::Impairment;
use crate::kernel::tc::request::{create, remove_root};
use crate::kernel::tc::tbf::{Bucket, encode_cutter};
use rtnetlink::packet_route::RouteNetlinkMessage::NewQueueDiscipline;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::tc::TcHandle;
use stacklab_model::ETHERNET_HEADER_BYTES;

/// The shaper's handle, `1:`, and the handle of the queue inside it.
const SHAPER: TcHandle = TcHandle { major: 1, minor: 0 };
const INSIDE_SHAPER: TcHandle = TcHandle { major: 1, minor: 1 };
/// The same of what cuts long packets before they are delayed or lost, and of what delays or loses them.
const CUTTER: TcHandle = TcHandle { major: 3, minor: 0 };
const INSIDE_CUTTER: TcHandle = TcHandle { major: 3, minor: 1 };
const IMPAIRMENT: TcHandle = TcHandle { major: 4, minor: 0 };
const INSIDE_IMPAIRMENT: TcHandle = TcHandle { major: 4, minor: 1 };

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
    /// are delayed or lost according to `impair`, each for itself, before they come to the queue: what is on its way
    /// takes no place in it.
    pub(crate) fn apply(
        self,
        name: &str,
        before: Option<Queue>,
        impair: Option<Impairment>,
    ) -> Result<(), Fault> {
        with_netlink(async |netlink| {
            let link = interface(&netlink, name).await?;
            let index = link.header.index;
            // Remove the old one and create it anew: a shaper that is only changed keeps its inner queue.
            if before.is_some_and(|before| before.bucket.is_some() || before.packets.is_some()) {
                remove_root(&netlink, index).await.attempt(format!("remove the queue of {name}"))?;
            }
            let mut place = TcHandle::ROOT;
            if let Some(impair) = impair.filter(|_| self.packets.is_none()) {
                // TCP queues packets of several segments, of which one loss would be one of all. Without losses and
                // rate nothing depends on them.
                if self.bucket.is_some() || impair.loss > 0.0 {
                    let at = (TcHandle::ROOT, CUTTER);
                    let cutter = encode_cutter(frame(&link), u32::MAX);
                    let cut = create(&netlink, NewQueueDiscipline, index, at, "tbf", cutter).await;
                    cut.attempt(format!("add tbf for GSO segmentation at {name}"))?;
                    place = INSIDE_CUTTER;
                }
                let at = (place, IMPAIRMENT);
                let made = create(&netlink, NewQueueDiscipline, index, at, "netem", impair.encode()).await;
                made.attempt(format!("delay or lose packets at {name} with netem"))?;
                place = INSIDE_IMPAIRMENT;
            }
            if let Some(bucket) = self.bucket.filter(in_bursts) {
                htb::apply(&netlink, index, name, place, &bucket).await?;
                place = htb::INSIDE;
            } else if let Some(bucket) = self.bucket {
                let at = (place, SHAPER);
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
            Ok(())
        })
    }
}

/// The size of the largest frame as counted by a queue, bytes.
fn frame(link: &LinkMessage) -> u32 {
    let mtu = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    });
    mtu.unwrap_or(u32::from(u16::MAX)).saturating_add(ETHERNET_HEADER_BYTES)
}
