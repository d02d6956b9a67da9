//! Clock offset and skew between two hosts.
//!
//! An exchange gives the times when a message left, was echoed and returned. Whatever part of the round trip each way
//! took, the offset is the difference at the midpoint, with an error of at most half the round trip. The exchange
//! with the shortest round trip is therefore the most accurate.

use stacklab_model::Exchange;

/// Offset of the second clock from the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Nanoseconds.
    pub offset_ns: i64,
    /// Maximum error, nanoseconds: half the round trip.
    pub bound_ns: u64,
    /// Time of the measurement, nanoseconds of the second clock.
    pub at_ns: u64,
}

/// The offset from the exchange with the shortest round trip; `None` without exchanges.
pub fn offset(exchanges: impl IntoIterator<Item = Exchange>) -> Option<Offset> {
    let least = exchanges.into_iter().min_by_key(Exchange::round_trip_ns)?;
    let half = least.round_trip_ns() / 2;
    Some(Offset {
        offset_ns: least.reflected_ns.wrapping_sub(least.sent_ns.wrapping_add(half)) as i64,
        // The midpoint was rounded down.
        bound_ns: least.round_trip_ns().div_ceil(2),
        at_ns: least.reflected_ns,
    })
}

/// Clock skew: how much faster the second clock runs than the first one, nanoseconds per nanosecond, from the minimum
/// delays of successive intervals (time, delay; in order of time). It is the slope of the edge of the lower convex
/// hull at the mean time: of all lines below the points, this one is nearest to them (Moon, Skelly and Towsley 1999).
/// `None` if all points have the same time.
pub fn skew(minima: &[(u64, u64)]) -> Option<f64> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &(time, delay) in minima {
        let next = (time as f64, delay as f64);
        if let Some(last) = hull.last_mut()
            && last.0 == next.0
        {
            last.1 = last.1.min(next.1);
        } else {
            hull.push(next);
        }
        // A point on or above the line between its neighbours is not part of the hull.
        while let [.., a, b, c] = hull[..]
            && (b.1 - a.1) * (c.0 - a.0) >= (c.1 - a.1) * (b.0 - a.0)
        {
            hull.remove(hull.len() - 2);
        }
    }
    let mean = minima.iter().map(|point| point.0 as f64).sum::<f64>() / minima.len() as f64;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= mean)?;
    Some((edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0))
}

/// Offsets before and after a trial whose delays were computed with the offset from before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocks {
    /// Before the trial.
    pub before: Offset,
    /// After the trial.
    pub after: Offset,
}

/// Drift and remaining error of delays computed with an offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Nanoseconds that the second clock gained per nanosecond; 0 if both offsets are consistent with no drift.
    pub skew: f64,
    /// Maximum error of a delay after correction for `skew`, nanoseconds.
    pub bound_ns: u64,
}

impl Offset {
    /// Offset of the first clock from the second one.
    pub fn reversed(self) -> Self {
        let offset_ns = self.offset_ns.saturating_neg();
        Offset { offset_ns, at_ns: self.at_ns.wrapping_add_signed(offset_ns), ..self }
    }
}

impl Clocks {
    /// The same for the first clock against the second one.
    pub fn reversed(self) -> Self {
        Clocks { before: self.before.reversed(), after: self.after.reversed() }
    }

