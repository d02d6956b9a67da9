//! The closed formula: one sender that always has a frame.

use crate::wifi::aggregate::Aggregate;
use crate::wifi::edca::Edca;
use crate::wifi::radio::{Exchange, Radio};

/// What one saturated sender carries on a channel that it has alone: in each cycle AIFS, the mean backoff, and one
/// exchange with as many frames as its limits allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saturation {
    /// Frames of an exchange.
    pub frames: u32,
    /// Bytes of the PSDU.
    pub psdu_bytes: u32,
    /// AIFS.
    pub aifs_ns: u64,
    /// Mean backoff: half of CWmin.
    pub backoff_ns: u64,
    /// PPDU and response.
    pub exchange: Exchange,
}

impl Saturation {
    /// The time of a cycle.
    pub fn cycle_ns(&self) -> u64 {
        self.aifs_ns + self.backoff_ns + self.exchange.total_ns()
    }

    /// Payload rate in Mbit/s, where each frame carries this many bytes of payload. Over two hops of one channel half
    /// of it is left.
    pub fn goodput(&self, payload_bytes: u32) -> f64 {
        8e3 * f64::from(self.frames) * f64::from(payload_bytes) / self.cycle_ns() as f64
    }
}

impl Radio {
    /// One saturated sender with frames of one size, in an A-MPDU of as many as the limits allow.
    pub fn saturation(&self, edca: Edca, mpdu_bytes: u32) -> Saturation {
        self.cycle(edca, mpdu_bytes, u32::MAX)
    }

    /// A cycle of [`Radio::saturation`] with at most this many frames, but one at least.
    pub(super) fn cycle(&self, edca: Edca, mpdu_bytes: u32, at_most: u32) -> Saturation {
        let mut aggregate = Aggregate::new(self);
        while aggregate.push(mpdu_bytes) && aggregate.frames() < at_most {}
        let band = self.settings().band;
        Saturation {
            frames: aggregate.frames(),
            psdu_bytes: aggregate.psdu_bytes(),
            aifs_ns: edca.aifs_ns(band),
            backoff_ns: u64::from(edca.cw_min) * band.slot_ns() / 2,
            exchange: self.data(&aggregate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::family::{Family, Transport};
    use crate::wifi::{AccessCategory, Aggregation, RadioSettings, Role, Security, mpdu_bytes};

    const SIZES: [u32; 6] = [128, 384, 640, 896, 1152, 1408];

    fn saturation(frames: u32, family: Family, security: Security, payload: u32) -> Saturation {
        let aggregation = Aggregation { frames, ..Aggregation::default() };
        let radio = Radio::new(RadioSettings { aggregation, ..RadioSettings::default() }).unwrap();
        let packet = family.header_bytes() + Transport::Udp.header_bytes() + payload;
        let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
        radio.saturation(edca, mpdu_bytes(security, packet))
    }

    /// Mbit/s of UDP payload at MCS 15, 40 MHz, short guard interval. Worked out from the formula in docs/wifi.md by
    /// other means than this code.
    #[test]
    fn goodput_agrees_with_the_worked_table() {
        use Family::*;
        use Security::*;
        let table = [
            (Open, Ipv4, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "48.03"]),
            (Open, Ipv4, 8, ["30.74", "81.24", "115.54", "139.69", "159.41", "173.79"]),
            (Open, Ipv4, 64, ["92.24", "200.11", "231.00", "247.37", "253.02", "255.67"]),
            (Open, Ipv6, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "47.23"]),
            (Open, Ipv6, 8, ["30.74", "80.18", "114.25", "138.34", "158.05", "172.46"]),
            (Open, Ipv6, 64, ["92.24", "193.80", "225.29", "242.66", "248.76", "251.94"]),
            (Wpa2, Ipv4, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "47.23"]),
            (Wpa2, Ipv4, 8, ["30.74", "81.24", "114.25", "138.34", "158.05", "172.46"]),
            (Wpa2, Ipv4, 64, ["92.24", "195.34", "226.53", "243.69", "249.28", "252.46"]),
            (Wpa2, Ipv6, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "47.23"]),
            (Wpa2, Ipv6, 8, ["30.74", "80.18", "112.99", "138.34", "156.70", "172.46"]),
            (Wpa2, Ipv6, 64, ["92.24", "188.59", "221.63", "239.62", "245.70", "249.86"]),
        ];
        for (security, family, frames, row) in table {
            for (payload, expected) in SIZES.into_iter().zip(row) {
                let found = saturation(frames, family, security, payload);
                let goodput = format!("{:.2}", found.goodput(payload));
                assert_eq!(goodput, expected, "{payload} B, {security} {family}, {frames}: {found:?}");
            }
        }
    }

    #[test]
    fn long_frames_fill_an_ampdu_by_bytes() {
        let frames = |payload| saturation(64, Family::Ipv4, Security::Wpa2, payload).frames;
        assert_eq!(SIZES.map(frames), [64, 64, 64, 64, 52, 43]);
    }

    #[test]
    fn a_cycle_is_the_sum_of_its_parts() {
        let found = saturation(8, Family::Ipv4, Security::Wpa2, 1408);
        // AIFS, 7.5 slots, preamble with the signal extension, 81 symbols, SIFS, BlockAck with the extension.
        assert_eq!(found.cycle_ns(), 37_000 + 67_500 + 46_000 + 324_000 + 10_000 + 38_000);
    }
}
