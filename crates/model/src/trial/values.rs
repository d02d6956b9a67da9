//! The figures of a run.

use crate::{Metric, Shared, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;

/// The figures of a run, by metric. Those that it has not, with the reasons, are the same in most runs of a cell, which
/// share them.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Metric, Value>", into = "BTreeMap<Metric, Value>")]
pub struct Values {
    own: BTreeMap<Metric, Value>,
    /// Of no metric that `own` has.
    shared: Shared<BTreeMap<Metric, Value>>,
}

impl Values {
    /// Of a run that has no figure but these.
    pub fn sharing(shared: Shared<BTreeMap<Metric, Value>>) -> Self {
        Values { own: BTreeMap::new(), shared }
    }

    pub fn get(&self, metric: &Metric) -> Option<&Value> {
        self.own.get(metric).or_else(|| self.shared.get(metric))
    }

    pub fn contains_key(&self, metric: &Metric) -> bool {
        self.get(metric).is_some()
    }

    /// Returns what the metric had before.
    pub fn insert(&mut self, metric: Metric, value: Value) -> Option<Value> {
        // Only what has the metric is copied.
        let shared = if self.shared.contains_key(&metric) { self.shared.remove(&metric) } else { None };
        self.own.insert(metric, value).or(shared)
    }

    pub fn len(&self) -> usize {
        self.own.len() + self.shared.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In the order of metrics.
    pub fn iter(&self) -> impl Iterator<Item = (&Metric, &Value)> + Clone {
        let mut own = self.own.iter().peekable();
        let mut shared = self.shared.iter().peekable();
        std::iter::from_fn(move || match (own.peek(), shared.peek()) {
            (Some((one, _)), Some((other, _))) if other < one => shared.next(),
            (Some(_), _) => own.next(),
            (None, _) => shared.next(),
        })
    }

    /// In the order of metrics.
    pub fn keys(&self) -> impl Iterator<Item = &Metric> + Clone {
        self.iter().map(|(metric, _)| metric)
    }

    /// In the order of metrics.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Metric, &mut Value)> {
        self.own.append(&mut self.shared);
        self.own.iter_mut()
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&Metric, &mut Value) -> bool) {
        self.own.append(&mut self.shared);
        self.own.retain(|metric, value| keep(metric, value));
    }
}

impl From<BTreeMap<Metric, Value>> for Values {
    fn from(own: BTreeMap<Metric, Value>) -> Self {
        Values { own, shared: Shared::default() }
    }
}

impl From<Values> for BTreeMap<Metric, Value> {
    fn from(values: Values) -> Self {
        values.into_iter().collect()
    }
}

impl FromIterator<(Metric, Value)> for Values {
    fn from_iter<I: IntoIterator<Item = (Metric, Value)>>(figures: I) -> Self {
        BTreeMap::from_iter(figures).into()
    }
}

impl Extend<(Metric, Value)> for Values {
    fn extend<I: IntoIterator<Item = (Metric, Value)>>(&mut self, figures: I) {
        for (metric, value) in figures {
            self.insert(metric, value);
        }
    }
}

impl IntoIterator for Values {
    type Item = (Metric, Value);
    type IntoIter = std::collections::btree_map::IntoIter<Metric, Value>;

    fn into_iter(mut self) -> Self::IntoIter {
        self.own.append(&mut self.shared);
        self.own.into_iter()
    }
}

impl Index<&Metric> for Values {
    type Output = Value;

    fn index(&self, metric: &Metric) -> &Value {
        self.get(metric).unwrap_or_else(|| panic!("the run has no figure of {metric}"))
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(reason: &str) -> Value {
        Value::Missing(reason.to_owned())
    }

    #[test]
    fn runs_share_what_they_have_not() {
        let shared: Shared<_> =
            BTreeMap::from([(Metric::Loss, missing("TCP")), (Metric::Rtt, missing("x"))]).into();
        let mut one = Values::sharing(shared.clone());
        one.insert(Metric::Throughput, Value::Measured(1.0));
        let mut other = Values::sharing(shared);
        other.insert(Metric::Rtt, Value::Measured(2.0));
        assert_eq!((one.len(), other.len()), (3, 2));
        assert_eq!(one[&Metric::Rtt], missing("x"));
        assert_eq!(other[&Metric::Rtt], Value::Measured(2.0));
        assert!(one.keys().is_sorted() && other.keys().is_sorted());
        let own: Values = one.clone().into_iter().collect();
        assert_eq!(own, one);
        other.retain(|metric, _| *metric == Metric::Loss);
        assert_eq!(format!("{other:?}"), r#"{Loss: Missing("TCP")}"#);
        assert_eq!(one[&Metric::Loss], missing("TCP"));
    }
}
