//! Channel access: EDCA (section 10.22.2).

use crate::names::named;
use crate::wifi::rates::Band;

named! {
    /// What a node of a BSS is.
    pub enum Role("role") {
        /// The access point.
        AccessPoint = "access_point",
        /// A station.
        Station = "station",
    }
}

named! {
    /// An access category, by rising priority.
    pub enum AccessCategory("access category") {
        /// AC_BK.
        Background = "background",
        /// AC_BE.
        BestEffort = "best_effort",
        /// AC_VI.
        Video = "video",
        /// AC_VO.
        Voice = "voice",
    }
}

/// The parameters of one access category. The TXOP limit is zero: one exchange for each access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edca {
    /// AIFSN: slots between SIFS and the first slot of the backoff.
    pub aifsn: u32,
    /// CWmin, slots.
    pub cw_min: u32,
    /// CWmax, slots.
    pub cw_max: u32,
}

impl Edca {
    /// The default parameters of stations (table 9-137) and access points (dot11QAPEDCATable), as hostapd has them
    /// (`wmm_ac_*` and `tx_queue_*`).
    pub fn default_of(role: Role, category: AccessCategory) -> Self {
        use AccessCategory::*;
        let access_point = role == Role::AccessPoint;
        let (aifsn, cw_min, cw_max) = match category {
            Background => (7, 15, 1023),
            BestEffort => (3, 15, if access_point { 63 } else { 1023 }),
            Video => (if access_point { 1 } else { 2 }, 7, 15),
            Voice => (if access_point { 1 } else { 2 }, 3, 7),
        };
        Edca { aifsn, cw_min, cw_max }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// What IEEE 802.11 does not have.
    pub fn check(self, role: Role) -> Result<Self, String> {
        let Edca { aifsn, cw_min, cw_max } = self;
        let least = if role == Role::AccessPoint { 1 } else { 2 };
        if !(least..=15).contains(&aifsn) {
            return Err(format!(
                "an AIFSN of {aifsn} is not possible: expected 2 to 15, or 1 at an access point"
            ));
        }
        let window = |cw: u32| cw <= 32_767 && (cw + 1).is_power_of_two();
        if !window(cw_min) || !window(cw_max) || cw_min > cw_max {
            return Err(format!(
                "contention windows from {cw_min} to {cw_max} are not possible: expected powers of two less one"
            ));
        }
        Ok(self)
    }

    /// AIFS: the time that the channel is idle before the first slot.
    pub fn aifs_ns(self, band: Band) -> u64 {
        band.sifs_ns() + u64::from(self.aifsn) * band.slot_ns()
    }

    /// The contention window after `failures` in a row: doubled for each, up to CWmax.
    pub fn window(self, failures: u32) -> u32 {
        let doubled = u64::from(self.cw_min + 1) << failures.min(16);
        doubled.min(u64::from(self.cw_max + 1)) as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessCategory::*;

    #[test]
    fn parameters_are_those_of_the_standard() {
        let station = Edca::default_of(Role::Station, BestEffort);
        assert_eq!(station.aifs_ns(Band::Ghz2), 37_000);
        assert_eq!(station.aifs_ns(Band::Ghz5), 43_000);
        assert_eq!([0, 1, 2, 6, 7, 60].map(|n| station.window(n)), [15, 31, 63, 1023, 1023, 1023]);
        assert_eq!(Edca::default_of(Role::AccessPoint, BestEffort).window(9), 63);
        for role in Role::ALL {
            for category in AccessCategory::ALL {
                let edca = Edca::default_of(*role, *category);
                assert_eq!(edca.check(*role), Ok(edca));
            }
        }
    }

    #[test]
    fn windows_and_spaces_that_do_not_exist_are_refused() {
        let of = |aifsn, cw_min, cw_max| Edca { aifsn, cw_min, cw_max }.check(Role::Station);
        for (aifsn, cw_min, cw_max, expected) in [
            (1, 15, 63, "an AIFSN of 1 "),
            (16, 15, 63, "an AIFSN of 16 "),
            (2, 16, 63, "contention windows from 16 to 63 "),
            (2, 63, 15, "contention windows from 63 to 15 "),
        ] {
            let error = of(aifsn, cw_min, cw_max).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(of(2, 0, 32_767).is_ok() && of(2, 0, 65_535).is_err());
    }
}
