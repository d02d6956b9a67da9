//! What a client does when the family that it tries first fails: the end of each run, and of a scenario's runs
//! together.

use crate::run::Run;
use crate::scenario::family_label;
use crate::times::format_time;
use stacklab_analysis::statistics::median;
use stacklab_model::Family;

/// A second attempt within this time after the failure of the first did not wait, ms.
const AT_ONCE_MS: f64 = 20.0;

/// The end of a run in which a family fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fallback {
    /// Data came over the other family.
    Other,
    /// Data came over the family itself; whether the client was killed at the limit all the same.
    Same { is_killed: bool },
    /// The client gave up, or was killed at the limit; whether it tried the other family.
    Nothing { is_killed: bool, has_tried: bool },
}

impl Fallback {
    fn of(run: &Run, family: Family) -> Self {
        match &run.first_byte {
            Some(first) if first.family == family => Fallback::Same { is_killed: run.end.is_killed },
            Some(_) => Fallback::Other,
            None => {
                let has_tried = run.attempts.iter().any(|attempt| attempt.family != family);
                Fallback::Nothing { is_killed: run.end.is_killed, has_tried }
            }
        }
    }

    fn describe(self, runs: &[&Run], family: Family) -> String {
        let other = family_label(other_family(family));
        match self {
            Fallback::Other => describe_delay(runs, family),
            Fallback::Same { is_killed: false } => format!("stays with {}", family_label(family)),
            Fallback::Same { is_killed: true } => {
                format!("stays with {}, and hangs until the limit", family_label(family))
            }
            Fallback::Nothing { is_killed, has_tried } => {
                let end = if is_killed { "no data until the limit" } else { "fails" };
                let tried = if has_tried { "though it tries" } else { "without trying" };
                format!("{end}, {tried} {other}")
            }
        }
    }
}

pub(crate) fn other_family(family: Family) -> Family {
    match family {
        Family::Ipv4 => Family::Ipv6,
        Family::Ipv6 => Family::Ipv4,
    }
}

/// `IPv4 after 201 ms`, of runs that end over the other family.
fn describe_delay(runs: &[&Run], family: Family) -> String {
    let other = other_family(family);
    let label = family_label(other);
    let mut delays = Vec::new();
    for run in runs {
        let first = run.first_attempt(family);
        let second = run.first_attempt(other);
        if let (Some(first), Some(second)) = (first, second) {
            delays.push(second.at_ms - first.at_ms);
        }
    }
    match median(&delays) {
        None => format!("{label} without trying {}", family_label(family)),
        Some(delay) if delay < 0.0 => format!("{label} first"),
        Some(delay) if delay < AT_ONCE_MS => format!("{label} at once, after {}", format_time(delay)),
        Some(delay) => format!("{label} after {}", format_time(delay)),
    }
}

/// What a client does in a scenario in which a family fails: each end with its number of runs, unless it is the same
/// in all.
pub(crate) fn describe_fallback(runs: &[Run], family: Family) -> String {
    let mut ends: Vec<(Fallback, Vec<&Run>)> = Vec::new();
    for run in runs {
        let end = Fallback::of(run, family);
        match ends.iter_mut().find(|(known, _)| *known == end) {
            Some((_, same)) => same.push(run),
            None => ends.push((end, vec![run])),
        }
    }
    let mut parts = Vec::new();
    for (end, same) in &ends {
        let text = end.describe(same, family);
        let is_only = ends.len() == 1;
        parts.push(if is_only { text } else { format!("{text} ({} of {} runs)", same.len(), runs.len()) });
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::run;
    use Family::{Ipv4, Ipv6};

    #[test]
    fn says_when_the_other_family_is_tried() {
        let fallen_back = run(&[(Ipv6, 1.0), (Ipv4, 202.0)], Some(Ipv4));
        assert_eq!(describe_fallback(std::slice::from_ref(&fallen_back), Ipv6), "IPv4 after 201 ms");
        let at_once = run(&[(Ipv6, 1.0), (Ipv4, 1.5)], Some(Ipv4));
        assert_eq!(describe_fallback(&[at_once], Ipv6), "IPv4 at once, after 0.5 ms");
        let never = run(&[(Ipv4, 1.0)], Some(Ipv4));
        assert_eq!(describe_fallback(&[never], Ipv6), "IPv4 without trying IPv6");
        let mut stuck = run(&[(Ipv6, 1.0)], Some(Ipv6));
        assert_eq!(describe_fallback(&[stuck.clone()], Ipv6), "stays with IPv6");
        stuck.end.is_killed = true;
        assert_eq!(describe_fallback(&[stuck], Ipv6), "stays with IPv6, and hangs until the limit");
        let mut failed = run(&[(Ipv6, 1.0)], None);
        assert_eq!(describe_fallback(&[failed.clone()], Ipv6), "fails, without trying IPv4");
        failed.end.is_killed = true;
        let text = describe_fallback(&[fallen_back, failed], Ipv6);
        assert_eq!(
            text,
            "IPv4 after 201 ms (1 of 2 runs); no data until the limit, without trying IPv4 (1 of 2 runs)"
        );
    }
}
