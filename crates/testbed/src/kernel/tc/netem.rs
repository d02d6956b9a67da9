//! Delay and loss: `netem`.

use crate::kernel::tc::tbf::{Bucket, attribute, words};

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
