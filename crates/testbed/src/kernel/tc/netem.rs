//! Delay and loss: `netem`.

use crate::kernel::tc::tbf::{attribute, words};

/// The impairment of packets that leave an end of the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Impairment {
    /// The delay, nanoseconds.
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
