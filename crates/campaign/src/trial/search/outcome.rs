//! The run of an arm of a search: its figure or the reason for its absence, and its slices.

use crate::trial::search::bounds::Bounds;
use crate::trial::search::slice::MAX_REALTIME_NS;
use crate::trial::search::{Arm, SearchedArm, searches_loads};
use stacklab_model::{
    Direction, Drops, HostReport, Length, LinkBucket, Metric, Pacing, RunRecord, RunStatus, SearchOutcome,
    SearchSlice, SearchSpec, SenderPriority, Value, Values, Warning, count,
};
use stacklab_search::controller::Found;
use stacklab_trial::figures;
use stacklab_trial::results::interleaved::JointFigures;

/// The share of an arm's rounds that may have no valid slice.
const MAX_NEVER_VALID: f64 = 0.1;
/// The share of repeated slices that a run has without a warning.
const MAX_REPEATED: f64 = 0.1;

/// How the search for an arm's load ended.
#[derive(Clone, Default)]
pub(super) struct LoadOutcome {
    pub searched: SearchedArm,
    /// Messages per second; `None` if the search did not end.
    pub load: Option<f64>,
    pub reached_highest: bool,
    /// Whether the search ended because the tester disturbed an arm.
    pub was_given_up: bool,
    pub slice_ns: u64,
    /// Why there was none.
    pub reason: Option<String>,
}

/// What the search found for an arm.
pub(super) struct ArmOutcome {
    pub load: LoadOutcome,
    pub slice_ns: u64,
    /// Of its goal, or why there are none.
    pub bounds: Result<Bounds, String>,
    /// Others that are asked for: of bursts, losses, recoveries and connections.
    pub figures: Vec<(Metric, Value)>,
}

/// Makes the run. Its reports are those of the flood, which show that the path is the planned one; the sender's has the
/// slices.
pub(super) fn make_run(
    arm: Arm<'_>,
    search: &SearchSpec,
    outcome: ArmOutcome,
    started_unix_ns: u64,
    wall_ns: u64,
) -> RunRecord {
    let trial = arm.prepared.trial;
    let mut spec = arm.prepared.spec.clone();
    // Where no load was searched, its slices are those of something else.
    let longest_ns = arm.slices.iter().map(SearchSlice::duration_ns).max().unwrap_or(0);
    let slice_ns = if outcome.slice_ns > 0 { outcome.slice_ns } else { longest_ns };
    spec.probe.length = Length::Time(slice_ns.max(1));
    spec.probe.pacing = Pacing::Search(*search);
    let mut values = Values::default();
    if searches_loads(&spec) {
        values.insert(Metric::LoadAtLoss, find_value(arm.bucket, search, &outcome.load));
    }
    if search.goal.is_some() {
        for (metric, value) in list_bounds(&outcome.bounds, arm.bucket) {
            values.insert(metric, value);
        }
    }
    values.extend(outcome.figures);
    let mut warnings = warn_of_slices(&arm.slices);
    warnings.extend(warn_of_priority(arm.prepared.spec.sender_priority, &arm.slices));
    let direction = Direction::of(&trial.cell);
    let flood = arm.flood;
    let joint = JointFigures::default();
    let seen = figures(&arm.prepared.path, &arm.flood_spec, direction, flood.reports, joint, &flood.limits);
    let status = match arm.failure {
        Some(reason) => RunStatus::Invalid(vec![reason]),
        None => seen.status,
    };
    let mut host_reports: Vec<HostReport> = seen.host_reports.into_iter().map(without_flood).collect();
    if let Some(sender) = host_reports.first_mut() {
        sender.search = arm.slices;
    }
    RunRecord {
        trial: trial.clone(),
        spec,
        started_unix_ns,
        wall_ns,
        status,
        values,
        drops: Drops::default(),
        host_reports,
        warnings,
    }
}

/// A report of the flood without its figures, which are not the run's.
fn without_flood(report: HostReport) -> HostReport {
    HostReport {
        delays: None,
        delay_points: None,
        pacing_error: None,
        series: Vec::new(),
        slices: Vec::new(),
        ..report
    }
}