    /// Estimates the drift from the minimum delays of the trial, which show it more accurately than the offsets. As
    /// growing delays would look like drift, they count within the error bounds of the offsets only.
    pub fn drift(&self, minima: &[(u64, u64)]) -> Drift {
        let Clocks { before, after } = self;
        let gained = after.offset_ns.saturating_sub(before.offset_ns) as f64;
        let open = before.bound_ns.saturating_add(after.bound_ns) as f64;
        let time = after.at_ns.saturating_sub(before.at_ns) as f64;
        if gained.abs() <= open || time == 0.0 {
            // No drift is detected. An undetected drift stays within the bounds of both offsets.
            let most = (gained.abs() as u64).saturating_add(after.bound_ns);
            return Drift { skew: 0.0, bound_ns: before.bound_ns.max(most) };
        }
        let least = (gained - open) / time;
        let most = (gained + open) / time;
        let skew = skew(minima).unwrap_or(gained / time).clamp(least, most);
        // At the end of the trial, the error of the line is limited by the bound of the second offset.
        let end = ((gained - skew * time).abs() as u64).saturating_add(after.bound_ns);
        Drift { skew, bound_ns: before.bound_ns.max(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudorandom number from 0 to 1.
    fn chance(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 40) as f64 / (1_u64 << 24) as f64
    }

    /// An exchange at a time of the first clock, with a delay each way and an offset of the second clock.
    fn exchange(at: u64, there: u64, back: u64, ahead: i64) -> Exchange {
        Exchange {
            sent_ns: at,
            reflected_ns: (at + there).wrapping_add_signed(ahead),
            returned_ns: at + there + back,
        }
    }

    #[test]
    fn offset_is_right_to_half_the_least_round_trip() {
        let mut state = 3;
        for ahead in [0, 1_000_000_000_000, -4_000_000_000, 17] {
            for (there, back) in [(50_000, 50_000), (1, 99_999), (99_999, 0), (3_000_000, 7_000)] {
                let exchanges = (1..200).map(|number| {
                    let mut wait = || (chance(&mut state) * 1e6) as u64;
                    exchange(10_000_000_000 + number * 1_000_000, there + wait(), back + wait(), ahead)
                });
                let exchanges: Vec<Exchange> = exchanges.collect();
                let offset = offset(exchanges.iter().copied()).unwrap();
                let least = exchanges.iter().map(|one| one.returned_ns - one.sent_ns).min().unwrap();
                assert_eq!(offset.bound_ns, least.div_ceil(2));
                let wrong = offset.offset_ns.abs_diff(ahead);
                assert!(wrong <= offset.bound_ns, "{ahead} {there} {back}: {offset:?}");
            }
        }
        assert_eq!(
            offset([exchange(100, 40, 40, 9)]).unwrap(),
            Offset { offset_ns: 9, bound_ns: 40, at_ns: 149 }
        );
        // The whole odd round trip is in one direction.
        assert_eq!(offset([exchange(100, 41, 0, 0)]).unwrap().bound_ns, 21);
        assert_eq!(offset([]), None);
    }

    /// The minimum delays of a hundred intervals over ten seconds: random waits above a minimum that rises with the
    /// skew.
    fn minima(skew: f64, wait_ns: f64) -> Vec<(u64, u64)> {
        let mut state = 11;
        let mut minima = Vec::new();
        for number in 0..100_u64 {
            let time = number * 100_000_000;
            // Some messages do not wait.
            let wait = -chance(&mut state).max(1e-9).ln() * wait_ns * f64::from(!number.is_multiple_of(7));
            minima.push((time, (2_000_000.0 + skew * time as f64 + wait) as u64));
        }
        minima
    }

    #[test]
    fn the_hull_finds_the_skew_below_waits_that_hide_it() {
        for asked in [0.0, 20e-6, -20e-6, 150e-6] {
            let found = skew(&minima(asked, 3_000_000.0)).unwrap();
            assert!((found - asked).abs() < 1e-6, "{asked} was found as {found}");
        }
        assert_eq!(skew(&[]), None);
        assert_eq!(skew(&[(5, 1)]), None);
        assert_eq!(skew(&[(5, 4), (5, 1)]), None);
        assert_eq!(skew(&[(0, 10), (1, 100), (2, 12)]), Some(1.0));
    }

    fn clocks(gained_ns: i64, bound_ns: u64) -> Clocks {
        let before = Offset { offset_ns: -7_000, bound_ns, at_ns: 1_000_000_000 };
        let after = Offset { offset_ns: gained_ns - 7_000, bound_ns, at_ns: 11_000_000_000 };
        Clocks { before, after }
    }

    #[test]
    fn drift_within_the_bounds_is_not_taken_out() {
        // Growing delays are not drift.
        let drift = clocks(500, 1_000).drift(&minima(150e-6, 0.0));
        assert_eq!(drift, Drift { skew: 0.0, bound_ns: 1_500 });
        assert_eq!(clocks(0, 1_000).drift(&[]).bound_ns, 1_000);
    }

    #[test]
    fn drift_beyond_the_bounds_is_that_of_the_hull() {
        // 200 us in 10 s, with an error of 20 us: between 18 and 22 ppm.
        let clocks = clocks(200_000, 10_000);
        let found = clocks.drift(&minima(21e-6, 1_000_000.0));
        assert!((found.skew - 21e-6).abs() < 0.5e-6, "{found:?}");
        assert!((10_000..=30_000).contains(&found.bound_ns), "{found:?}");
        assert_eq!(clocks.drift(&minima(150e-6, 0.0)), Drift { skew: 22e-6, bound_ns: 30_000 });
        let alone = clocks.drift(&[]);
        assert!((alone.skew - 20e-6).abs() < 1e-12 && alone.bound_ns <= 10_001, "{alone:?}");
    }
}
