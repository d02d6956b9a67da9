//! The run that stands for a network, and what came of it in a few words.

use crate::reaction::describe_fallback;
use crate::run::Run;
use crate::scenario::family_label;
use crate::times::format_time;

/// The run whose first byte is the median of all; runs without data count as longer than others, and among them the
/// end decides. `None` without runs.
pub(super) fn choose_median_run(runs: &[Run]) -> Option<&Run> {
    let mut sorted: Vec<&Run> = runs.iter().collect();
    sorted.sort_by(|one, other| {
        let first = find_first_byte(one).total_cmp(&find_first_byte(other));
        first.then(one.end.at_ms.total_cmp(&other.end.at_ms))
    });
    sorted.get(runs.len().saturating_sub(1) / 2).copied()
}

fn find_first_byte(run: &Run) -> f64 {
    run.first_byte.as_ref().map_or(f64::INFINITY, |first| first.at_ms)
}

/// `IPv4 after 252 ms`: the family that carried data, and when.
pub(super) fn describe_outcome(run: &Run) -> String {
    let Some(tried) = run.attempts.first() else { return "no TCP connection is tried".to_owned() };
    match &run.first_byte {
        Some(first) if first.family == tried.family => {
            let hangs = if run.end.is_killed { ", and it hangs until the limit" } else { "" };
            format!("{}, first byte after {}{hangs}", family_label(first.family), format_time(first.at_ms))
        }
        _ => describe_fallback(std::slice::from_ref(run), tried.family),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::run;
    use stacklab_model::Family::{Ipv4, Ipv6};

    fn with_first_byte(at_ms: Option<f64>) -> Run {
        let mut made = run(&[(Ipv6, 1.0)], Some(Ipv6));
        match at_ms {
            Some(at_ms) => made.first_byte.as_mut().unwrap().at_ms = at_ms,
            None => made.first_byte = None,
        }
        made
    }

    #[test]
    fn the_median_run_has_the_median_first_byte() {
        let runs = [Some(12.0), None, Some(10.0), Some(11.0), Some(13.0)].map(with_first_byte);
        assert_eq!(find_first_byte(choose_median_run(&runs).unwrap()), 12.0);
        assert_eq!(find_first_byte(choose_median_run(&runs[..2]).unwrap()), 12.0);
        assert_eq!(choose_median_run(&[]), None);
    }

    #[test]
    fn an_outcome_names_family_and_time() {
        assert_eq!(describe_outcome(&with_first_byte(Some(12.0))), "IPv6, first byte after 12 ms");
        assert_eq!(describe_outcome(&run(&[(Ipv6, 1.0), (Ipv4, 253.0)], Some(Ipv4))), "IPv4 after 252 ms");
        assert_eq!(describe_outcome(&with_first_byte(None)), "fails, without trying IPv4");
        assert_eq!(describe_outcome(&run(&[], None)), "no TCP connection is tried");
    }
}
