//! What a slice of connections says of the path, and when it says nothing.

use crate::trial::search::balance;
use stacklab_model::{ConnectionState, SearchOutcome, SearchSlice, SliceConnections, count};
use stacklab_search::paired::Slice;

/// Entries that other packets may make, such as those of a router itself.
const MAX_OTHER_ENTRIES: u64 = 8;

/// Judges a slice as one of a stream, and by the routers' tables. A message whose new entry is gone is lost: what
/// answers it could not come back. Where the tables do not show what the slice is meant to be, it says nothing.
pub(super) fn judge(
    slice: &SearchSlice,
    connections: &SliceConnections,
    length_ns: u64,
    loss_ppm: u32,
    limit: Option<f64>,
) -> SearchOutcome {
    let SliceConnections { state, entries_before, entries, answered, refused } = *connections;
    let SearchSlice { offered, received, .. } = *slice;
    if state == ConnectionState::Established {
        let new = entries.saturating_sub(entries_before);
        if new > 0 {
            let made = count(new, "entry");
            return SearchOutcome::Invalid(format!("the messages of known connections made {made}"));
        }
        if entries_before < offered {
            let had = count(entries_before, "entry");
            return SearchOutcome::Invalid(format!("the router had {had} before {offered} messages"));
        }
        return balance::judge(slice, length_ns, loss_ppm, limit);
    }
    let gone = connections.lost_entries(received);
    if entries_before > MAX_OTHER_ENTRIES || entries > offered + MAX_OTHER_ENTRIES {
        return SearchOutcome::Invalid(format!(
            "the router had {entries_before} entries before {offered} messages, and {entries} after them"
        ));
    }
    if gone > 0 && refused == 0 {
        return SearchOutcome::Invalid(format!(
            "{received} messages arrived, and the router had {entries} entries: not each was of a new connection"
        ));
    }
    let kept = received.saturating_sub(gone);
    let outcome =
        balance::judge(&SearchSlice { received: kept, ..slice.clone() }, length_ns, loss_ppm, limit);
    // Answers are asked for once the slice is known to be good.
    let Some(answered) = answered.filter(|_| outcome == SearchOutcome::Good) else { return outcome };
    let unanswered = Slice { offered, lost: kept.saturating_sub(answered), waiting: 0 };
    if unanswered.is_bad(loss_ppm) {
        return SearchOutcome::Invalid(format!(
            "of {kept} connections in the table, {answered} had an answer: the way back lost it"
        ));
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_NS: u64 = 100_000_000;

    fn slice(received: u64) -> SearchSlice {
        SearchSlice { load: 100_000.0, offered: 10_000, received, ..SearchSlice::default() }
    }

    fn judge_new(received: u64, entries: u64, answered: u64, refused: u64) -> SearchOutcome {
        let connections =
            SliceConnections { entries, answered: Some(answered), refused, ..SliceConnections::default() };
        judge(&slice(received), &connections, LENGTH_NS, 5000, None)
    }

    fn assert_invalid(outcome: SearchOutcome, reason: &str) {
        let SearchOutcome::Invalid(why) = &outcome else { panic!("{outcome:?}, not {reason}") };
        assert!(why.contains(reason), "{why}");
    }

    #[test]
    fn an_entry_that_is_gone_counts_as_lost() {
        assert_eq!(judge_new(10_000, 10_000, 10_000, 0), SearchOutcome::Good);
        assert_eq!(judge_new(9_940, 10_000, 9_940, 0), SearchOutcome::Bad, "lost behind the table");
        assert_eq!(judge_new(10_000, 9_949, 9_949, 51), SearchOutcome::Bad, "evicted, though all arrived");
        assert_eq!(judge_new(10_000, 9_960, 9_960, 40), SearchOutcome::Good);
    }

    #[test]
    fn tables_must_show_what_the_slice_is() {
        assert_invalid(judge_new(10_000, 9_000, 9_000, 0), "not each was of a new connection");
        assert_invalid(judge_new(10_000, 10_009, 10_000, 0), "10009 after them");
        assert_invalid(judge_new(10_000, 10_000, 9_900, 0), "the way back lost it");
        let connections =
            SliceConnections { entries_before: 100, entries: 100, ..SliceConnections::default() };
        assert_invalid(judge(&slice(10_000), &connections, LENGTH_NS, 5000, None), "100 entries before");
    }

    #[test]
    fn known_connections_make_no_entry() {
        let known = SliceConnections {
            state: ConnectionState::Established,
            entries_before: 16_384,
            entries: 16_384,
            ..SliceConnections::default()
        };
        for (received, entries, good) in
            [(10_000, 16_384, true), (10_000, 16_000, true), (9_900, 16_384, false)]
        {
            let known = SliceConnections { entries, ..known };
            let outcome = judge(&slice(received), &known, LENGTH_NS, 5000, None);
            assert_eq!(outcome == SearchOutcome::Good, good, "{outcome:?}");
        }
        let fewer = SliceConnections { entries_before: 9_999, entries: 9_999, ..known };
        assert_invalid(judge(&slice(10_000), &fewer, LENGTH_NS, 5000, None), "9999 entries before");
        let more = SliceConnections { entries: 16_385, ..known };
        assert_invalid(judge(&slice(10_000), &more, LENGTH_NS, 5000, None), "made 1 entry");
    }
}
