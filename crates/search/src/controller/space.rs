//! Where between two loads the next one lies.

use crate::grid::LoadGrid;

/// A load between two others, so that one part is a power of two times a width, both are as even as possible, and the
/// lower part is not the wider one.
pub(super) fn find_middle(low: i64, high: i64, width: i64) -> i64 {
    let gap = high - low;
    if gap == 2 * width {
        return low + width;
    }
    if gap < 2 * width {
        if width % 2 == 0 {
            return find_middle(low, high, width / 2);
        }
        return low + gap / 2;
    }
    let mut smaller = width;
    while gap - 2 * smaller > 2 * smaller {
        smaller *= 2;
    }
    let larger = 2 * smaller;
    // The product of both parts is larger where they are more even.
    if smaller * (gap - smaller) > larger * (gap - larger) { low + smaller } else { high - larger }
}

/// Moves a load so that it is a width away from both bounds, or from the limits where a bound is missing; `None` where
/// both are too close.
pub(super) fn keep_apart(
    grid: &LoadGrid,
    step: i64,
    width: i64,
    lower: Option<i64>,
    upper: Option<i64>,
) -> Option<i64> {
    let low = lower.unwrap_or(0);
    let high = upper.unwrap_or(grid.top());
    let is_too_close = match (lower, upper) {
        (None, Some(upper)) => upper <= 0 || step >= upper,
        (Some(lower), Some(upper)) => step <= lower || step >= upper,
        _ => false,
    };
    if is_too_close {
        return None;
    }
    let step = if lower.is_none() || upper.is_none() { step.clamp(0, grid.top()) } else { step };
    if width >= high - low {
        return match (lower, upper) {
            (None, _) => Some(low),
            (Some(_), None) => Some(high),
            (Some(_), Some(_)) => None,
        };
    }
    let mut first = low + width;
    let mut last = high - width;
    if first > last {
        first = find_middle(low, high, width);
        last = first;
    }
    if step < first {
        return Some(if lower.is_some() { first } else { low });
    }
    if step > last {
        return Some(if upper.is_some() { last } else { high });
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_a_power_of_two() {
        assert_eq!(find_middle(0, 8, 4), 4);
        assert_eq!(find_middle(0, 12, 1), 4);
        assert_eq!(find_middle(0, 13, 1), 5);
        assert_eq!(find_middle(0, 3, 1), 1);
        assert_eq!(find_middle(0, 7, 4), 3);
    }

    #[test]
    fn loads_keep_their_distance() {
        let grid = LoadGrid::new(1.0, 1e6, &[0.01]).unwrap();
        assert_eq!(keep_apart(&grid, 11, 4, Some(10), Some(30)), Some(14));
        assert_eq!(keep_apart(&grid, 29, 4, Some(10), Some(30)), Some(26));
        assert_eq!(keep_apart(&grid, 2, 4, None, Some(30)), Some(0));
        assert_eq!(keep_apart(&grid, 31, 4, Some(10), Some(30)), None);
        assert_eq!(keep_apart(&grid, 12, 4, Some(10), Some(13)), None);
        assert_eq!(keep_apart(&grid, 0, 4, None, Some(0)), None);
    }
}
