//! The common time axis of the timelines of a network. A wait of more than [`MAX_WAIT_MS`] in which nothing happens is
//! shortened, and marked: to scale, a client that waits for minutes would leave no room for the rest.

/// The longest wait that is drawn to scale, ms.
pub(super) const MAX_WAIT_MS: f64 = 2_000.0;
/// The least width of a shortened wait, px: room for the labels of the ticks at both ends.
const MIN_CUT: f64 = 56.0;
/// The shortest time that the width of the plot shows, ms: a fraction of a millisecond must not look like a wait.
const MIN_SPAN_MS: f64 = 20.0;
/// The least distance of ticks, px.
const MIN_TICK_GAP: f64 = 56.0;

/// Times after the first query, ms, and their places, px.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    pieces: Vec<Piece>,
}

/// A part of the axis that is to scale, or a shortened wait.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    from_ms: f64,
    to_ms: f64,
    left: f64,
    right: f64,
    is_cut: bool,
}

/// A shortened wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    pub left: f64,
    pub right: f64,
    /// How long the wait is.
    pub length_ms: f64,
}

/// A tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tick {
    pub at: f64,
    pub ms: f64,
}

impl Scale {
    /// The axis from 0 to the last of the times, from `left` to `right`. Times are in any order.
    pub(super) fn new(times_ms: &[f64], left: f64, right: f64) -> Self {
        let mut pieces = split_at_waits(times_ms);
        let width = right - left;
        let mut linear_ms = 0.0;
        let mut cuts = 0.0;
        for piece in &pieces {
            if piece.is_cut {
                cuts += 1.0;
            } else {
                linear_ms += piece.to_ms - piece.from_ms;
            }
        }
        let per_ms = ((width - cuts * MIN_CUT) / linear_ms).min(width / MIN_SPAN_MS);
        let cut = if cuts > 0.0 { (width - per_ms * linear_ms) / cuts } else { 0.0 };
        let mut at = left;
        for piece in &mut pieces {
            piece.left = at;
            at += if piece.is_cut { cut } else { per_ms * (piece.to_ms - piece.from_ms) };
            piece.right = at;
        }
        Scale { pieces }
    }

    /// The place of a time; the nearest end of the axis for times beyond it.
    pub(super) fn place(&self, ms: f64) -> f64 {
        let last = self.pieces[self.pieces.len() - 1];
        for piece in &self.pieces {
            if ms <= piece.to_ms {
                let length = piece.to_ms - piece.from_ms;
                let share = if length > 0.0 { (ms - piece.from_ms).max(0.0) / length } else { 0.0 };
                return piece.left + share * (piece.right - piece.left);
            }
        }
        last.right
    }

    /// The shortened waits.
    pub(super) fn list_cuts(&self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.is_cut) {
            let length_ms = piece.to_ms - piece.from_ms;
            cuts.push(Cut { left: piece.left, right: piece.right, length_ms });
        }
        cuts
    }

    /// Ticks at round times, and where a shortened wait ends.
    pub(super) fn list_ticks(&self) -> Vec<Tick> {
        let step = self.choose_step();
        let mut ticks: Vec<Tick> = Vec::new();
        for piece in self.pieces.iter().filter(|piece| !piece.is_cut) {
            let mut candidates = vec![piece.from_ms];
            let first = (piece.from_ms / step).floor() as u64 + 1;
            let last = (piece.to_ms / step).floor() as u64;
            for number in first..=last {
                candidates.push(number as f64 * step);
            }
            for ms in candidates {
                let at = self.place_in(piece, ms);
                if ticks.last().is_none_or(|tick| at - tick.at >= MIN_TICK_GAP * 0.99) {
                    ticks.push(Tick { at, ms });
                }
            }
        }
        ticks
    }

    fn place_in(&self, piece: &Piece, ms: f64) -> f64 {
        // The start of a piece is also the end of the wait before it.
        if ms <= piece.from_ms { piece.left } else { self.place(ms) }
    }

    /// The round number of milliseconds between ticks: 1, 2 or 5 times a power of ten.
    fn choose_step(&self) -> f64 {
        let mut per_ms: f64 = 0.0;
        for piece in self.pieces.iter().filter(|piece| !piece.is_cut && piece.to_ms > piece.from_ms) {
            per_ms = per_ms.max((piece.right - piece.left) / (piece.to_ms - piece.from_ms));
        }
        let rough = MIN_TICK_GAP / per_ms;
        let mut power = 1.0;
        loop {
            for factor in [1.0, 2.0, 5.0] {
                // Never for a rate of 0, which has no end otherwise.
                if factor * power >= rough || power >= 1e9 {
                    return factor * power;
                }
            }
            power *= 10.0;
        }
    }
}

