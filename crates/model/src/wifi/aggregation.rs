//! The limits of A-MPDUs.

use crate::wifi::error::WifiError;
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

#[cfg(test)]
mod tests {
    use super::*;

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
