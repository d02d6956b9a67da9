//! What waits to leave by an end of the link: the shaper of a link with a rate, a queue of so many packets, or nothing.

use crate::address::INTERFACE;
use crate::bursts::{self, in_bursts};
use crate::error::{Attempt, Fault};
use crate::netlink::{interface, with_netlink};
use crate::shape::{Bucket, attribute, words};
use futures_util::StreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage::{self, NewQueueDiscipline};
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};

/// Attribute of linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;
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
    /// Lays it at the end in the calling thread's namespace, in place of the one before.
    pub(crate) fn lay(self, before: Option<Queue>) -> Result<(), Fault> {
        self.lay_at(INTERFACE, before, None)
    }

    /// The same at any interface; packets that leave by it are late or lost as `impair` says.
    pub(crate) fn lay_at(
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
                bursts::lay(&netlink, index, name, &bucket).await?;
                place = bursts::INSIDE;
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

/// What becomes of packets that leave by an end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Impairment {
    /// How much later they arrive, nanoseconds.
    pub delay_ns: u64,
    /// The share of them that is lost.
    pub loss: f64,
}

impl Impairment {
    /// Packets that may be on their way at once where the link has no rate.
    const LIMIT: u32 = 100_000;
    /// Attribute of linux/pkt_sched.h: the delay in nanoseconds, which goes before the one in ticks.
    const LATENCY64: u16 = 10;

    /// Packets that may be on their way or wait at once. Inside a shaper this is the shaper's queue too: as many as fit its
    /// bytes, and as many as the delay holds at its rate, all as large as frames can be.
    fn limit(self, bucket: Option<&Bucket>) -> u32 {
        let Some(bucket) = bucket else { return Self::LIMIT };
        let on_their_way = bucket.bytes_per_s() as f64 * self.delay_ns as f64 / 1e9;
        let frames = (f64::from(bucket.limit()) + on_their_way) / f64::from(bucket.frame());
        (frames.ceil() as u32).clamp(2, Self::LIMIT)
    }

    /// `struct tc_netem_qopt` (latency in ticks, limit, loss, gap, duplicate, jitter), and the delay behind it.
    fn encode(self, bucket: Option<&Bucket>) -> Vec<u8> {
        let loss = (self.loss.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        let mut options = words([0, self.limit(bucket), loss, 0, 0, 0]);
        options.extend(attribute(Self::LATENCY64, &self.delay_ns.to_ne_bytes()));
        options
    }
}

/// Puts a queueing discipline at an interface's root.
pub(crate) async fn add_queue(
    netlink: &Handle,
    index: u32,
    kind: &str,
    options: Vec<u8>,
) -> Result<(), rtnetlink::Error> {
    let at = (TcHandle::ROOT, TcHandle::UNSPEC);
    create(netlink, NewQueueDiscipline, index, at, kind, options).await
}

/// Puts a new queueing discipline, or a class of one, at a place: its parent, and the handle that it gets.
pub(crate) async fn create(
    netlink: &Handle,
    what: fn(TcMessage) -> RouteNetlinkMessage,
    index: u32,
    (parent, handle): (TcHandle, TcHandle),
    kind: &str,
    options: Vec<u8>,
) -> Result<(), rtnetlink::Error> {
    let mut message = TcMessage::with_index(index as i32);
    (message.header.parent, message.header.handle) = (parent, handle);
    message.attributes =
        vec![TcAttribute::Kind(kind.to_owned()), TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options))];
    ask(netlink, what(message), NLM_F_CREATE | NLM_F_EXCL).await
}

async fn remove_root(netlink: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    ask(netlink, RouteNetlinkMessage::DelQueueDiscipline(message), 0).await
}

async fn ask(netlink: &Handle, message: RouteNetlinkMessage, flags: u16) -> Result<(), rtnetlink::Error> {
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut answers = netlink.clone().request(request)?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload {
            return Err(rtnetlink::Error::NetlinkError(error));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Rate;

    #[test]
    fn packets_that_are_delayed_wait_no_longer_than_the_link_says() {
        let bucket = Bucket::new(Rate(100_000_000), 1500).unwrap();
        let impair = Impairment { delay_ns: 10_000_000, loss: 0.01 };
        // 200 KiB of queue, and 10 ms at 100 Mbit/s, in frames of 1514 bytes: (204800 + 125000) / 1514.
        assert_eq!(impair.limit(Some(&bucket)), 218);
        assert_eq!(impair.limit(None), Impairment::LIMIT);
        let words: Vec<u32> = impair
            .encode(Some(&bucket))
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words[..3], [0, 218, u32::MAX / 100]);
    }
}
