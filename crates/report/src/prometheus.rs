//! Figures for monitoring systems: gauges, in the text format of Prometheus, version 0.0.4.

use std::fmt::Write;

/// The content type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All verdicts: each has a sample, which is 1 for the one that holds.
const VERDICTS: [&str; 5] = ["better", "equivalent", "inconclusive", "none_seen", "nothing"];

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// Figures of one name and meaning, each with its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Its name: letters, digits and underscores.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub help: &'static str,
    /// Labels and value. No two have the same labels.
    pub samples: Vec<(Labels, f64)>,
}

impl Gauge {
    /// Without samples.
    pub fn new(name: &'static str, help: &'static str) -> Self {
        Gauge { name, help, samples: Vec::new() }
    }

    /// Adds an estimate and the ends of its 95 % interval, which the label `bound` tells apart.
    pub fn interval(&mut self, labels: &Labels, estimate: Option<f64>, ends: Option<[f64; 2]>) {
        let [low, high] = ends.map_or([None; 2], |ends| ends.map(Some));
        for (bound, value) in [("estimate", estimate), ("low95", low), ("high95", high)] {
            if let Some(value) = value {
                self.samples.push(([&labels[..], &[("bound", bound.to_owned())]].concat(), value));
            }
        }
    }

    /// Adds a sample for each verdict: 1 for this one, with the level that is better if there is one.
    pub fn verdict(&mut self, labels: &Labels, holds: &str, better: &str) {
        for name in VERDICTS {
            let is_it = name == holds;
            let better = if is_it { better } else { "" };
            let more = vec![("verdict", name.to_owned()), ("better", better.to_owned())];
            self.samples.push(([labels.clone(), more].concat(), f64::from(u8::from(is_it))));
        }
    }
}

/// Gauges as text. Those without samples are left out.
pub fn exposition(gauges: &[Gauge]) -> String {
    let mut text = String::new();
    for Gauge { name, help, samples } in gauges.iter().filter(|gauge| !gauge.samples.is_empty()) {
        let _ = writeln!(text, "# HELP {name} {}", help.replace('\\', "\\\\").replace('\n', "\\n"));
        let _ = writeln!(text, "# TYPE {name} gauge");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escape_label(value))).collect();
            let _ = writeln!(text, "{name}{{{}}} {}", labels.join(","), number(*value));
        }
    }
    text
}

fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value if value.is_nan() => "NaN".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_empty_gauges_left_out() {
        let odd = vec![("target", "a\"b\\c\nd".to_owned()), ("family", "ipv6".to_owned())];
        let samples = vec![(odd, 1.5), (Vec::new(), f64::INFINITY)];
        let text = exposition(&[
            Gauge::new("stacklab_none", "A help."),
            Gauge { samples, ..Gauge::new("stacklab_x", "A help.") },
        ]);
        let expected = "# HELP stacklab_x A help.\n# TYPE stacklab_x gauge\n\
            stacklab_x{target=\"a\\\"b\\\\c\\nd\",family=\"ipv6\"} 1.5\nstacklab_x{} +Inf\n";
        assert_eq!(text, expected);
    }
}
