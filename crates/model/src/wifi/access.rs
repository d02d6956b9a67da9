//! Channel access: EDCA (section 10.22.2), and several saturated senders.

use crate::names::named;
use crate::wifi::{Band, FrameExchange};

named! {
    pub enum Role("role") {
        AccessPoint = "access_point",
        Station = "station",
    }
}

named! {
    /// An access category, by rising priority.
    pub enum AccessCategory("access category") {
        Background = "background",
        BestEffort = "best_effort",
        Video = "video",
        Voice = "voice",
    }
}

/// The parameters of one access category. The TXOP limit is zero: one exchange for each access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edca {
    /// AIFSN: slots between SIFS and the first slot of the backoff.
    pub aifsn: u32,
    pub cw_min: u32,
    pub cw_max: u32,
}

impl Edca {
    /// Of stations (table 9-137) and access points (dot11QAPEDCATable), as in hostapd (`wmm_ac_*`, `tx_queue_*`).
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

    pub fn check(self, role: Role) -> Result<Self, String> {
        let Edca { aifsn, cw_min, cw_max } = self;
        let least = if role == Role::AccessPoint { 1 } else { 2 };
        if !(least..=15).contains(&aifsn) {
            return Err(format!(
                "an AIFSN of {aifsn} is not possible: expected 2 to 15, or 1 at an access point"
            ));
        }
        if !is_window(cw_min) || !is_window(cw_max) || cw_min > cw_max {
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

    pub fn window(self, failures: u32) -> u32 {
        let doubled = u64::from(self.cw_min + 1) << failures.min(16);
        doubled.min(u64::from(self.cw_max + 1)) as u32 - 1
    }
}

fn is_window(cw: u32) -> bool {
    cw <= 32_767 && (cw + 1).is_power_of_two()
}

/// Senders that always have a frame, and hear each other (G. Bianchi, Performance Analysis of the IEEE 802.11
/// Distributed Coordination Function, IEEE JSAC 18(3), 2000). Frames are lost by collisions only; retries are
/// unlimited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bianchi {
    pub senders: u32,
    /// tau: the probability that a sender begins in a slot (equation 7).
    pub transmission: f64,
    /// p: the probability that a transmission collides (equation 9).
    pub collision: f64,
}

impl Bianchi {
    /// The fixed point of equations 7 and 9 for a number of senders with the same parameters, at least one.
    pub fn new(senders: u32, edca: Edca) -> Self {
        let others = senders.max(1) - 1;
        let collision = |transmission: f64| 1.0 - (1.0 - transmission).powf(others.into());
        // Equation 7 falls in p, and p rises in tau: one root, found by bisection.
        let mut low = 0.0;
        let mut high = 1.0;
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if transmission(collision(middle), edca) > middle { low = middle } else { high = middle }
        }
        Bianchi { senders: others + 1, transmission: low, collision: collision(low) }
    }

    /// Successful exchanges per second of all senders together (equation 13 without the payload).
    pub fn exchanges_per_second(&self, exchange: FrameExchange, aifs_ns: u64, slot_ns: u64) -> f64 {
        let tau = self.transmission;
        let senders = f64::from(self.senders);
        let none = (1.0 - tau).powf(senders);
        let one = senders * tau * (1.0 - tau).powf(senders - 1.0);
        let several = 1.0 - none - one;
        let time = none * slot_ns as f64
            + one * (exchange.total_ns() + aifs_ns) as f64
            + several * (exchange.failed_ns() + aifs_ns) as f64;
        1e9 * one / time
    }
}

/// Equation 7, written as a sum over the backoff stages, which has no singularity at one half.
fn transmission(collision: f64, edca: Edca) -> f64 {
    let window = f64::from(edca.cw_min + 1);
    let stages = ((edca.cw_max + 1) / (edca.cw_min + 1)).ilog2();
    let sum: f64 = (0..stages).map(|stage| (2.0 * collision).powf(stage.into())).sum();
    2.0 / (1.0 + window + collision * window * sum)
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
        for (aifsn, cw_min, cw_max, expected) in [
            (1, 15, 63, "an AIFSN of 1 "),
            (16, 15, 63, "an AIFSN of 16 "),
            (2, 16, 63, "contention windows from 16 to 63 "),
            (2, 63, 15, "contention windows from 63 to 15 "),
        ] {
            let error = check_station(aifsn, cw_min, cw_max).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(check_station(2, 0, 32_767).is_ok() && check_station(2, 0, 65_535).is_err());
    }

    fn check_station(aifsn: u32, cw_min: u32, cw_max: u32) -> Result<Edca, String> {
        Edca { aifsn, cw_min, cw_max }.check(Role::Station)
    }

    fn dcf(window: u32, stages: u32) -> Edca {
        Edca { aifsn: 2, cw_min: window - 1, cw_max: (window << stages) - 1 }
    }

    #[test]
    fn one_sender_waits_half_a_window() {
        let model = Bianchi::new(1, dcf(16, 6));
        assert!((model.transmission - 2.0 / 17.0).abs() < 1e-12);
        assert_eq!(model.collision, 0.0);
        let idle_slots = (1.0 - model.transmission) / model.transmission;
        assert!((idle_slots - 7.5).abs() < 1e-9);
    }

    #[test]
    fn fixed_point_satisfies_both_printed_equations() {
        for senders in [2, 3, 5, 10, 50] {
            for (window, stages) in [(16, 6), (32, 3), (32, 5), (128, 3)] {
                let Bianchi { transmission: tau, collision: p, .. } =
                    Bianchi::new(senders, dcf(window, stages));
                let w = f64::from(window);
                let printed = 2.0 * (1.0 - 2.0 * p)
                    / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - (2.0 * p).powf(stages.into())));
                assert!((tau - printed).abs() < 1e-9, "{senders} {window} {stages}: {tau} {printed}");
                assert!((p - (1.0 - (1.0 - tau).powf(f64::from(senders) - 1.0))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn more_senders_collide_more_often_and_carry_less() {
        let exchange = FrameExchange {
            ppdu: crate::wifi::Ppdu { preamble_ns: 46_000, data_ns: 324_000 },
            response_ns: 48_000,
            timeout_ns: 39_000,
        };
        let mut carried = Vec::new();
        for senders in [2, 3, 5, 10, 20] {
            let model = Bianchi::new(senders, dcf(16, 6));
            carried.push((model.collision, model.exchanges_per_second(exchange, 37_000, 9000)));
        }
        assert!(carried.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1), "{carried:?}");
        // One sender: AIFS, 7.5 slots and the exchange.
        let alone = Bianchi::new(1, dcf(16, 6)).exchanges_per_second(exchange, 37_000, 9000);
        assert!((alone - 1e9 / (37_000.0 + 67_500.0 + 418_000.0)).abs() < 1e-6);
    }
}
