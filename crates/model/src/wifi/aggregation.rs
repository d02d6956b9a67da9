//! The limits of A-MPDUs.

use crate::wifi::rates::US;
use serde::{Deserialize, Serialize};

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
    pub(super) fn check(self) -> Result<Self, String> {
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
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_do_not_exist_are_refused() {
        let limits = Aggregation::default();
        let refused = |aggregation: Aggregation, expected: &str| {
            let error = aggregation.check().unwrap_err();
            assert!(error.ends_with(expected), "{error}");
        };
        refused(Aggregation { frames: 65, ..limits }, "65 frames is not possible: expected 1 to 64");
        refused(Aggregation { frames: 0, ..limits }, "0 frames is not possible: expected 1 to 64");
        refused(Aggregation { bytes: 65_536, ..limits }, "65536 bytes is not possible: expected 1 to 65535");
        refused(
            Aggregation { time_ns: 5_484_001, ..limits },
            "5484.001 us is not possible: expected up to 5484 us",
        );
        refused(Aggregation { density_ns: 16_001, ..limits }, "apart are not possible: expected up to 16 us");
    }
}
