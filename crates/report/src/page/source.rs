//! The input of a page.

use crate::page::document::RunDetail;
use stacklab_model::{Cell, Findings, HostFacts, LimitedBy, LinkConfig, Links, Metric, RunRecord};

/// The input of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageSource<'a> {
    /// The campaign's findings.
    pub findings: &'a Findings,
    /// The testbed.
    pub link_config: &'a LinkConfig,
    /// The hosts' names and facts.
    pub hosts: &'a [(String, HostFacts)],
    /// The kind of each host, in the same order.
    pub kinds: &'a [String],
    /// How they are connected.
    pub rows: &'a [TestbedDrawing],
    /// Every run.
    pub runs: &'a [RunRecord],
    /// The maximum that the testbed carries: cell, metric, and figure in the metric's unit.
    pub limits: &'a [(Cell, Metric, f64)],
    /// Which model has it.
    pub limited_by: LimitedBy,
    /// Figures of the published study that this one repeats.
    pub published: &'a [Published],
    /// The hosts' reports of some runs.
    pub details: &'a [RunDetail],
}

/// Published figures that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Systems and place in the publication.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The transport's name, if the figures are of one transport.
    pub transport: Option<String>,
    /// Sizes, bytes, and figures in the unit that reports show.
    pub points: Vec<(f64, f64)>,
}

/// Hosts and the links between them, as drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestbedDrawing {
    /// Their names, in the order of the traffic.
    pub names: Vec<String>,
    /// How packets cross the middle link, if there is one.
    pub mechanisms: Vec<String>,
    /// The properties of each link, if there are three.
    pub links: Links,
    /// The properties of the radio channel that all hosts share, if there is one.
    pub channel: Vec<String>,
}
