//! Studies of tests, word by word. What a test does not say has the program's default.

use stacklab_model::Factor;
use stacklab_study::Study;
use stacklab_study::builder::{StudyBuilder, Value};
use std::collections::BTreeMap;

/// A study that is being written.
#[derive(Clone)]
pub(crate) struct TestStudy {
    builder: StudyBuilder,
    /// The probe that lengths belong to: the last one that was named.
    probe: &'static str,
}

impl TestStudy {
    /// A study with this title.
    pub(crate) fn new(title: &str) -> Self {
        TestStudy { builder: Study::builder(title), probe: "stream" }
    }

    /// Sets any key, named by its dotted path.
    pub(crate) fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        self.builder = self.builder.set(path, value);
        self
    }

    /// `routed` or `wifi`, in place of one link.
    pub(crate) fn topology(self, topology: &str) -> Self {
        self.set("testbed.topology", topology)
    }

    pub(crate) fn rate(self, rate: &str) -> Self {
        self.set("testbed.rate", rate)
    }

    pub(crate) fn offloads(self, offloads: bool) -> Self {
        self.set("testbed.offloads", offloads)
    }

    pub(crate) fn levels<T: Into<Value>>(
        mut self,
        factor: Factor,
        levels: impl IntoIterator<Item = T>,
    ) -> Self {
        self.builder = self.builder.levels(factor, levels);
        self
    }

    /// Both families.
    pub(crate) fn families(self) -> Self {
        self.levels(Factor::Family, ["ipv4", "ipv6"])
    }

    pub(crate) fn family(self, family: &str) -> Self {
        self.levels(Factor::Family, [family])
    }

    pub(crate) fn transports(self, transports: &[&str]) -> Self {
        self.levels(Factor::Transport, transports.iter().copied())
    }

    pub(crate) fn size_of(self, what: &str) -> Self {
        self.levels(Factor::SizeOf, [what])
    }

    pub(crate) fn sizes(self, sizes: &[u32]) -> Self {
        self.levels(Factor::Size, sizes.iter().copied())
    }

    pub(crate) fn systems(self, systems: &[&str]) -> Self {
        self.levels(Factor::Os, systems.iter().copied())
    }

    pub(crate) fn mechanisms(self, mechanisms: &[&str]) -> Self {
        self.levels(Factor::Mechanism, mechanisms.iter().copied())
    }

    /// Measures these metrics by a probe, which the next words are about.
    pub(crate) fn probe(mut self, name: &'static str, metrics: &[&str]) -> Self {
        self.probe = name;
        self.set_of_probe("metrics", metrics.to_vec())
    }

    pub(crate) fn stream(self, metrics: &[&str]) -> Self {
        self.probe("stream", metrics)
    }

    pub(crate) fn echo(self, metrics: &[&str]) -> Self {
        self.probe("echo", metrics)
    }

    pub(crate) fn connect(self, metrics: &[&str]) -> Self {
        self.probe("connect", metrics)
    }

    /// Sets a key of the last probe that was named.
    pub(crate) fn set_of_probe(self, key: &str, value: impl Into<Value>) -> Self {
        let path = format!("probe.{}.{key}", self.probe);
        self.set(&path, value)
    }

    pub(crate) fn time(self, time: &str) -> Self {
        self.set_of_probe("length", BTreeMap::from([("time", time)]))
    }

    pub(crate) fn packets(self, packets: u32) -> Self {
        self.set_of_probe("length", BTreeMap::from([("packets", packets)]))
    }

    pub(crate) fn warmup(self, warmup: &str) -> Self {
        self.set_of_probe("warmup", warmup)
    }

    pub(crate) fn interval(self, interval: &str) -> Self {
        self.set_of_probe("interval", interval)
    }

    /// How arms are measured: `sequential` or `interleaved`.
    pub(crate) fn schedule(self, schedule: &str) -> Self {
        self.set("blocks.schedule", schedule)
    }

    /// This many blocks, whatever they show.
    pub(crate) fn blocks(self, blocks: u32) -> Self {
        self.set("blocks.min", blocks).set("blocks.max", blocks)
    }

    pub(crate) fn compare<T: Into<Value>>(mut self, factor: Factor, baseline: T, candidate: T) -> Self {
        self.builder = self.builder.compare(factor, [baseline, candidate], None);
        self
    }

    /// IPv6 beside IPv4.
    pub(crate) fn compare_families(self) -> Self {
        self.compare(Factor::Family, "ipv4", "ipv6")
    }

    /// The same, with this margin.
    pub(crate) fn compare_families_within(mut self, margin: &str) -> Self {
        self.builder = self.builder.compare(Factor::Family, ["ipv4", "ipv6"], Some(margin));
        self
    }

    /// The line of the study file that sets a key, from 1.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        let begin = format!("{key} = ");
        1 + self.text().lines().position(|line| line.starts_with(&begin)).expect("the study sets the key")
    }

    /// The study file.
    pub(crate) fn text(&self) -> String {
        self.builder.text()
    }
}