/// The pieces between the times, without places: neighbours that are to scale are one.
fn split_at_waits(times_ms: &[f64]) -> Vec<Piece> {
    let mut times: Vec<f64> = times_ms.iter().copied().filter(|ms| *ms > 0.0).collect();
    times.sort_by(f64::total_cmp);
    let mut pieces = vec![Piece { from_ms: 0.0, to_ms: 0.0, left: 0.0, right: 0.0, is_cut: false }];
    let mut from_ms = 0.0;
    for to_ms in times {
        if to_ms - from_ms > MAX_WAIT_MS {
            pieces.push(Piece { from_ms, to_ms, left: 0.0, right: 0.0, is_cut: true });
            pieces.push(Piece { from_ms: to_ms, to_ms, left: 0.0, right: 0.0, is_cut: false });
        } else if let Some(last) = pieces.last_mut() {
            last.to_ms = to_ms;
        }
        from_ms = to_ms;
    }
    if let [only] = &mut pieces[..] {
        only.to_ms = only.to_ms.max(MIN_SPAN_MS);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_tick_times(scale: &Scale) -> Vec<f64> {
        scale.list_ticks().iter().map(|tick| tick.ms).collect()
    }

    #[test]
    fn short_runs_are_to_scale() {
        let scale = Scale::new(&[0.4, 250.0, 200.0], 100.0, 600.0);
        assert_eq!([0.0, 125.0, 250.0, 900.0].map(|ms| scale.place(ms)), [100.0, 350.0, 600.0, 600.0]);
        assert_eq!(scale.list_cuts(), []);
        assert_eq!(list_tick_times(&scale), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
    }

    #[test]
    fn a_millisecond_is_not_as_wide_as_the_plot() {
        let scale = Scale::new(&[1.0], 0.0, 500.0);
        assert_eq!(scale.place(1.0), 25.0);
        assert_eq!(list_tick_times(&scale), [0.0, 5.0, 10.0, 15.0, 20.0]);
    }

    #[test]
    fn a_wait_of_minutes_leaves_room_for_the_rest() {
        let scale = Scale::new(&[1_000.0, 131_000.0, 131_000.0, 131_500.0], 0.0, 656.0);
        // 1.5 s are to scale on what the one wait leaves.
        let places = [500.0, 1_000.0, 66_000.0, 131_000.0, 131_500.0].map(|ms| scale.place(ms));
        assert_eq!(places, [200.0, 400.0, 428.0, 456.0, 656.0]);
        assert_eq!(scale.list_cuts(), [Cut { left: 400.0, right: 456.0, length_ms: 130_000.0 }]);
        assert_eq!(
            list_tick_times(&scale),
            [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0, 131_000.0, 131_200.0, 131_400.0]
        );
    }

    #[test]
    fn a_wait_alone_takes_what_is_free() {
        let scale = Scale::new(&[1.0, 10_001.0], 0.0, 500.0);
        assert_eq!(scale.place(1.0), 25.0);
        assert_eq!(scale.list_cuts(), [Cut { left: 25.0, right: 500.0, length_ms: 10_000.0 }]);
        assert_eq!(list_tick_times(&scale), [0.0, 10_001.0]);
    }
}
