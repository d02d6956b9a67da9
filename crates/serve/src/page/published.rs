//! Published figures of a study, for the metrics of its replication.

use crate::ServeError;
use stacklab_model::Metric;
use stacklab_published::replication::published_name;
use stacklab_published::{PublishedFigure, Reference};
use stacklab_report::page::Published;
use std::collections::BTreeMap;
use std::path::Path;

/// The key of a series: metric, transport if there is one, and label.
type FigureKey = (Metric, Option<String>, String);

/// Published figures by size, one series for each place and system; empty if the study is not a published one.
pub(super) fn of(study_name: &str) -> Result<Vec<Published>, ServeError> {
    let study = Path::new(study_name).file_stem().unwrap_or_default().to_string_lossy();
    // Of no study of this name there are no tables to read.
    if stacklab_published::study(&study).is_err() {
        return Ok(Vec::new());
    }
    let own = Reference::built_in()?.of(&study);
    let mut series: BTreeMap<FigureKey, Vec<(f64, f64)>> = BTreeMap::new();
    for figure in &own.figures {
        let (Some(metric), Ok(size)) = (metric(figure), figure.size.parse::<u32>()) else { continue };
        let transport = (figure.transport != "both").then(|| figure.transport.clone());
        let points = series.entry((metric, transport, label(figure))).or_default();
        points.push((f64::from(size), figure.value.value));
    }
    let published = series.into_iter().map(|((metric, transport, label), mut points)| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Published { label, metric, transport, points }
    });
    Ok(published.collect())
}

/// The metric of a figure, if both have the same unit: published CPU times are shares of a whole machine.
fn metric(figure: &PublishedFigure) -> Option<Metric> {
    let same =
        |metric: &&Metric| published_name(**metric) == figure.metric && metric.unit().symbol() == figure.unit;
    Metric::ALL.iter().find(same).copied()
}

/// `Ubuntu, 6in4, configured-tunnel (Figure 7)`.
fn label(figure: &PublishedFigure) -> String {
    let mechanism = if figure.mechanism == "none" { "" } else { figure.mechanism.as_str() };
    let parts = [figure.os.as_str(), figure.ip.as_str(), mechanism];
    let named: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{} ({})", named.join(", "), figure.location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_published_study_stand_by_size() {
        let series = of("ogunleye2016.toml").unwrap();
        let of_figure_7 = series.iter().find(|one| one.label == "Ubuntu, 6in4, configured-tunnel (Figure 7)");
        let series_7 = of_figure_7.unwrap();
        assert_eq!(series_7.transport.as_deref(), Some("tcp"));
        assert_eq!(series_7.points[0], (64.0, 50.93));
        assert!(series_7.points.is_sorted_by(|a, b| a.0 < b.0));
        assert!(of("quickstart.toml").unwrap().is_empty());
    }
}
