//! The frame that carries an IP packet, and A-MPDUs of such frames (section 9.7).

use crate::names::named;
use crate::wifi::radio::{ACK_BYTES, BLOCK_ACK_BYTES};
use crate::wifi::rates::US;
use crate::wifi::{FrameExchange, Radio};
use serde::{Deserialize, Serialize};

named! {
    pub enum Security("security") {
        /// None: frames are in the clear.
        Open = "open",
        /// WPA2-Personal, CCMP.
        Wpa2 = "wpa2",
        /// WPA3-Personal: SAE instead of the pre-shared key, CCMP alike.
        Wpa3 = "wpa3",
    }
}

/// Frame control, duration, three addresses, sequence control (section 9.2.4).
const HEADER_BYTES: u32 = 24;
/// The QoS control field, which group frames of an access point lack.
const QOS_BYTES: u32 = 2;
/// LLC and SNAP (RFC 1042).
const LLC_SNAP_BYTES: u32 = 8;
/// Frame check sequence (section 9.2.4.8).
pub const FCS_BYTES: u32 = 4;

impl Security {
    /// Bytes that the cipher adds: CCMP's header (8) and MIC (8) (section 12.5.3.2).
    pub fn cipher_bytes(self) -> u32 {
        match self {
            Security::Open => 0,
            Security::Wpa2 | Security::Wpa3 => 16,
        }
    }
}

/// Bytes of the QoS data frame that carries an IP packet to one receiver, FCS included.
pub fn mpdu_bytes(security: Security, packet_bytes: u32) -> u32 {
    group_mpdu_bytes(security, packet_bytes) + QOS_BYTES
}

/// Bytes of the data frame that carries a packet (IP or ARP) from an access point to a group, FCS included.
pub fn group_mpdu_bytes(security: Security, packet_bytes: u32) -> u32 {
    HEADER_BYTES + security.cipher_bytes() + LLC_SNAP_BYTES + packet_bytes + FCS_BYTES
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregation {
    /// Most frames; 1 means no aggregation.
    pub frames: u32,
    /// Most bytes, delimiters and padding included.
    pub bytes: u32,
    pub time_ns: u64,
    /// Least time from the start of one frame to the start of the next (minimum MPDU start spacing).
    pub density_ns: u64,
}

impl Default for Aggregation {
    /// The limits of the standard, and the density that mac80211_hwsim announces (8 us).
    fn default() -> Self {
        Aggregation { frames: 64, bytes: 65_535, time_ns: 5484 * US, density_ns: 8 * US }
    }
}

impl Aggregation {
    pub(super) fn check(self) -> Result<(), String> {
        // The window of a compressed BlockAck; the length field of HT-SIG; aPPDUMaxTime (section 19.4.4); minimum MPDU
        // start spacing (section 9.4.2.56.3).
        if !(1..=64).contains(&self.frames) {
            return Err(format!("an A-MPDU of {} frames is not possible: expected 1 to 64", self.frames));
        }
        if !(1..=65_535).contains(&self.bytes) {
            return Err(format!("an A-MPDU of {} bytes is not possible: expected 1 to 65535", self.bytes));
        }
        if !(1..=5484 * US).contains(&self.time_ns) {
            let us = self.time_ns as f64 / 1e3;
            return Err(format!("an A-MPDU of {us} us is not possible: expected up to 5484 us"));
        }
        if self.density_ns > 16 * US {
            let us = self.density_ns as f64 / 1e3;
            return Err(format!("frames {us} us apart are not possible: expected up to 16 us"));
        }
        Ok(())
    }
}

const DELIMITER_BYTES: u32 = 4;
const ALIGNMENT: u32 = 4;
/// The longest frame of an HT A-MPDU: the delimiter's length field has 12 bits.
const MAX_MPDU_BYTES: u32 = 4095;

/// The frames of one PPDU to one receiver. One is sent as it is. More are an A-MPDU: each has a delimiter, and all but
/// the last are padded.
#[derive(Debug, Clone, Copy)]
pub struct Aggregate<'a> {
    radio: &'a Radio,
    frames: u32,
    /// Where the last frame's delimiter begins.
    last_at: u32,
    last_bytes: u32,
}

