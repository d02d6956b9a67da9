//! `stacklab compare`.

use crate::cli::compare::CompareOptions;
use crate::commands::output::{print_text, width};
use crate::failure::Failure;
use stacklab_analysis::{NothingInCommon, between};
use stacklab_campaign::record::Recorded;
use stacklab_model::{Change, Metric};
use stacklab_report::between as render;
use stacklab_store::Record;
use std::path::Path;

/// Puts two records side by side.
pub(crate) fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let paths = [&options.a, &options.b];
    let [a, b] = paths.map(|path| Recorded::read(&Record::read(path)?));
    let (a, b) = (a?, b?);
    let names = paths.map(|path| path.display().to_string());
    let allowed = options.fail_on.map(|fail_on| fail_on.worse);
    let campaigns = [&a.campaign(), &b.campaign()];
    let found = between(campaigns, [&names[0], &names[1]], &options.metrics, allowed)
        .map_err(|nothing| nothing_in_common(nothing, paths.map(|path| path.as_path()), &options.metrics))?;
    print_text(&render(&found, options.format, width()))?;
    let uncertain = found.figures.iter().filter(|figure| figure.change == Change::Inconclusive).count();
    let seen = found
        .figures
        .iter()
        .filter(|figure| !matches!(figure.change, Change::Inconclusive | Change::Nothing(_)))
        .count();
    if let Some(warning) = unseen(uncertain, seen, allowed.is_some()) {
        eprintln!("stacklab: warning: {warning}");
    }
    let failing: Vec<String> = found
        .figures
        .iter()
        .filter(|figure| figure.fails)
        .map(|figure| format!("{} {}", figure.metric, figure.cell))
        .collect();
    match (&failing[..], found.figures.iter().any(|figure| figure.effect.is_some())) {
        ([], true) => Ok(()),
        ([], false) => Err(Failure::NothingValid),
        ([first, others @ ..], _) => Err(Failure::Worse {
            percent: 100.0 * allowed.unwrap_or_default(),
            first: first.clone(),
            others: others.len(),
        }),
    }
}

/// A warning where nothing could be seen, or where figures that are not sure cannot fail.
fn unseen(uncertain: usize, seen: usize, may_fail: bool) -> Option<String> {
    let all = uncertain + seen;
    if uncertain == 0 || (seen > 0 && !may_fail) {
        return None;
    }
    let which = if seen == 0 { "nothing could be seen: all".to_owned() } else { format!("{uncertain} of") };
    Some(format!(
        "{which} {all} figures are too uncertain whether B is worse: measure more blocks (--set blocks.min) in both"
    ))
}

fn nothing_in_common(nothing: NothingInCommon, [a, b]: [&Path; 2], metrics: &[Metric]) -> Failure {
    let (a, b) = (a.display(), b.display());
    Failure::Usage(match (nothing, metrics) {
        (NothingInCommon::Cells, _) => format!(
            "{a} and {b} have no cell in common (family, transport, framing, size and settings alike): measure the same \
             study on both"
        ),
        (NothingInCommon::Metrics, []) => {
            format!("{a} and {b} have cells in common, but no metric of them: measure the same study on both")
        }
        (NothingInCommon::Metrics, metrics) => {
            let names = metrics.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
            format!("{a} and {b} do not both have {names}: leave --metric out to compare all")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_where_nothing_could_be_seen() {
        assert!(unseen(42, 0, false).unwrap().starts_with("nothing could be seen: all 42 figures"));
        assert!(unseen(41, 1, true).unwrap().starts_with("41 of 42 figures"));
        assert_eq!(unseen(41, 1, false), None);
        assert_eq!(unseen(0, 3, true), None);
        // Where there are no figures, the exit code says so.
        assert_eq!(unseen(0, 0, true), None);
    }
}
