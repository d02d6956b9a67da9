//! Studies that a program writes.

use crate::Study;
use stacklab_model::Factor;
use toml::Table;
pub use toml::Value;

/// A study, key by key. Its text is a study file: a record keeps it, and [`crate::parse`] reads and checks it as any
/// other.
#[derive(Debug, Clone)]
pub struct StudyBuilder(Table);

impl Study {
    /// A study with this title.
    pub fn builder(title: impl Into<String>) -> StudyBuilder {
        StudyBuilder(Table::new()).set("title", title.into())
    }
}

impl StudyBuilder {
    /// Sets a key, named by its dotted path as with `--set`.
    pub fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        let (tables, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = &mut self.0;
        for name in tables.split('.').filter(|name| !name.is_empty()) {
            let inner = table.entry(name).or_insert_with(|| Table::new().into());
            table = inner.as_table_mut().expect("a key is a table or has a value");
        }
        table.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the levels of a factor.
    pub fn levels<T: Into<Value>>(self, factor: Factor, levels: impl IntoIterator<Item = T>) -> Self {
        let levels: Vec<Value> = levels.into_iter().map(T::into).collect();
        self.set(&format!("factors.{factor}"), levels)
    }

    /// Sets the only level of a factor, if there is one.
    pub fn level(self, factor: Factor, level: Option<impl Into<Value>>) -> Self {
        match level {
            Some(level) => self.levels(factor, [level]),
            None => self,
        }
    }

    /// Adds a comparison of two levels, baseline first, with a margin if it is not the default.
    pub fn compare<T: Into<Value>>(self, factor: Factor, levels: [T; 2], margin: Option<&str>) -> Self {
        let [baseline, candidate] = levels.map(T::into);
        let keys = [("factor", factor.to_string().into()), ("baseline", baseline), ("candidate", candidate)];
        let margin = margin.map(|margin| ("margin", margin.into()));
        let comparison: Table =
            keys.into_iter().chain(margin).map(|(key, value)| (key.to_owned(), value)).collect();
        let mut all = match self.0.get("comparison") {
            Some(Value::Array(all)) => all.clone(),
            _ => Vec::new(),
        };
        all.push(comparison.into());
        self.set("comparison", all)
    }

    /// The study file.
    pub fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A level as it is written on a command line: a whole number, `true` or `false`, or a text.
pub fn level(text: &str) -> Value {
    let number = text.parse::<u32>().map(Value::from);
    number.or_else(|_| text.parse::<bool>().map(Value::from)).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, parse};
    use stacklab_model::{Metric, Probe};

    #[test]
    fn built_study_reads_back() {
        let text = Study::builder("a \"title\"\n\u{7f}")
            .set("testbed.offloads", true)
            .levels(Factor::Family, ["ipv4", "ipv6"])
            .level(Factor::Transport, Some("udp"))
            .level(Factor::Size, Some(128))
            .level(Factor::Mss, None::<i64>)
            .set("probe.stream.metrics", vec!["throughput", "loss"])
            .set("probe.stream.length.time", "100ms")
            .set("blocks.min", 8)
            .set("blocks.max", 8)
            .compare(Factor::Family, ["ipv4", "ipv6"], Some("2 %"))
            .text();
        let study = parse(&Input::file("built", &text)).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!(study.title, "a \"title\"\n\u{7f}");
        assert_eq!((study.cells.len(), study.rule.max), (2, 8));
        let stream = study.probe(Probe::Stream).unwrap();
        assert_eq!(stream.metrics, [Metric::Throughput, Metric::Loss]);
        assert_eq!((study.comparisons.len(), study.comparisons[0].margin), (1, 0.02));
    }

    #[test]
    fn levels_have_the_type_of_their_text() {
        assert_eq!(level("128"), Value::from(128));
        assert_eq!(level("true"), Value::from(true));
        assert_eq!(level("namespace -> uml"), Value::from("namespace -> uml"));
    }
}
