//! The variation of delays in the order of sending: IPDV of RFC 3393, as RFC 8219 asks for it.

use crate::stats::flow::MAX_DELAY_NS;
use hdrhistogram::Histogram;
use stacklab_model::Ipdv;

/// Messages of a flow whose delays are kept: one that arrives later than that many others makes no pair.
const KEPT: usize = 64;

/// The last messages of a flow, each in the place of its number.
pub(crate) struct LastDelays([Option<Message>; KEPT]);

#[derive(Clone, Copy)]
struct Message {
    sequence: u64,
    slice: u8,
    delay_ns: u64,
}

impl LastDelays {
    pub(crate) fn new() -> Self {
        LastDelays([None; KEPT])
    }

    fn find(&self, sequence: u64, slice: u8) -> Option<u64> {
        let message = self.0[(sequence % KEPT as u64) as usize]?;
        (message.sequence == sequence && message.slice == slice).then_some(message.delay_ns)
    }
}

/// The differences of all flows.
pub(crate) struct IpdvRecorder {
    /// Amounts by which the second message took less time.
    shorter: Histogram<u64>,
    /// Amounts by which it took longer, or nothing.
    longer: Histogram<u64>,
    min_ns: i64,
    max_ns: i64,
}

impl IpdvRecorder {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_DELAY_NS, 3).expect("constant bounds are valid");
        IpdvRecorder { shorter: histogram.clone(), longer: histogram, min_ns: i64::MAX, max_ns: i64::MIN }
    }

    /// Records the first copy of a message. A pair is complete with its second arrival, whichever that is; the gap
    /// between two slices makes none.
    pub(crate) fn record(&mut self, flow: &mut LastDelays, sequence: u64, slice: u8, delay_ns: u64) {
        let before = sequence.checked_sub(1).and_then(|before| flow.find(before, slice));
        let after = sequence.checked_add(1).and_then(|after| flow.find(after, slice));
        flow.0[(sequence % KEPT as u64) as usize] = Some(Message { sequence, slice, delay_ns });
        if let Some(before_ns) = before {
            self.add(before_ns, delay_ns);
        }
        if let Some(after_ns) = after {
            self.add(delay_ns, after_ns);
        }
    }

    fn add(&mut self, first_ns: u64, second_ns: u64) {
        let by_ns = i64::try_from(first_ns.abs_diff(second_ns)).unwrap_or(i64::MAX);
        let difference_ns = if second_ns < first_ns { -by_ns } else { by_ns };
        let histogram = if difference_ns < 0 { &mut self.shorter } else { &mut self.longer };
        histogram.saturating_record(difference_ns.unsigned_abs());
        self.min_ns = self.min_ns.min(difference_ns);
        self.max_ns = self.max_ns.max(difference_ns);
    }

    pub(crate) fn join(&mut self, other: &IpdvRecorder) {
        for (all, more) in [(&mut self.shorter, &other.shorter), (&mut self.longer, &other.longer)] {
            all.add(more).expect("both have the same bounds");
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// `None` without a pair.
    pub(crate) fn finish(&self) -> Option<Ipdv> {
        let pairs = self.shorter.len() + self.longer.len();
        if pairs == 0 {
            return None;
        }
        // By nearest rank; the largest of the shorter ones comes first.
        let rank = pairs.div_ceil(2);
        let median_ns = match rank.checked_sub(self.shorter.len()) {
            Some(rank) if rank > 0 => value_at(&self.longer, rank),
            _ => -value_at(&self.shorter, self.shorter.len() - rank + 1),
        };
        let Self { min_ns, max_ns, .. } = *self;
        Some(Ipdv { pairs, min_ns, median_ns: median_ns.clamp(min_ns, max_ns), max_ns })
    }
}

/// The value of this rank from 1, the least first.
fn value_at(histogram: &Histogram<u64>, rank: u64) -> i64 {
    let mut seen = 0;
    for bucket in histogram.iter_recorded() {
        seen += bucket.count_at_value();
        if seen >= rank {
            return i64::try_from(bucket.value_iterated_to()).unwrap_or(i64::MAX);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as they arrive: number, slice, delay.
    fn record(messages: &[(u64, u8, u64)]) -> Option<Ipdv> {
        let mut recorder = IpdvRecorder::new();
        let mut flow = LastDelays::new();
        for (sequence, slice, delay_ns) in messages {
            recorder.record(&mut flow, *sequence, *slice, *delay_ns);
        }
        recorder.finish()
    }

    #[test]
    fn differences_are_of_messages_sent_in_turn() {
        // Delays 20 10 25 25: differences -10, 15 and 0.
        let in_order = record(&[(0, 0, 20), (1, 0, 10), (2, 0, 25), (3, 0, 25)]);
        assert_eq!(in_order, Some(Ipdv { pairs: 3, min_ns: -10, median_ns: 0, max_ns: 15 }));
        let reordered = record(&[(0, 0, 20), (2, 0, 25), (1, 0, 10), (3, 0, 25)]);
        assert_eq!(reordered, in_order);
    }

    #[test]
    fn lost_messages_and_other_slices_make_no_pair() {
        assert_eq!(record(&[(0, 0, 20), (2, 0, 30)]), None);
        assert_eq!(record(&[(0, 0, 20), (1, 1, 30)]), None);
        // Too late: its neighbours' places are taken.
        assert_eq!(record(&[(0, 0, 20), (64, 0, 30), (1, 0, 40)]), None);
        assert_eq!(record(&[(u64::MAX, 0, 20), (0, 0, 30)]), None);
    }

    #[test]
    fn median_may_be_below_zero() {
        let falling: Vec<_> = (0..100).map(|n| (n, 0, 1_000_000 - n * 1000)).collect();
        let ipdv = record(&falling).unwrap();
        assert_eq!((ipdv.pairs, ipdv.min_ns, ipdv.max_ns), (99, -1000, -1000));
        assert_eq!(ipdv.median_ns, -1000);
        let one = record(&[(0, 0, 5), (1, 0, 3)]).unwrap();
        assert_eq!(one, Ipdv { pairs: 1, min_ns: -2, median_ns: -2, max_ns: -2 });
    }

    #[test]
    fn threads_have_their_differences_together() {
        let mut recorders = [IpdvRecorder::new(), IpdvRecorder::new()];
        for (recorder, delays) in recorders.iter_mut().zip([[10, 30], [30, 10]]) {
            let mut flow = LastDelays::new();
            for (sequence, delay_ns) in (0..).zip(delays) {
                recorder.record(&mut flow, sequence, 0, delay_ns);
            }
        }
        let [mut all, other] = recorders;
        all.join(&other);
        assert_eq!(all.finish(), Some(Ipdv { pairs: 2, min_ns: -20, median_ns: -20, max_ns: 20 }));
    }
}