impl<'a> Aggregate<'a> {
    pub fn new(radio: &'a Radio) -> Self {
        Aggregate { radio, frames: 0, last_at: 0, last_bytes: 0 }
    }

    /// Adds a frame, if it keeps the limits. The first always does.
    pub fn push(&mut self, mpdu_bytes: u32) -> bool {
        if self.frames == 0 {
            *self = Aggregate { frames: 1, last_bytes: mpdu_bytes, ..*self };
            return true;
        }
        if self.last_bytes.max(mpdu_bytes) > MAX_MPDU_BYTES {
            return false;
        }
        let spacing = (DELIMITER_BYTES + self.last_bytes).next_multiple_of(ALIGNMENT);
        let grown = Aggregate {
            frames: self.frames + 1,
            last_at: self.last_at + spacing.max(self.radio.spacing_bytes()),
            last_bytes: mpdu_bytes,
            ..*self
        };
        let limits = self.radio.settings().aggregation;
        let fits = grown.frames <= limits.frames
            && grown.psdu_bytes() <= limits.bytes
            && self.radio.ht_ppdu(grown.psdu_bytes()).total_ns() <= limits.time_ns;
        if fits {
            *self = grown;
        }
        fits
    }

    pub fn frames(&self) -> u32 {
        self.frames
    }

    pub fn psdu_bytes(&self) -> u32 {
        let delimiter = if self.frames > 1 { DELIMITER_BYTES } else { 0 };
        self.last_at + delimiter + self.last_bytes
    }
}