/// A searched load, or why there is none. What a full bucket lets pass does not count.
pub(super) fn find_value(bucket: Option<LinkBucket>, search: &SearchSpec, outcome: &LoadOutcome) -> Value {
    let SearchedArm { rounds, never_valid } = outcome.searched;
    if let Some(reason) = &outcome.reason {
        return Value::Missing(reason.clone());
    }
    if f64::from(never_valid) > MAX_NEVER_VALID * f64::from(rounds) {
        let all = count(rounds, "round");
        return Value::Missing(format!("the tester disturbed all slices of {never_valid} of {all}"));
    }
    let Some(load) = outcome.load else {
        return Value::Missing(match rounds {
            0 => "nothing of a flood arrived".to_owned(),
            rounds if outcome.was_given_up => {
                let after = count(rounds, "round");
                format!("the search was given up after {after}: the tester disturbed the other arm")
            }
            rounds => format!("the search did not end within {}", count(rounds, "round")),
        });
    };
    if outcome.reached_highest {
        return Value::Missing(format!("at least {:.0} messages/s, the highest load", search.highest_load()));
    }
    let seconds = outcome.slice_ns as f64 / 1e9;
    // A slice begins with a full bucket of a link's rate, which lets its burst pass at once.
    let load = bucket.map_or(load, |bucket| bucket.find_sustained_rate(load * seconds, seconds));
    Value::finite(load, "the search has no load")
}

/// The figures of a goal. What a full bucket lets pass when a trial begins does not count.
fn list_bounds(bounds: &Result<Bounds, String>, bucket: Option<LinkBucket>) -> Vec<(Metric, Value)> {
    let Bounds { found, slice_ns } = match bounds {
        // Like a search in turns that reached its highest load: more is carried than was tried.
        Ok(Bounds { found: Found { lower: Some(load), upper: None, .. }, .. }) => {
            return list_missing(&format!("at least {load:.0} messages/s, the highest load that was tried"));
        }
        Ok(bounds) => bounds,
        Err(reason) => return list_missing(reason),
    };
    let seconds = *slice_ns as f64 / 1e9;
    let mut figures = Vec::new();
    for (metric, load, reason) in [
        (Metric::LowerBound, found.lower, "no load that was tried is a lower bound"),
        (Metric::UpperBound, found.upper, "no load that was tried is an upper bound"),
        (Metric::ConditionalThroughput, found.conditional_throughput, "there is no lower bound"),
    ] {
        let sustained = load.map(|load| match bucket {
            Some(bucket) => bucket.find_sustained_rate(load * seconds, seconds),
            None => load,
        });
        let missing = Value::Missing(reason.to_owned());
        figures.push((metric, sustained.map_or(missing, |load| Value::finite(load, reason))));
    }
    figures
}

fn list_missing(reason: &str) -> Vec<(Metric, Value)> {
    let metrics = [Metric::LowerBound, Metric::UpperBound, Metric::ConditionalThroughput];
    metrics.map(|metric| (metric, Value::Missing(reason.to_owned()))).into()
}

fn warn_of_priority(asked_for: SenderPriority, slices: &[SearchSlice]) -> Option<Warning> {
    let has_short_ones = slices.iter().any(|slice| slice.duration_ns() <= MAX_REALTIME_NS);
    let lacks_it = has_short_ones && !slices.iter().any(|slice| slice.at_realtime_priority);
    (asked_for == SenderPriority::Realtime && lacks_it).then(|| Warning {
        code: "search_priority".to_owned(),
        text: "the sender had no realtime priority: this user has no right to it".to_owned(),
        advice: "run it as root, or with a limit rtprio of 1 (ulimit -r 1): other programs keep a sender waiting, and \
                 such slices are repeated"
            .to_owned(),
    })
}

