//! What a slice of a search says of the path, and when it says nothing.

use stacklab_model::{SearchOutcome, SearchSlice, print_duration};
use stacklab_search::paired::Slice;

/// The share of a slice by which a sender may be late, in sum.
pub(super) const MAX_LATE: f64 = 0.005;
/// The share of a link's limit from which on it may hold a sender up. The bucket of a link lets a flood of 100 ms seem
/// about one per cent faster than it is.
pub(super) const MIN_HELD_UP: f64 = 0.99;
/// The part of the lost messages that a good slice may have which the receiver's socket may lose.
const MAX_TESTER_PART: u32 = 10;

/// Judges a slice that was to last this long, from its counts: good or bad for the path, or disturbed by the tester.
///
/// A sender that was late while its thread waited for a processor says nothing of the path, nor does a receiver whose
/// socket had no room. These rules use nothing that the path did, so they favour no arm. A sender that was late though
/// it could run has been held up by the path only near `limit`, the messages per second that came out of a flood of a
/// link with a rate: what it did not send counts as lost there. Elsewhere nothing holds a sender up but its own limit
/// and the hypervisor.
pub(super) fn judge(slice: &SearchSlice, length_ns: u64, loss_ppm: u32, limit: Option<f64>) -> SearchOutcome {
    let offered = slice.offered;
    if offered == 0 {
        return SearchOutcome::Invalid("nothing was sent".to_owned());
    }
    let is_late = slice.late_ns as f64 > MAX_LATE * length_ns as f64;
    let waited_ns = slice.waited_ns.unwrap_or(0);
    if is_late && waited_ns >= slice.late_ns / 2 {
        let waited = print_duration(waited_ns);
        return SearchOutcome::Invalid(format!("the sender waited {waited} for a processor"));
    }
    let at_receiver = Slice { offered, lost: slice.lost_at_receiver, waiting: 0 };
    if at_receiver.is_bad(loss_ppm / MAX_TESTER_PART) {
        let lost = slice.lost_at_receiver;
        return SearchOutcome::Invalid(format!("the receiver's socket had no room for {lost} messages"));
    }
    let lost = slice.lost();
    let waiting = slice.late(loss_ppm);
    let carried = Slice { offered, lost, waiting };
    if carried.is_bad(loss_ppm) {
        return SearchOutcome::Bad;
    }
    if is_late && limit.is_none_or(|limit| slice.load < MIN_HELD_UP * limit) {
        let late = print_duration(slice.late_ns);
        return SearchOutcome::Invalid(format!("the sender was {late} late though it could run"));
    }
    let unsent = slice.unsent();
    let intended = Slice { offered: offered + unsent, lost: lost + unsent, waiting };
    if is_late && intended.is_bad(loss_ppm) {
        return SearchOutcome::NotSent;
    }
    SearchOutcome::Good
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_NS: u64 = 100_000_000;

    /// A slice of 10,000 messages, of which none is lost.
    fn slice() -> SearchSlice {
        SearchSlice { load: 100_000.0, offered: 10_000, received: 10_000, ..SearchSlice::default() }
    }

    fn judge_slice(slice: &SearchSlice) -> SearchOutcome {
        judge(slice, LENGTH_NS, 5000, Some(100_000.0))
    }

    fn is_invalid(slice: &SearchSlice) -> bool {
        matches!(judge_slice(slice), SearchOutcome::Invalid(_))
    }

    #[test]
    fn losses_and_waiting_are_the_paths() {
        assert_eq!(judge_slice(&slice()), SearchOutcome::Good);
        assert_eq!(judge_slice(&SearchSlice { received: 9_950, ..slice() }), SearchOutcome::Good);
        assert_eq!(judge_slice(&SearchSlice { received: 9_949, ..slice() }), SearchOutcome::Bad);
        assert_eq!(judge_slice(&SearchSlice { received: 9_960, waiting: 11, ..slice() }), SearchOutcome::Bad);
        let outcomes = [10_000, 9_999]
            .map(|received| judge(&SearchSlice { received, waiting: 1, ..slice() }, LENGTH_NS, 0, None));
        assert_eq!(outcomes, [SearchOutcome::Good, SearchOutcome::Bad]);
    }

    #[test]
    fn a_sender_that_waited_says_nothing() {
        let late = SearchSlice { late_ns: 2_000_000, ..slice() };
        assert!(is_invalid(&SearchSlice { waited_ns: Some(1_500_000), ..late.clone() }));
        // It ran and was late: the path held it up.
        assert_eq!(
            judge_slice(&SearchSlice { waited_ns: Some(10_000), ..late.clone() }),
            SearchOutcome::NotSent
        );
        assert_eq!(judge_slice(&late), SearchOutcome::NotSent);
        assert!(matches!(judge(&late, LENGTH_NS, 5000, None), SearchOutcome::Invalid(_)));
        assert!(is_invalid(&SearchSlice { load: 98_900.0, ..late }), "the link carries that load");
        let hardly_late = SearchSlice { late_ns: 400_000, waited_ns: Some(400_000), ..slice() };
        assert_eq!(judge_slice(&hardly_late), SearchOutcome::Good);
    }

    #[test]
    fn losses_of_the_receivers_socket_are_not_the_paths() {
        let full = SearchSlice { received: 9_995, lost_at_receiver: 5, ..slice() };
        assert_eq!(judge_slice(&full), SearchOutcome::Good);
        assert!(is_invalid(&SearchSlice { received: 9_994, lost_at_receiver: 6, ..slice() }));
        assert!(is_invalid(&SearchSlice::default()));
    }
}