impl Radio {
    /// One frame to one receiver with an ACK, or an A-MPDU with a BlockAck.
    pub fn data(&self, aggregate: &Aggregate<'_>) -> FrameExchange {
        let response = if aggregate.frames() > 1 { BLOCK_ACK_BYTES } else { ACK_BYTES };
        self.build_exchange(self.ht_ppdu(aggregate.psdu_bytes()), self.mcs().reference_rate(), response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{Band, RadioSettings};
    use crate::{Family, Transport};

    #[test]
    fn a_message_has_the_bytes_that_captures_show() {
        // Captures of mac80211_hwsim are without the FCS.
        for (security, family, captured) in [
            (Security::Wpa2, Family::Ipv4, 1486),
            (Security::Wpa2, Family::Ipv6, 1506),
            (Security::Open, Family::Ipv4, 1470),
            (Security::Wpa3, Family::Ipv6, 1506),
        ] {
            let packet = family.header_bytes() + Transport::Udp.header_bytes() + 1408;
            assert_eq!(mpdu_bytes(security, packet) - FCS_BYTES, captured);
        }
    }

    #[test]
    fn limits_that_do_not_exist_are_refused() {
        let limits = Aggregation::default();
        for (aggregation, expected) in [
            (Aggregation { frames: 65, ..limits }, "65 frames is not possible: expected 1 to 64"),
            (Aggregation { frames: 0, ..limits }, "0 frames is not possible: expected 1 to 64"),
            (Aggregation { bytes: 65_536, ..limits }, "65536 bytes is not possible: expected 1 to 65535"),
            (
                Aggregation { time_ns: 5_484_001, ..limits },
                "5484.001 us is not possible: expected up to 5484 us",
            ),
            (Aggregation { density_ns: 16_001, ..limits }, "apart are not possible: expected up to 16 us"),
        ] {
            let error = aggregation.check().unwrap_err();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    fn radio(aggregation: Aggregation) -> Radio {
        Radio::new(RadioSettings { aggregation, ..RadioSettings::default() }).unwrap()
    }

    /// The frames and bytes of a full A-MPDU.
    fn fill(aggregation: Aggregation, mpdu_bytes: u32) -> (u32, u32) {
        let radio = radio(aggregation);
        let mut aggregate = Aggregate::new(&radio);
        while aggregate.push(mpdu_bytes) {}
        (aggregate.frames(), aggregate.psdu_bytes())
    }

    #[test]
    fn frames_have_delimiters_and_all_but_last_are_padded() {
        let limits = Aggregation::default();
        assert_eq!(fill(Aggregation { frames: 1, ..limits }, 1490), (1, 1490));
        assert_eq!(fill(Aggregation { frames: 2, ..limits }, 1490), (2, 1496 + 1494));
        assert_eq!(fill(Aggregation { frames: 8, ..limits }, 1492), (8, 8 * 1496));
    }

    #[test]
    fn short_frames_are_spaced_by_the_density() {
        let limits = Aggregation { frames: 8, ..Aggregation::default() };
        // 8 us at 300 Mbit/s are 300 bytes.
        assert_eq!(fill(Aggregation { density_ns: 8 * US, ..limits }, 210), (8, 7 * 300 + 214));
        assert_eq!(fill(Aggregation { density_ns: 0, ..limits }, 210), (8, 7 * 216 + 214));
    }

    #[test]
    fn each_limit_holds() {
        let limits = Aggregation::default();
        for (aggregation, frames) in [
            (limits, 43),
            (Aggregation { frames: 7, ..limits }, 7),
            (Aggregation { bytes: 2989, ..limits }, 1),
            (Aggregation { bytes: 2990, ..limits }, 2),
            // A PPDU of two: 23 symbols, 84 us, and 46 us around them.
            (Aggregation { time_ns: 129 * US, ..limits }, 1),
            (Aggregation { time_ns: 130 * US, ..limits }, 2),
        ] {
            assert_eq!(fill(aggregation, 1490).0, frames);
        }
        // Longer than the delimiter can tell.
        assert_eq!(fill(limits, 4096).0, 1);
    }

    #[test]
    fn an_exchange_is_a_frame_and_its_response() {
        let radio = Radio::new(RadioSettings::default()).unwrap();
        let mut aggregate = Aggregate::new(&radio);
        aggregate.push(1490);
        let single = radio.data(&aggregate);
        assert_eq!((single.ppdu.total_ns(), single.response_ns), (46_000 + 44_000, 10_000 + 34_000));
        aggregate.push(1490);
        let two = radio.data(&aggregate);
        assert_eq!((two.ppdu.total_ns(), two.response_ns), (46_000 + 84_000, 10_000 + 38_000));
        assert_eq!(two.failed_ns(), 130_000 + 39_000);
        // 30 bytes at 6 Mbit/s: 11 symbols.
        let management = radio.basic(30);
        assert_eq!((management.ppdu.total_ns(), management.response_ns), (26_000 + 44_000, 10_000 + 50_000));
        // A BlockAckReq has 24 bytes: 9 symbols. The BlockAck takes 68 us at 6 Mbit/s.
        let request = radio.block_ack_request(24);
        assert_eq!((request.ppdu.total_ns(), request.response_ns), (26_000 + 36_000, 10_000 + 74_000));
        assert_eq!(radio.group(30), FrameExchange { ppdu: management.ppdu, response_ns: 0, timeout_ns: 0 });
    }

    #[test]
    fn in_5_ghz_sifs_is_longer_and_no_extension_follows() {
        let five = exchange_two(Band::Ghz5);
        let two = exchange_two(Band::Ghz2);
        assert_eq!(five.ppdu.total_ns(), two.ppdu.total_ns() - 6000);
        assert_eq!(five.response_ns, two.response_ns);
    }

    /// The exchange of an A-MPDU of two frames.
    fn exchange_two(band: Band) -> FrameExchange {
        let radio = Radio::new(RadioSettings { band, ..RadioSettings::default() }).unwrap();
        let mut aggregate = Aggregate::new(&radio);
        aggregate.push(1490);
        aggregate.push(1490);
        radio.data(&aggregate)
    }
}
