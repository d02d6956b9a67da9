//! A-MPDUs (section 9.7).

use crate::wifi::error::WifiError;
use crate::wifi::radio::Radio;
use crate::wifi::rates::US;
use serde::{Deserialize, Serialize};

const DELIMITER_BYTES: u32 = 4;
/// Frames begin at multiples of this.
const ALIGNMENT: u32 = 4;
/// The longest frame of an HT A-MPDU: the delimiter's length field has 12 bits.
const LONGEST_MPDU_BYTES: u32 = 4095;

/// Limits of an A-MPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregation {
    /// Most frames; 1 means no aggregation.
    pub frames: u32,
    /// Most bytes, delimiters and padding included.
    pub bytes: u32,
    /// Longest PPDU.
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
    pub(super) fn check(self) -> Result<Self, WifiError> {
        if !(1..=64).contains(&self.frames) {
            return Err(WifiError::AggregateFrames(self.frames));
        }
        if !(1..=65_535).contains(&self.bytes) {
            return Err(WifiError::AggregateBytes(self.bytes));
        }
        if !(1..=5484 * US).contains(&self.time_ns) {
            return Err(WifiError::AggregateTime(self.time_ns));
        }
        if self.density_ns > 16 * US {
            return Err(WifiError::Density(self.density_ns));
        }
        Ok(self)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::radio::RadioSettings;

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
    fn limits_that_do_not_exist_are_refused() {
        let limits = Aggregation::default();
        let of = |aggregation: Aggregation| aggregation.check().unwrap_err();
        assert_eq!(of(Aggregation { frames: 65, ..limits }), WifiError::AggregateFrames(65));
        assert_eq!(of(Aggregation { frames: 0, ..limits }), WifiError::AggregateFrames(0));
        assert_eq!(of(Aggregation { bytes: 65_536, ..limits }), WifiError::AggregateBytes(65_536));
        assert_eq!(of(Aggregation { time_ns: 5_484_001, ..limits }), WifiError::AggregateTime(5_484_001));
        assert_eq!(of(Aggregation { density_ns: 16_001, ..limits }), WifiError::Density(16_001));
    }
}
