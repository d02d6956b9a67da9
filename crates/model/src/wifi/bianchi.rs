//! Several saturated senders.

use crate::wifi::edca::Edca;
use crate::wifi::radio::Exchange;

/// Bianchi's model of senders that always have a frame, and hear each other (G. Bianchi, Performance Analysis of the
/// IEEE 802.11 Distributed Coordination Function, IEEE JSAC 18(3), 2000). Frames are lost by collisions only. Retries
/// have no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bianchi {
    /// Number of senders.
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
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if transmission(collision(middle), edca) > middle { low = middle } else { high = middle }
        }
        Bianchi { senders: others + 1, transmission: low, collision: collision(low) }
    }

    /// Successful exchanges per second of all senders together (equation 13 without the payload). Every exchange is
    /// the same; slot and AIFS as given, in nanoseconds.
    pub fn exchanges_per_second(&self, exchange: Exchange, aifs_ns: u64, slot_ns: u64) -> f64 {
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

/// Equation 7: the probability to begin in a slot, if each transmission collides with probability `collision`. Written
/// as a sum over the backoff stages, which has no singularity at one half.
fn transmission(collision: f64, edca: Edca) -> f64 {
    let window = f64::from(edca.cw_min + 1);
    let stages = ((edca.cw_max + 1) / (edca.cw_min + 1)).ilog2();
    let sum: f64 = (0..stages).map(|stage| (2.0 * collision).powf(stage.into())).sum();
    2.0 / (1.0 + window + collision * window * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_fixed_point_satisfies_both_equations_as_printed() {
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
        let exchange = Exchange {
            ppdu: crate::wifi::Ppdu { preamble_ns: 46_000, data_ns: 324_000 },
            response_ns: 48_000,
            timeout_ns: 39_000,
        };
        let of = |senders| {
            let model = Bianchi::new(senders, dcf(16, 6));
            (model.collision, model.exchanges_per_second(exchange, 37_000, 9000))
        };
        let carried = [2, 3, 5, 10, 20].map(of);
        assert!(carried.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1), "{carried:?}");
        // One sender: AIFS, 7.5 slots and the exchange.
        assert!((of(1).1 - 1e9 / (37_000.0 + 67_500.0 + 418_000.0)).abs() < 1e-6);
    }
}
