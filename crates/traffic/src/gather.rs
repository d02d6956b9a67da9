//! Receives put off until more has come: to be woken for each packet costs both hosts more than the receive itself.

use crate::sys;
use stacklab_model::{Io, Metric, Transport, TrialSpec};
use std::time::Duration;

/// How long a receive is put off at least and at most.
const LEAST: Duration = Duration::from_micros(50);
const MOST: Duration = Duration::from_millis(1);

/// Whether a trial's receives may be put off: those of a flood, unless each message has a call of its own.
pub fn gathers(spec: &TrialSpec) -> bool {
    spec.is_flood() && spec.io != Io::Plain && (spec.transport == Transport::Udp || !asks_for_delays(spec))
}

/// Whether it is known when each message arrives. The kernel stamps datagrams; of a byte stream it stamps what a receive
/// brought last, so that messages which waited for it would all have that time.
pub fn keeps_times(spec: &TrialSpec) -> bool {
    spec.transport == Transport::Udp || !gathers(spec)
}

fn asks_for_delays(spec: &TrialSpec) -> bool {
    spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay)
}

/// How long the next receive is put off: longer after one that brought little, half as long after one that brought much,
/// and not at all after one that brought nothing.
#[derive(Debug, Default)]
pub struct Gather {
    rest: Duration,
}

impl Gather {
    /// Rests before a receive, the one before having brought so much, in the unit of `little` and `much`.
    pub fn rest(&mut self, brought: usize, little: usize, much: usize) {
        self.adapt(brought, little, much);
        if self.rest >= LEAST {
            sys::sleep(self.rest);
        }
    }

    fn adapt(&mut self, brought: usize, little: usize, much: usize) {
        self.rest = match brought {
            0 => Duration::ZERO,
            brought if brought <= little => (2 * self.rest + LEAST).min(MOST),
            brought if brought >= much => self.rest / 2,
            _ => self.rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_while_little_comes_and_shrink_when_much_does() {
        let mut gather = Gather::default();
        let mut rests = |brought: &[usize]| -> Vec<u128> {
            let after = brought.iter().map(|brought| {
                gather.adapt(*brought, 16, 32);
                gather.rest.as_micros()
            });
            after.collect()
        };
        assert_eq!(rests(&[0, 1, 1, 16, 1, 1]), [0, 50, 150, 350, 750, 1000]);
        assert_eq!(rests(&[17, 31, 32, 64]), [1000, 1000, 500, 250]);
        assert_eq!(rests(&[0]), [0], "what comes after nothing may be far away, and is waited for");
    }
}
