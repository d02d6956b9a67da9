//! Timestamps and error estimates (RFC 8762, section 4.2.1; RFC 4656, section 4.1.2).

use std::str::FromStr;

/// Seconds from NTP's epoch (1900) to that of Unix (1970).
const NTP_TO_UNIX: u64 = 2_208_988_800;
const BILLION: u64 = 1_000_000_000;
const ERA: u64 = 1 << 32;

/// How 64 bits hold a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1900 and a binary fraction.
    Ntp,
    /// Seconds since 1970 and nanoseconds: the truncated format of PTPv2. Taken as UTC, as implementations send it.
    Ptp,
}

impl TimeFormat {
    /// Writes nanoseconds since 1970.
    pub fn bits(self, unix_ns: u64) -> u64 {
        let seconds = unix_ns / BILLION;
        let ns = unix_ns % BILLION;
        match self {
            TimeFormat::Ntp => (((seconds + NTP_TO_UNIX) % ERA) << 32) | ((ns << 32) / BILLION),
            TimeFormat::Ptp => (seconds % ERA) << 32 | ns,
        }
    }

    /// Reads nanoseconds since 1970, of the era nearest to a time that the caller knows. A fraction of a second or
    /// more is none: `None`.
    pub fn unix_ns(self, bits: u64, near_unix_ns: u64) -> Option<u64> {
        let seconds = bits >> 32;
        let fraction = bits % ERA;
        let (epoch, ns) = match self {
            // Up, so that what was written reads back.
            TimeFormat::Ntp => (NTP_TO_UNIX, (fraction * BILLION).div_ceil(ERA)),
            TimeFormat::Ptp if fraction < BILLION => (0, fraction),
            TimeFormat::Ptp => return None,
        };
        let near = near_unix_ns / BILLION + epoch;
        let ahead = seconds.wrapping_sub(near) % ERA;
        let whole = if ahead < ERA / 2 { near + ahead } else { (near + ahead).checked_sub(ERA)? };
        whole.checked_sub(epoch)?.checked_mul(BILLION)?.checked_add(ns)
    }
}

impl FromStr for TimeFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ntp" => Ok(TimeFormat::Ntp),
            "ptp" => Ok(TimeFormat::Ptp),
            _ => Err("expected ntp or ptp".to_owned()),
        }
    }
}

/// What a host says of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// Whether the clock is synchronised to UTC by an external source.
    pub synchronised: bool,
    /// How its timestamps are written.
    pub format: TimeFormat,
    /// The error is `multiplier * 2^scale / 2^32` seconds; 0 to 63.
    scale: u8,
    multiplier: u8,
}

impl ErrorEstimate {
    /// For a clock with this maximum error in nanoseconds; `None` for one that nothing synchronises.
    pub fn new(format: TimeFormat, error_ns: Option<u64>) -> Self {
        let units = (u128::from(error_ns.unwrap_or(BILLION)) << 32).div_ceil(u128::from(BILLION)).max(1);
        let scale = (0_u8..63).find(|scale| units.div_ceil(1 << scale) <= 255).unwrap_or(63);
        let multiplier = units.div_ceil(1 << scale).min(255) as u8;
        ErrorEstimate { synchronised: error_ns.is_some(), format, scale, multiplier }
    }

    /// The same, of a clock whose timestamps are written so.
    pub fn with_format(self, format: TimeFormat) -> Self {
        ErrorEstimate { format, ..self }
    }

    /// The largest error, nanoseconds.
    pub fn error_ns(self) -> u64 {
        let units = u128::from(self.multiplier) << self.scale;
        u64::try_from((units * u128::from(BILLION)).div_ceil(1 << 32)).unwrap_or(u64::MAX)
    }

    pub(super) fn to_bytes(self) -> [u8; 2] {
        let ptp = self.format == TimeFormat::Ptp;
        [u8::from(self.synchronised) << 7 | u8::from(ptp) << 6 | self.scale, self.multiplier]
    }

    pub(super) fn from_bytes([first, multiplier]: [u8; 2]) -> Self {
        let format = if first & 0x40 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp };
        ErrorEstimate { synchronised: first & 0x80 != 0, format, scale: first & 0x3f, multiplier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_in_each_format_and_era() {
        // 2026, and after NTP's seconds began again in 2036.
        for unix_ns in [1_795_536_000_123_456_789, 2_085_978_496_000_000_000, 2_100_000_000_999_999_999] {
            for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
                for near in [unix_ns, unix_ns - 60 * BILLION, unix_ns + 3_600 * BILLION] {
                    assert_eq!(format.unix_ns(format.bits(unix_ns), near), Some(unix_ns), "{format:?}");
                }
            }
        }
        // 1 January 1970 is 0x83aa7e80 of NTP; half a second is half of the fraction.
        assert_eq!(TimeFormat::Ntp.bits(BILLION / 2), 0x83aa_7e80_8000_0000);
        assert_eq!(TimeFormat::Ptp.bits(7 * BILLION + 9), 7 << 32 | 9);
        assert_eq!(TimeFormat::Ptp.unix_ns(BILLION, 0), None);
        // 1950 is nearer to 1970 than 2086, and before it.
        assert_eq!(TimeFormat::Ntp.unix_ns(1_577_880_000 << 32, 0), None);
    }

    #[test]
    fn an_error_is_never_said_smaller_than_it_is() {
        for error_ns in [0, 1, 250, 1_000, 999_999, 50_000_000, 3 * BILLION, u64::MAX] {
            let estimate = ErrorEstimate::new(TimeFormat::Ntp, Some(error_ns));
            assert!(estimate.error_ns() >= error_ns, "{error_ns} {estimate:?}");
            assert!(estimate.multiplier > 0 && estimate.synchronised);
            // No more than a 128th beyond it, and the unit of 0.23 ns.
            assert!(
                estimate.error_ns() <= error_ns.saturating_add(error_ns / 128 + 1),
                "{error_ns} {estimate:?}"
            );
            assert_eq!(ErrorEstimate::from_bytes(estimate.to_bytes()), estimate);
        }
        let alone = ErrorEstimate::new(TimeFormat::Ptp, None);
        assert!(!alone.synchronised);
        assert_eq!(alone.to_bytes()[0] & 0xc0, 0x40);
    }
}
