//! The noise floor of the instrument: a smaller difference cannot be detected.

use crate::factors::family::{Family, Transport};
use crate::units::print_duration;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Median and 99th percentile, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub median_ns: u64,
    /// 99th percentile by nearest rank, of at least 100 samples.
    pub p99_ns: u64,
}

impl Spread {
    /// Computed from samples in any order; `None` with fewer than the 100 samples that a 99th percentile needs.
    pub fn of(mut samples: Vec<u64>) -> Option<Self> {
        if samples.len() < 100 {
            return None;
        }
        samples.sort_unstable();
        let rank = |per_cent: usize| samples[(samples.len() * per_cent).div_ceil(100) - 1];
        Some(Spread { median_ns: rank(50), p99_ns: rank(99) })
    }
}

/// A closed loop on loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoFloor {
    /// Its transport.
    pub transport: Transport,
    /// Its family.
    pub family: Family,
    /// Its round trips.
    pub round_trip: Spread,
}

/// A host's noise floor, measured once by its agent before a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Time for one clock reading, median over batches, nanoseconds.
    pub clock_read_ns: u64,
    /// The same in the best batch.
    pub clock_read_least_ns: u64,
    /// Clock resolution: the smallest step between two consecutive readings that differ, nanoseconds.
    pub clock_step_ns: u64,
    /// By how much a sleep of 0.5 ms exceeded 0.5 ms.
    pub timer_late: Option<Spread>,
    /// Time from the kernel's arrival timestamp of a datagram to the return of the receive call that delivered it.
    pub arrival_stamp: Option<Spread>,
    /// Round trips of 64 bytes on loopback; one thread polls both ends. Tests that this host cannot run are absent.
    pub echoes: Vec<EchoFloor>,
}

impl fmt::Display for NoiseFloor {
    /// The most important figures, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock read {}", print_duration(self.clock_read_ns))?;
        if let Some(late) = self.timer_late {
            write!(f, ", timer late {}", print_duration(late.median_ns))?;
        }
        let echoes: Vec<String> = self
            .echoes
            .iter()
            .map(|echo| {
                let median = print_duration(echo.round_trip.median_ns);
                format!("{median} ({} {})", echo.transport, echo.family)
            })
            .collect();
        if echoes.is_empty() { Ok(()) } else { write!(f, ", loopback echo {}", echoes.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_by_nearest_rank_and_needs_a_sample_above_it() {
        assert_eq!(Spread::of((1..=200).rev().collect()), Some(Spread { median_ns: 100, p99_ns: 198 }));
        assert_eq!(Spread::of((1..=99).collect()), None);
    }

    #[test]
    fn a_floor_is_told_in_a_line() {
        let spread = |median_ns| Spread { median_ns, p99_ns: 2 * median_ns };
        let echo =
            |transport, family, median_ns| EchoFloor { transport, family, round_trip: spread(median_ns) };
        let mut floor = NoiseFloor {
            clock_read_ns: 24,
            clock_read_least_ns: 22,
            clock_step_ns: 1,
            timer_late: Some(spread(58_300)),
            arrival_stamp: None,
            echoes: vec![
                echo(Transport::Udp, Family::Ipv4, 6_120),
                echo(Transport::Udp, Family::Ipv6, 6_480),
            ],
        };
        let text = "clock read 24 ns, timer late 58.3 us, loopback echo 6.1 us (udp ipv4), 6.5 us (udp ipv6)";
        assert_eq!(floor.to_string(), text);
        (floor.timer_late, floor.echoes) = (None, Vec::new());
        assert_eq!(floor.to_string(), "clock read 24 ns");
    }
}
