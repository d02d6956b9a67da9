//! The queue at an end of the link: a shaper on a link with a rate, a queue with a packet limit, or none; with delay
//! and loss (`netem`) before it.

use crate::kernel::genl::message::attribute;
use crate::kernel::netlink::{index, interface, with_netlink};
use crate::kernel::tc::htb;
use crate::kernel::tc::part::QueuePart;
use crate::kernel::tc::tbf::{Bucket, encode_cutter, words};
use crate::{Attempt, Fault};
use futures_util::StreamExt;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage::{
    self, DelQueueDiscipline, NewQueueDiscipline, NewTrafficClass,
};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use stacklab_model::ETHERNET_HEADER_BYTES;

/// Attribute of linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;

/// Creates disciplines at an interface of the calling thread's namespace, each inside the one before it. The first is
/// `1:`, with `1:1` inside, the second `2:`, and so on.
pub(crate) fn create(name: &str, parts: Vec<QueuePart>) -> Result<(), Fault> {
    let index = index(name)?;
    with_netlink(async |netlink| {
        let mut parent = TcHandle::ROOT;
        let mut major = 0;
        for QueuePart { kind, is_class, options, attempted } in parts {
            let mut message = TcMessage::with_index(index as i32);
            message.header.parent = if is_class { TcHandle { minor: 0, ..parent } } else { parent };
            major += u16::from(!is_class);
            parent = TcHandle { major, minor: 1 };
            message.header.handle = TcHandle { minor: is_class.into(), ..parent };
            let options = TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options));
            message.attributes = vec![TcAttribute::Kind(kind.to_owned()), options];
            let what = if is_class { NewTrafficClass(message) } else { NewQueueDiscipline(message) };
            ask(&netlink, what, NLM_F_CREATE | NLM_F_EXCL).await.attempt(format!("{attempted} {name}"))?;
        }
        Ok(())
    })
}

pub(crate) fn remove_root(name: &str) -> Result<(), Fault> {
    let mut message = TcMessage::with_index(index(name)? as i32);
    message.header.parent = TcHandle::ROOT;
    with_netlink(async |netlink| {
        ask(&netlink, DelQueueDiscipline(message), 0).await.attempt(format!("remove the queue of {name}"))
    })
}

async fn ask(
    netlink: &rtnetlink::Handle,
    message: RouteNetlinkMessage,
    flags: u16,
) -> Result<(), rtnetlink::Error> {
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Impairment {
    pub delay_ns: u64,
    /// The share of packets that are lost.
    pub loss: f64,
}

impl Impairment {
    /// The most packets in transit. The queue of a link with a rate comes behind them.
    const LIMIT: u32 = 100_000;
    /// Attribute of linux/pkt_sched.h: the delay in nanoseconds, which takes precedence over the delay in ticks.
    const LATENCY64: u16 = 10;

    /// `struct tc_netem_qopt` (latency in ticks, limit, loss, gap, duplicate, jitter), followed by the delay
    /// attribute.
    pub(crate) fn encode(self) -> Vec<u8> {
        let loss = (self.loss.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        let mut options = words([0, Self::LIMIT, loss, 0, 0, 0]);
        options.extend(attribute(Self::LATENCY64, &self.delay_ns.to_ne_bytes()));
        options
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
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
        // Remove the old one and create it anew: a shaper that is only changed keeps its inner queue.
        if before.is_some_and(|before| before.bucket.is_some() || before.packets.is_some()) {
            remove_root(name)?;
        }
        let mut parts = Vec::new();
        if let Some(impair) = impair.filter(|_| self.packets.is_none()) {
            // TCP queues packets of several segments, of which one loss would be one of all. Without losses and
            // rate nothing depends on them.
            if self.bucket.is_some() || impair.loss > 0.0 {
                let cutter = encode_cutter(frame(name)?, u32::MAX);
                parts.push(QueuePart::discipline("tbf", cutter, "add tbf for GSO segmentation to"));
            }
            parts.push(QueuePart::discipline("netem", impair.encode(), "add netem for delay or loss to"));
        }
        match &self.bucket {
            Some(bucket) if htb::in_bursts(bucket) => parts.extend(htb::parts(bucket)),
            Some(bucket) => {
                parts.push(QueuePart::discipline("tbf", bucket.encode(), "add the tbf shaper to"))
            }
            None => {}
        }
        if let Some(packets) = self.packets {
            // struct tc_fifo_qopt: limit
            let options = packets.to_ne_bytes().to_vec();
            parts.push(QueuePart::discipline(
                "pfifo",
                options,
                &format!("add a queue of {packets} packets to"),
            ));
        }
        if parts.is_empty() { Ok(()) } else { create(name, parts) }
    }
}

fn frame(name: &str) -> Result<u32, Fault> {
    let link = with_netlink(async |netlink| interface(&netlink, name).await)?;
    let mtu = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    });
    Ok(mtu.unwrap_or(u32::from(u16::MAX)).saturating_add(ETHERNET_HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impairment_is_encoded_as_the_kernel_reads_it() {
        let impair = Impairment { delay_ns: 10_000_000, loss: 0.01 };
        let words: Vec<u32> = impair
            .encode()
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words[..3], [0, Impairment::LIMIT, u32::MAX / 100]);
    }
}
