//! Findings of the folder's records as gauges, which Prometheus reads at /metrics.

use crate::cached::Cache;
use crate::library::Library;
use stacklab_model::{Cell, Comparison, Factor, Findings, Interval, Verdict};
use stacklab_report::prometheus::{Gauge, Labels, exposition};
use stacklab_report::{scale, verdict_name};

/// Maximum number of records with gauges: those that changed last.
const MAX_RECORDS: usize = 20;

/// The gauges of records, each record's kept while it does not change.
#[derive(Default)]
pub(super) struct Exporter(Cache<[Gauge; 5]>);

impl Exporter {
    pub(super) fn text(&self, library: &Library) -> String {
        let mut files = library.files();
        files.truncate(MAX_RECORDS);
        let mut readable =
            Gauge::new("stacklab_record_readable", "1 if the record could be read: 0 has no other gauges.");
        let mut all = GAUGES.map(|(name, help)| Gauge::new(name, help)).to_vec();
        self.0.retain(|name| files.iter().any(|(known, _)| known == name));
        for (name, stamp) in files {
            let made = self
                .0
                .get(&name, stamp, || library.findings(&name, stamp).map(|found| fill_gauges(&name, &found)));
            let made = made.ok();
            readable.samples.push((vec![("record", name)], f64::from(u8::from(made.is_some()))));
            for (gauge, more) in all.iter_mut().zip(made.into_iter().flat_map(|made| made.what)) {
                gauge.samples.extend(more.samples);
            }
        }
        all.push(readable);
        exposition(&all)
    }
}

/// Every gauge of a record, without samples: name and help.
const GAUGES: [(&str, &str); 5] = [
    ("stacklab_runs", "Runs of a record, by status."),
    ("stacklab_blocks", "Blocks of a record."),
    ("stacklab_mean", "Mean of a cell's valid runs and its 95 % interval, in the metric's unit."),
    (
        "stacklab_effect",
        "Candidate against baseline and the 95 % interval: a ratio, or a difference in the metric's unit.",
    ),
    ("stacklab_verdict", "1 for the verdict that holds."),
];

/// The gauges of a record, in the order of [`GAUGES`].
fn fill_gauges(name: &str, findings: &Findings) -> [Gauge; 5] {
    let mut all = GAUGES.map(|(name, help)| Gauge::new(name, help));
    let [runs, blocks, mean, effect, verdict] = &mut all;
    let record = ("record", name.to_owned());
    let invalid: usize = findings.invalid_runs.iter().map(|(count, _)| count).sum();
    for (status, count) in [("valid", findings.valid_runs), ("invalid", invalid)] {
        runs.samples.push((vec![record.clone(), ("status", status.to_owned())], count as f64));
    }
    blocks.samples.push((vec![record.clone()], findings.blocks.into()));
    for found in &findings.cells {
        let unit = found.metric.unit().symbol().to_owned();
        let mut labels = vec![record.clone(), ("metric", found.metric.to_string()), ("unit", unit)];
        labels.extend(cell_labels(&found.cell, None));
        mean.interval(&labels, found.estimate.mean, found.estimate.interval.map(ends));
    }
    for comparison in &findings.comparisons {
        let labels = [vec![record.clone()], comparison_labels(comparison)].concat();
        if let Some(found) = &comparison.effect {
            let labels = [labels.clone(), vec![("scale", scale(found.scale).to_owned())]].concat();
            effect.interval(&labels, Some(found.estimate), Some(ends(found.interval95)));
        }
        let better: &str = if let Verdict::Better(level) = &comparison.verdict { level } else { "" };
        verdict.verdict(&labels, verdict_name(&comparison.verdict), better);
    }
    all
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

/// The levels of a cell, but for one factor's. Settings are one label: each study has others.
fn cell_labels(cell: &Cell, without: Option<Factor>) -> Labels {
    let named = [Factor::Transport, Factor::SizeOf, Factor::Family, Factor::Size, Factor::Replica];
    let levels = named.into_iter().filter(|factor| Some(*factor) != without);
    let mut labels: Labels = levels.map(|factor| (factor.name(), cell.level(factor))).collect();
    let settings = cell.settings.levels().filter(|(factor, _)| Some(*factor) != without);
    let settings: Vec<String> = settings.map(|(factor, level)| format!("{factor}={level}")).collect();
    labels.push(("settings", settings.join(" ")));
    labels
}

fn comparison_labels(comparison: &Comparison) -> Labels {
    let question = &comparison.question;
    let mut labels = vec![
        ("metric", question.metric.to_string()),
        ("unit", question.metric.unit().symbol().to_owned()),
        ("factor", question.factor.to_string()),
        ("baseline", question.baseline.level(question.factor)),
        ("candidate", question.candidate.level(question.factor)),
    ];
    labels.extend(cell_labels(&question.baseline, Some(question.factor)));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::tests::folder;
    use std::fs;

    #[test]
    fn readable_records_have_gauges_and_others_say_so() {
        let (folder, path, library) = folder();
        fs::write(folder.path().join("b.stacklab"), "no record").unwrap();
        let exporter = Exporter::default();
        let text = exporter.text(&library);
        for line in [
            "stacklab_record_readable{record=\"a.stacklab\"} 1",
            "stacklab_record_readable{record=\"b.stacklab\"} 0",
            "stacklab_runs{record=\"a.stacklab\",status=\"valid\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        fs::remove_file(path).unwrap();
        assert!(!exporter.text(&library).contains("a.stacklab"));
    }
}
