//! A link with a known rate: a token bucket (`tbf`) at each end's egress that counts bytes like Ethernet.
//!
//! The queue counts a packet's IP bytes and the 14-byte Ethernet header. On a wire the packet also takes
//!
//! ```text
//! 4  frame check sequence
//! 8  preamble and start-of-frame delimiter
//! 12 gap to the next frame
//! ```
//!
//! Therefore `overhead` is 24. No frame is shorter than 64 bytes (including header and FCS), which is 84 bytes with
//! preamble and gap: `mpu`. Kernels from 5.17 (and the stable releases of January 2022) apply `mpu` in this form.
//!
//! The overhead is added once per packet in the queue. TCP queues packets of several segments even with offloads off,
//! and the kernel segments them below the queue. Counted like this, TCP would be 1 % too fast. Therefore a second
//! bucket, with a peak rate that no link reaches, has room for only one frame. It adds no delay, but the kernel
//! segments longer packets before queueing. A GSO batch of small datagrams (UDP_SEGMENT) is segmented and counted per
//! datagram if it is longer than one frame: the engine sends shorter batches as single datagrams.

use crate::TestbedError;
use crate::kernel::genl::message::attribute;
use stacklab_model::{ETHERNET_HEADER_BYTES, Rate};

/// FCS, preamble with delimiter, and gap, bytes.
const OVERHEAD: u16 = 4 + 8 + 12;
/// The minimum size of a frame on the wire, bytes.
const MPU: u16 = 84;

/// The link layer in `struct tc_ratespec`: plain bytes, no cells. With it the kernel needs no rate table.
const LINKLAYER_ETHERNET: u8 = 1;
/// Attributes of linux/pkt_sched.h.
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes that may be sent at once after a pause.
    pub burst: u32,
    /// Bytes that may wait in the queue.
    pub limit: u32,
    /// The size of the largest frame as counted by the queue, bytes.
    pub frame: u32,
}

impl Bucket {
    /// A rate in bytes per second that is higher than any rate of a link configuration (10^13 bit/s) and small enough
    /// to be expressed in bits.
    pub(crate) const BEYOND: u64 = 1 << 44;

    /// The bucket for a link.
    ///
    /// The burst is 16 KiB at up to 1 Gbit/s, where it lasts 131 us: timers wake later than requested, and the burst
    /// must cover that time. Above 1 Gbit/s it grows with the rate and lasts equally long. It is at least as large as
    /// the largest frame, which otherwise would never be sent. The queue holds 12.5 bursts (200 KiB at up to 1
    /// Gbit/s).
    pub(crate) fn new(rate: Rate, mtu: u32) -> Result<Self, TestbedError> {
        let bytes_per_second = rate.bits_per_second() / 8;
        if bytes_per_second == 0 {
            return Err(TestbedError(format!("a rate of {rate} is not possible: the minimum is 8 bit/s")));
        }
        let for_timers = u128::from(rate.bits_per_second().max(1_000_000_000)) * (16 << 10) / 1_000_000_000;
        let frame = mtu.saturating_add(ETHERNET_HEADER_BYTES);
        let burst = for_timers.max(u128::from(frame) + u128::from(OVERHEAD));
        let limit = saturate(burst * 25 / 2);
        Ok(Self { rate: bytes_per_second, burst: saturate(burst), limit, frame })
    }

    /// The attributes in TCA_OPTIONS, in host byte order as netlink requires.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut options = parameters([self.rate, Self::BEYOND], self.limit);
        options.extend(attribute(TCA_TBF_RATE64, &self.rate.to_ne_bytes()));
        options.extend(attribute(TCA_TBF_PRATE64, &Self::BEYOND.to_ne_bytes()));
        options.extend(attribute(TCA_TBF_BURST, &self.burst.to_ne_bytes()));
        options.extend(attribute(TCA_TBF_PBURST, &self.frame.to_ne_bytes()));
        options
    }
}

fn saturate(bytes: u128) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The attributes of a bucket that adds no delay and only segments packets longer than a frame of this many bytes. As
/// many bytes as the limit may wait in it, unless another queue is inside it.
pub(crate) fn encode_cutter(frame: u32, limit: u32) -> Vec<u8> {
    let mut options = parameters([Bucket::BEYOND, 0], limit);
    options.extend(attribute(TCA_TBF_RATE64, &Bucket::BEYOND.to_ne_bytes()));
    options.extend(attribute(TCA_TBF_BURST, &frame.to_ne_bytes()));
    options
}

