//! A-MPDUs (section 9.7).

use crate::wifi::radio::{ACK_BYTES, BLOCK_ACK_BYTES, Exchange, Radio};

const DELIMITER_BYTES: u32 = 4;
/// Frames begin at multiples of this.
const ALIGNMENT: u32 = 4;
/// The longest frame of an HT A-MPDU: the delimiter's length field has 12 bits.
const LONGEST_MPDU_BYTES: u32 = 4095;

/// The frames of one PPDU to one receiver, as they are added. One frame is sent as it is. More are an A-MPDU: each has
/// a delimiter, and all but the last are padded.
#[derive(Debug, Clone, Copy)]
pub struct Aggregate<'a> {
    radio: &'a Radio,
    /// Frames so far.
    frames: u32,
    /// Where the last frame's delimiter begins.
    last_at: u32,
    /// Bytes of the last frame.
    last_bytes: u32,
}

impl<'a> Aggregate<'a> {
    /// No frame yet.
    pub fn new(radio: &'a Radio) -> Self {
        Aggregate { radio, frames: 0, last_at: 0, last_bytes: 0 }
    }

    /// Adds a frame, if it keeps the limits. The first frame always fits.
    pub fn push(&mut self, mpdu_bytes: u32) -> bool {
        if self.frames == 0 {
            *self = Aggregate { frames: 1, last_bytes: mpdu_bytes, ..*self };
            return true;
        }
        if self.last_bytes.max(mpdu_bytes) > LONGEST_MPDU_BYTES {
            return false;
        }
        let spacing = (DELIMITER_BYTES + self.last_bytes).next_multiple_of(ALIGNMENT);
        let grown = Aggregate {
            frames: self.frames + 1,
            last_at: self.last_at + spacing.max(self.radio.spacing_bytes()),
            last_bytes: mpdu_bytes,
            ..*self
        };
        let limits = self.radio.aggregation();
        let fits = grown.frames <= limits.frames
            && grown.psdu_bytes() <= limits.bytes
            && self.radio.ht_ppdu(grown.psdu_bytes()).total_ns() <= limits.time_ns;
        if fits {
            *self = grown;
        }
        fits
    }

    /// Frames so far.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Bytes of the PSDU.
    pub fn psdu_bytes(&self) -> u32 {
        let delimiter = if self.frames > 1 { DELIMITER_BYTES } else { 0 };
        self.last_at + delimiter + self.last_bytes
    }
}

impl Radio {
    /// One frame to one receiver with an ACK, or an A-MPDU with a BlockAck.
    pub fn data(&self, aggregate: &Aggregate<'_>) -> Exchange {
        let response = if aggregate.frames() > 1 { BLOCK_ACK_BYTES } else { ACK_BYTES };
        self.answered(self.ht_ppdu(aggregate.psdu_bytes()), self.mcs().reference_rate(), response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::aggregation::Aggregation;
    use crate::wifi::radio::RadioSettings;
    use crate::wifi::rates::{Band, US};

    fn radio(aggregation: Aggregation) -> Radio {
        Radio::new(RadioSettings { aggregation, ..RadioSettings::default() }).unwrap()
    }

    fn filled(radio: &Radio, mpdu_bytes: u32) -> (u32, u32) {
        let mut aggregate = Aggregate::new(radio);
        while aggregate.push(mpdu_bytes) {}
        (aggregate.frames(), aggregate.psdu_bytes())
    }

    #[test]
    fn frames_have_delimiters_and_all_but_the_last_are_padded() {
        let of = |frames, mpdu| filled(&radio(Aggregation { frames, ..Aggregation::default() }), mpdu);
        assert_eq!(of(1, 1490), (1, 1490));
        assert_eq!(of(2, 1490), (2, 1496 + 1494));
        assert_eq!(of(8, 1492), (8, 8 * 1496));
    }

    #[test]
    fn short_frames_are_spaced_by_the_density() {
        // 8 us at 300 Mbit/s are 300 bytes.
        let of =
            |density_ns| filled(&radio(Aggregation { frames: 8, density_ns, ..Aggregation::default() }), 210);
        assert_eq!(of(8 * US), (8, 7 * 300 + 214));
        assert_eq!(of(0), (8, 7 * 216 + 214));
    }

    #[test]
    fn each_limit_holds() {
        let limits = Aggregation::default();
        let of = |aggregation| filled(&radio(aggregation), 1490).0;
        assert_eq!(of(limits), 43);
        assert_eq!(of(Aggregation { frames: 7, ..limits }), 7);
        assert_eq!(of(Aggregation { bytes: 2989, ..limits }), 1);
        assert_eq!(of(Aggregation { bytes: 2990, ..limits }), 2);
        // A PPDU of two: 23 symbols, 84 us, and 46 us around them.
        assert_eq!(of(Aggregation { time_ns: 129 * US, ..limits }), 1);
        assert_eq!(of(Aggregation { time_ns: 130 * US, ..limits }), 2);
        // Longer than the delimiter can tell.
        assert_eq!(filled(&radio(limits), 4096).0, 1);
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
        assert_eq!(radio.group(30), Exchange { ppdu: management.ppdu, response_ns: 0, timeout_ns: 0 });
    }

    #[test]
    fn in_5_ghz_sifs_is_longer_and_no_extension_follows() {
        let of = |band| {
            let radio = Radio::new(RadioSettings { band, ..RadioSettings::default() }).unwrap();
            let mut aggregate = Aggregate::new(&radio);
            aggregate.push(1490);
            aggregate.push(1490);
            radio.data(&aggregate)
        };
        assert_eq!(of(Band::Ghz5).ppdu.total_ns(), of(Band::Ghz2).ppdu.total_ns() - 6000);
        assert_eq!(of(Band::Ghz5).response_ns, of(Band::Ghz2).response_ns);
    }
}
