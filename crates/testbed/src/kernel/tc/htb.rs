//! A link with a known rate where timers are expensive: a token bucket in a class of `htb`. It sends until its burst
//! is used up, and then waits until there are tokens for another burst.
//!
//! Each timer in a guest is a request to the underlying machine, and `tbf` sets a timer for every packet that has to
//! wait. With small packets this takes a quarter of user-mode Linux's processor. With hysteresis, `htb` sets a timer
//! once per burst. Hysteresis is a parameter of the module and so applies to the whole kernel: this program may
//! change it in a guest, but not on this machine.
//!
//! `htb` does not segment GSO packets, unlike the shaper's peak bucket (`tbf.rs`). A `tbf` below it
//! therefore cuts packets longer than one frame. The rate of that `tbf` is higher than any link's.

use crate::TestbedError;
use crate::kernel::genl::message::attribute;
use crate::kernel::tc::part::QueuePart;
use crate::kernel::tc::tbf::{Bucket, encode_cutter, rate_of_frames, words};
use stacklab_model::Rate;
use std::{fs, io};

const HYSTERESIS: &str = "/sys/module/sch_htb/parameters/htb_hysteresis";

/// Attributes of linux/pkt_sched.h.
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// The version number in `struct tc_htb_glob`.
const VERSION: u32 = 3;
/// The length of a tick of queueing disciplines, nanoseconds.
const TICK_NS: u64 = 64;

/// The duration of a burst, nanoseconds. A timer may be this late without loss, and packets may arrive without a gap
/// for this long.
const BURST_NS: u64 = 655_360;
/// At this rate and above, small packets need too many timers, bytes per second: 50 Mbit/s.
const DEAR: u64 = 6_250_000;

/// Turns on hysteresis in this kernel's `htb`, which then waits for whole bursts. Only for guests.
pub fn ask_for_bursts() -> io::Result<()> {
    fs::write(HYSTERESIS, "1")
}

/// Whether hysteresis is on and a link of this rate is better shaped with it. A slower link needs few timers, and its
/// bursts would last long.
pub(crate) fn in_bursts(bucket: &Bucket) -> bool {
    bucket.rate >= DEAR && fs::read_to_string(HYSTERESIS).is_ok_and(|text| text.trim() == "1")
}

pub(crate) fn parts(bucket: &Bucket) -> [QueuePart; 3] {
    let cutter = encode_cutter(bucket.frame, bucket.limit);
    let attempted = "add the rate of the htb shaper to".to_owned();
    [
        QueuePart::discipline("htb", discipline(), "add the htb shaper to"),
        QueuePart { kind: "htb", is_class: true, options: class(bucket), attempted },
        QueuePart::discipline("tbf", cutter, "add tbf for GSO segmentation to"),
    ]
}

/// `struct tc_htb_glob`: version, rate2quantum, the class for all packets (`:1`), debug, direct_pkts.
pub(crate) fn discipline() -> Vec<u8> {
    attribute(TCA_HTB_INIT, &words([VERSION, 10, 1, 0, 0]))
}

/// `struct tc_htb_opt`: rate, ceil, buffer, cbuffer, quantum, level, prio. There is no parent class to borrow from,
/// so the ceiling is set out of reach.
fn class(bucket: &Bucket) -> Vec<u8> {
    let rates = [bucket.rate, Bucket::BEYOND];
    let ticks = u32::try_from(burst_ns(bucket) / TICK_NS).unwrap_or(u32::MAX);
    let rest = words([ticks, ticks, bucket.frame, 0, 0]);
    let parameters = [rates.map(rate_of_frames).concat(), rest].concat();
    let mut options = attribute(TCA_HTB_PARMS, &parameters);
    options.extend(attribute(TCA_HTB_RATE64, &rates[0].to_ne_bytes()));
    options.extend(attribute(TCA_HTB_CEIL64, &rates[1].to_ne_bytes()));
    options
}

/// Bytes that the token bucket of a link lets through at once after a pause, where the testbed is on this machine's
/// kernel or in a guest. A bucket of `htb` with hysteresis sends until it is as far below zero as it was above.
pub fn burst_bytes(rate: Rate, mtu: u32, in_guest: bool) -> Result<u64, TestbedError> {
    let bucket = Bucket::new(rate, mtu)?;
    let of_htb = u128::from(2 * burst_ns(&bucket)) * u128::from(bucket.rate) / 1_000_000_000;
    let in_bursts = in_guest && bucket.rate >= DEAR;
    Ok(if in_bursts { u64::try_from(of_htb).unwrap_or(u64::MAX) } else { bucket.burst.into() })
}

fn burst_ns(bucket: &Bucket) -> u64 {
    let two = 2 * u64::from(bucket.frame);
    BURST_NS.max(two.saturating_mul(1_000_000_000) / bucket.rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_outlasts_timers_and_holds_two_frames() {
        for (rate, ns) in [("100 Mbit/s", BURST_NS), ("8 Mbit/s", 2 * 1514 * 1000)] {
            assert_eq!(burst_ns(&Bucket::new(rate.parse().unwrap(), 1500).unwrap()), ns);
        }
        for (rate, in_guest, bytes) in [
            ("1 Gbit/s", false, 16 << 10),
            ("40 Mbit/s", true, 16 << 10),
            ("100 Mbit/s", true, 2 * 655_360 / 80),
        ] {
            assert_eq!(burst_bytes(rate.parse().unwrap(), 1500, in_guest).unwrap(), bytes);
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_class_is_encoded_as_the_kernel_reads_it() {
        #[rustfmt::skip]
        let expected = [
            48, 0, 1, 0,                                            // TCA_HTB_PARMS, 44 bytes
            0, 1, 24, 0, 0, 0, 84, 0, 0x20, 0xbc, 0xbe, 0x00,       // rate: 12,500,000 byte/s
            0, 1, 24, 0, 0, 0, 84, 0, 0xff, 0xff, 0xff, 0xff,       // ceiling: does not fit
            0, 0x28, 0, 0, 0, 0x28, 0, 0,                           // both bursts: 10,240 ticks
            0xea, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,               // quantum: 1,514; level, priority
            12, 0, 6, 0, 0x20, 0xbc, 0xbe, 0x00, 0, 0, 0, 0,        // TCA_HTB_RATE64
            12, 0, 7, 0, 0, 0, 0, 0, 0, 0x10, 0, 0,                 // TCA_HTB_CEIL64: 2^44 byte/s
        ];
        assert_eq!(class(&Bucket::new("100 Mbit/s".parse().unwrap(), 1500).unwrap()), expected);
    }
}
