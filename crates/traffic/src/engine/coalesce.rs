//! Receive coalescing: receives are delayed until more data has arrived, since a wake-up per packet costs more than
//! the receive.

use crate::sys;
use stacklab_model::{Io, Metric, Transport, TrialSpec};
use std::time::Duration;

const LEAST: Duration = Duration::from_micros(50);
const MOST: Duration = Duration::from_millis(1);

/// Whether a trial uses receive coalescing: floods do, except with plain I/O.
pub(crate) fn coalesces(spec: &TrialSpec) -> bool {
    spec.is_flood() && spec.io != Io::Send && (spec.transport == Transport::Udp || !asks_for_delays(spec))
}

/// Whether the arrival time of each message is known. The kernel timestamps each datagram. In a byte stream it
/// timestamps only the last segment of a receive, so all messages of one receive would have the same time.
pub fn knows_arrival_times(spec: &TrialSpec) -> bool {
    spec.transport == Transport::Udp || !coalesces(spec)
}

fn asks_for_delays(spec: &TrialSpec) -> bool {
    spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay)
}

/// Adapts the delay of the next receive: longer after little data, half as long after much data, none after an empty
/// receive.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    rest: Duration,
}

impl Coalescer {
    /// Sleeps before a receive; `brought` is what the previous one received, in the unit of `little` and `much`.
    pub(crate) fn rest(&mut self, brought: usize, little: usize, much: usize) {
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
        let mut coalescer = Coalescer::default();
        let mut rests = |brought: &[usize]| -> Vec<u128> {
            let after = brought.iter().map(|brought| {
                coalescer.adapt(*brought, 16, 32);
                coalescer.rest.as_micros()
            });
            after.collect()
        };
        assert_eq!(rests(&[0, 1, 1, 16, 1, 1]), [0, 50, 150, 350, 750, 1000]);
        assert_eq!(rests(&[17, 31, 32, 64]), [1000, 1000, 500, 250]);
        assert_eq!(rests(&[0]), [0], "what comes after nothing may be far away, and is waited for");
    }
}
