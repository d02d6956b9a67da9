//! The bias of the method: what like arms differ by, over several campaigns.

use stacklab_analysis::statistics::Student;
use stacklab_model::{Effect, Factor, Findings, Metric, Scale, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Effects of several campaigns and cells as one: logarithms of ratios, weighted by their numbers of pairs.
///
/// Pairs are fixed beforehand, and precisions are estimates, with which few blocks would have too much weight. The
/// degrees of freedom are Satterthwaite's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Number of pairs.
    pub pairs: usize,
    /// The bias, as a logarithm.
    pub bias: Student,
}

impl Pooled {
    /// `None` without effects.
    pub fn of(effects: &[&Effect]) -> Option<Self> {
        let pairs: usize = effects.iter().map(|effect| effect.pairs).sum();
        if pairs == 0 {
            return None;
        }
        let mut estimates = Vec::new();
        let mut variances = Vec::new();
        let mut parts = Vec::new();
        for effect in effects {
            let share = effect.pairs as f64 / pairs as f64;
            let variance = (share * effect.error).powi(2);
            estimates.push(share * effect.estimate.ln());
            variances.push(variance);
            parts.push(variance.powi(2) / effect.degrees_of_freedom);
        }
        let variance: f64 = variances.iter().sum();
        let parts: f64 = parts.iter().sum();
        let bias = Student {
            estimate: estimates.iter().sum(),
            error: variance.sqrt(),
            degrees_of_freedom: if parts > 0.0 { variance.powi(2) / parts } else { 1.0 },
        };
        Some(Pooled { pairs, bias })
    }

    /// The bias is below this either way, with 95 % confidence.
    pub fn bound(&self) -> f64 {
        self.bias.estimate.abs() + self.bias.interval(0.90).half_width()
    }
}

impl fmt::Display for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bias, half] = [self.bias.estimate, self.bias.interval(0.95).half_width()].map(|log| 100.0 * log);
        write!(f, "{bias:+.2} ± {half:.2} % of {} pairs", self.pairs)
    }
}

/// The two contrasts of a metric over a transport.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// One arm against itself.
    pub labels: Option<Pooled>,
    /// The arm that is set up second against the first.
    pub order: Option<Pooled>,
}

impl Bias {
    /// The larger of both bounds.
    pub fn bound(&self) -> Option<f64> {
        let bounds = [self.labels, self.order].into_iter().flatten().map(|pooled| pooled.bound());
        bounds.reduce(f64::max)
    }
}

/// The biases of the metrics that a report compares by ratios, by metric and transport. The arms of one cell are those
/// of the A/A check, and replicas that are compared.
pub fn biases(reports: &[Findings]) -> BTreeMap<(Metric, Transport), Bias> {
    type Effects<'a> = BTreeMap<(Metric, Transport), Vec<&'a Effect>>;
    let mut labels = Effects::new();
    let mut order = Effects::new();
    for report in reports {
        for check in &report.same_arm {
            labels.entry((check.metric, check.transport)).or_default().push(&check.effect);
        }
        for comparison in report.comparisons.iter().filter(|one| one.question.factor == Factor::Replica) {
            let key = (comparison.question.metric, comparison.question.baseline.transport);
            labels.entry(key).or_default().extend(&comparison.effect);
        }
        for contrast in &report.arm_order {
            order.entry((contrast.metric, contrast.transport)).or_default().push(&contrast.effect);
        }
    }
    let compared: BTreeSet<Metric> =
        reports.iter().flat_map(|report| &report.comparisons).map(|one| one.question.metric).collect();
    let mut found = BTreeMap::new();
    for key in labels.keys().chain(order.keys()) {
        let bias = Bias {
            labels: labels.get(key).and_then(|effects| Pooled::of(effects)),
            order: order.get(key).and_then(|effects| Pooled::of(effects)),
        };
        if compared.contains(&key.0) && key.0.scale() == Scale::Ratio && bias.bound().is_some() {
            found.insert(*key, bias);
        }
    }
    found
}

/// A line for each metric and transport: `stream udp throughput: bias of the method: below 0.06 % (..)`.
pub fn lines(reports: &[Findings]) -> Vec<String> {
    let mut lines = Vec::new();
    for ((metric, transport), bias) in &biases(reports) {
        let mut contrasts = Vec::new();
        if let Some(labels) = bias.labels {
            contrasts.push(format!("one arm against itself {labels}"));
        }
        if let Some(order) = bias.order {
            contrasts.push(format!("the arm that is set up second against the first {order}"));
        }
        let below = 100.0 * bias.bound().unwrap_or(f64::INFINITY);
        lines.push(format!(
            "{} {transport} {metric}: bias of the method: below {below:.2} % ({})",
            metric.probe(),
            contrasts.join("; ")
        ));
    }
    lines
}
