//! Delay and loss: `netem`.

use crate::kernel::tc::tbf::{Bucket, attribute, words};

/// The impairment of packets that leave an end of the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Impairment {
    /// The delay, nanoseconds.
    pub delay_ns: u64,
    /// The share of packets that are lost.
    pub loss: f64,
}

impl Impairment {
    /// The limit of packets in transit on a link without a rate.
    const LIMIT: u32 = 100_000;
    /// Attribute of linux/pkt_sched.h: the delay in nanoseconds, which takes precedence over the delay in ticks.
    const LATENCY64: u16 = 10;

    /// The limit of packets that are in transit or wait. In a shaper this is also the shaper's queue. The limit then
    /// is the number of maximum-size frames that fit the queue's bytes plus the bytes sent at its rate during the
    /// delay.
    fn limit(self, bucket: Option<&Bucket>) -> u32 {
        let Some(bucket) = bucket else { return Self::LIMIT };
        let on_their_way = bucket.bytes_per_s() as f64 * self.delay_ns as f64 / 1e9;
        let frames = (f64::from(bucket.limit()) + on_their_way) / f64::from(bucket.frame());
        (frames.ceil() as u32).clamp(2, Self::LIMIT)
    }

    /// `struct tc_netem_qopt` (latency in ticks, limit, loss, gap, duplicate, jitter), followed by the delay
    /// attribute.
    pub fn encode(self, bucket: Option<&Bucket>) -> Vec<u8> {
        let loss = (self.loss.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        let mut options = words([0, self.limit(bucket), loss, 0, 0, 0]);
        options.extend(attribute(Self::LATENCY64, &self.delay_ns.to_ne_bytes()));
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Rate;

    #[test]
    fn packets_that_are_delayed_wait_no_longer_than_the_link_says() {
        let bucket = Bucket::new(Rate(100_000_000), 1500).unwrap();
        let impair = Impairment { delay_ns: 10_000_000, loss: 0.01 };
        // A queue of 200 KiB plus 10 ms at 100 Mbit/s, in frames of 1514 bytes: (204800 + 125000) / 1514.
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