/// `struct tc_tbf_qopt` with a rate and a peak rate (none: 0), bytes per second, and the queue limit, bytes.
fn parameters(rates: [u64; 2], limit: u32) -> Vec<u8> {
    // buffer and mtu, both in ticks: the BURST attributes replace them, in bytes.
    let parameters = [&rates.map(rate_of_frames).concat()[..], &limit.to_ne_bytes(), &[0; 8]].concat();
    attribute(TCA_TBF_PARMS, &parameters)
}

/// `struct tc_ratespec`: a rate, bytes per second, which counts frames with their size on the wire. A rate that does
/// not fit needs another attribute.
pub(crate) fn rate_of_frames(rate: u64) -> [u8; 12] {
    // cell_log, linklayer, overhead, cell_align, mpu, rate
    let mut spec = [0; 12];
    spec[1] = LINKLAYER_ETHERNET;
    spec[2..4].copy_from_slice(&OVERHEAD.to_ne_bytes());
    spec[6..8].copy_from_slice(&MPU.to_ne_bytes());
    spec[8..].copy_from_slice(&u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// Words in the byte order of the kernel's structures.
pub(crate) fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(rate: &str, mtu: u32) -> Bucket {
        Bucket::new(rate.parse().unwrap(), mtu).unwrap()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_bucket_is_encoded_as_the_kernel_reads_it() {
        #[rustfmt::skip]
        let expected = [
            40, 0, 1, 0,                                            // TCA_TBF_PARMS, 36 bytes
            0, 1, 24, 0, 0, 0, 84, 0, 0x20, 0xbc, 0xbe, 0x00,       // rate: 12,500,000 byte/s
            0, 1, 24, 0, 0, 0, 84, 0, 0xff, 0xff, 0xff, 0xff,       // peak rate: does not fit
            0x00, 0x20, 0x03, 0x00,                                 // limit: 204,800
            0, 0, 0, 0, 0, 0, 0, 0,                                 // ticks: not used
            12, 0, 4, 0, 0x20, 0xbc, 0xbe, 0x00, 0, 0, 0, 0,        // TCA_TBF_RATE64
            12, 0, 5, 0, 0, 0, 0, 0, 0, 0x10, 0, 0,                 // TCA_TBF_PRATE64: 2^44 byte/s
            8, 0, 6, 0, 0x00, 0x40, 0x00, 0x00,                     // TCA_TBF_BURST: 16,384
            8, 0, 7, 0, 0xea, 0x05, 0x00, 0x00,                     // TCA_TBF_PBURST: 1,514
        ];
        assert_eq!(bucket("100 Mbit/s", 1500).encode(), expected);
    }

    #[test]
    fn a_rate_beyond_32_bits_is_carried_in_64() {
        let beyond = Bucket { rate: 1 << 32, ..bucket("1 Gbit/s", 1500) }.encode();
        assert_eq!(beyond[12..16], [0xff; 4]);
        assert_eq!(beyond[44..52], (1_u64 << 32).to_ne_bytes());
    }

    #[test]
    fn no_rate_of_a_bed_reaches_the_peak_rate() {
        let most = bucket("10000 Gbit/s", 1500);
        assert!(most.rate < Bucket::BEYOND);
        assert!("10001 Gbit/s".parse::<Rate>().is_err());
    }

    #[test]
    fn burst_is_16_kib_and_grows_with_rate_and_frame() {
        assert_eq!(bucket("8 bit/s", 1500).burst, 16 << 10);
        assert_eq!(bucket("1 Gbit/s", 9000).burst, 16 << 10);
        assert_eq!(bucket("1 Gbit/s", 9000).limit, 200 << 10);
        assert_eq!(bucket("10 Gbit/s", 1500).burst, 160 << 10);
        assert_eq!(bucket("1 Mbit/s", 65535).burst, 65535 + 14 + 24);
        assert_eq!(bucket("10000 Gbit/s", 1500).limit, 2_048_000_000);
    }

    #[test]
    fn less_than_a_byte_per_second_is_refused() {
        assert!(Bucket::new(Rate(7), 1500).is_err());
        assert!(Bucket::new(Rate(8), 1500).is_ok());
    }
}