/// Warnings of slices that were repeated, and of a generator at its limit.
fn warn_of_slices(slices: &[SearchSlice]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut repeated = 0;
    let mut not_sent = 0;
    let mut bad = 0;
    let mut reason = "";
    for slice in slices {
        // A trial of the frame loss rate has a load that not every arm can be sent, and one of the recovery time loses
        // something: that is its result.
        let is_of_search = slice.percent.is_none() && slice.recovery.is_none();
        match &slice.outcome {
            SearchOutcome::Good => {}
            SearchOutcome::Bad => bad += u32::from(is_of_search),
            SearchOutcome::NotSent => not_sent += u32::from(is_of_search),
            SearchOutcome::Invalid(why) => {
                repeated += 1;
                reason = why;
            }
        }
    }
    if f64::from(repeated) > MAX_REPEATED * slices.len() as f64 {
        warnings.push(Warning {
            code: "search_repeats".to_owned(),
            text: format!("{repeated} of {} slices were repeated, the last because {reason}", slices.len()),
            advice: "leave the machine to the search: other programs keep the sender or the receiver waiting"
                .to_owned(),
        });
    }
    if not_sent > bad {
        warnings.push(Warning {
            code: "search_generator".to_owned(),
            text: format!(
                "{not_sent} slices were bad because not all was sent, and {bad} by loss or waiting"
            ),
            advice:
                "the load is the limit of generator and path together: use routers with a thread (router_queue), or a \
                     link with a lower rate"
                    .to_owned(),
        });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(outcomes: &[(SearchOutcome, usize)]) -> Vec<SearchSlice> {
        let mut slices = Vec::new();
        for (outcome, count) in outcomes {
            let slice = SearchSlice { outcome: outcome.clone(), ..SearchSlice::default() };
            slices.extend(vec![slice; *count]);
        }
        slices
    }

    #[test]
    fn a_priority_that_was_refused_is_a_warning() {
        let taken = SearchSlice { at_realtime_priority: true, ..SearchSlice::default() };
        // Longer slices, of a goal, have none.
        let slices = [SearchSlice { load: 1000.0, offered: 100, ..SearchSlice::default() }, taken];
        let long = SearchSlice { load: 1000.0, offered: 1000, ..SearchSlice::default() };
        assert!(warn_of_priority(SenderPriority::Realtime, &[long]).is_none());
        assert!(warn_of_priority(SenderPriority::Realtime, &[]).is_none(), "nothing was sent");
        assert!(warn_of_priority(SenderPriority::Normal, &slices[..1]).is_none());
        assert!(warn_of_priority(SenderPriority::Realtime, &slices).is_none());
        let warning = warn_of_priority(SenderPriority::Realtime, &slices[..1]).unwrap();
        assert_eq!(warning.code, "search_priority");
    }

    fn codes(outcomes: &[(SearchOutcome, usize)]) -> Vec<String> {
        warn_of_slices(&slices(outcomes)).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn bounds_are_without_the_bucket() {
        let found = Found { lower: Some(1050.0), upper: Some(1200.0), conditional_throughput: Some(1040.0) };
        let bounds = Ok(Bounds { found, slice_ns: 1_000_000_000 });
        let bucket = LinkBucket { messages_per_second: 1000.0, burst: 50.0 };
        assert_eq!(
            list_bounds(&bounds, Some(bucket)),
            [
                (Metric::LowerBound, Value::Measured(1000.0)),
                (Metric::UpperBound, Value::Measured(1150.0)),
                (Metric::ConditionalThroughput, Value::Measured(1000.0)),
            ]
        );
        assert_eq!(list_bounds(&bounds, None)[0].1, Value::Measured(1050.0));
        // More is carried than was tried, so no figure is a bound.
        let open = Ok(Bounds { found: Found { upper: None, ..found }, slice_ns: 1 });
        let reason = "at least 1050 messages/s, the highest load that was tried";
        assert!(
            list_bounds(&open, None).iter().all(|(_, value)| *value == Value::Missing(reason.to_owned()))
        );
        let none = list_bounds(&Err("the tester disturbed it".to_owned()), None);
        assert!(none.iter().all(|(_, value)| value.measured().is_none()) && none.len() == 3);
    }

    #[test]
    fn repeated_slices_are_reported() {
        let invalid = SearchOutcome::Invalid("the sender waited 3 ms for a processor".to_owned());
        assert!(codes(&[(SearchOutcome::Good, 19), (invalid.clone(), 1)]).is_empty());
        assert_eq!(codes(&[(SearchOutcome::Good, 8), (invalid, 2)]), ["search_repeats"]);
    }

    #[test]
    fn a_generator_at_its_limit_is_reported() {
        for (bad, expected) in [(10, &[][..]), (2, &["search_generator"][..])] {
            assert_eq!(codes(&[(SearchOutcome::Bad, bad), (SearchOutcome::NotSent, 10)]), expected);
        }
    }

    #[test]
    fn trials_above_an_arms_limit_are_no_warning() {
        let lost = SearchSlice { percent: Some(100), outcome: SearchOutcome::Bad, ..SearchSlice::default() };
        let not_sent = SearchSlice { outcome: SearchOutcome::NotSent, ..lost.clone() };
        let mut all = slices(&[(SearchOutcome::Bad, 2), (SearchOutcome::NotSent, 1)]);
        all.extend(vec![not_sent; 10]);
        assert_eq!(warn_of_slices(&all), []);
        // Nor do they hide that a search met the generator's limit.
        all = slices(&[(SearchOutcome::Bad, 2), (SearchOutcome::NotSent, 3)]);
        all.extend(vec![lost; 10]);
        assert_eq!(warn_of_slices(&all)[0].code, "search_generator");
    }
}
