//! What a page is made from.

use crate::page::document::RunDetail;
use stacklab_model::{Cell, Findings, HostFacts, LinkConfig, Links, Metric, RunRecord};

/// What a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct PageSource<'a> {
    /// What the campaign found.
    pub findings: &'a Findings,
    /// The testbed.
    pub link_config: &'a LinkConfig,
    /// The hosts' names and facts.
    pub hosts: &'a [(String, HostFacts)],
    /// What kind each of them is, in the same order.
    pub kinds: &'a [String],
    /// How they are joined.
    pub rows: &'a [TestbedDrawing],
    /// Every run.
    pub runs: &'a [RunRecord],
    /// The most that the link carries: cell, metric, and figure in the metric's unit.
    pub limits: &'a [(Cell, Metric, f64)],
    /// Figures of the published study that this one repeats.
    pub published: &'a [Published],
    /// What the hosts saw of some runs.
    pub details: &'a [RunDetail],
}

/// Published figures that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Systems and place in the publication.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The transport's name, where the figures are of one.
    pub transport: Option<String>,
    /// Sizes, bytes, and figures in the unit that reports show.
    pub points: Vec<(f64, f64)>,
}

/// Hosts and the links between them, as drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestbedDrawing {
    /// Their names, in the order of the traffic.
    pub names: Vec<String>,
    /// How packets cross the middle link, where there is one.
    pub mechanisms: Vec<String>,
    /// What the links have for themselves, where there are three.
    pub links: Links,
}
