//! Gauges, which each format writes in its own way.

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
            let labels = || [labels.clone(), vec![("bound", bound.to_owned())]].concat();
            self.samples.extend(value.map(|value| (labels(), value)));
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
