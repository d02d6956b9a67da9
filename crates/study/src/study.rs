//! A checked study: every default is filled in, and no later code checks again.

use serde::{Deserialize, Serialize};
use stacklab_model::wifi::WifiConfig;
use stacklab_model::{
    ArmSchedule, Cell, ComparisonSpec, Direction, Family, LinkConfig, Mechanism, Metric, Probe, ProbeSpec,
    ProgramSpec, Question, RoutedKind, Scale, ScopedAddr, Services, StoppingRule, System, Systems, Topology,
    once_each,
};
use std::collections::{BTreeMap, HashSet};

/// A consistent study. Made by [`crate::parse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// The question of the study, used as the heading of its reports.
    pub title: String,
    /// The link, or each of the links, between its hosts.
    pub link_config: LinkConfig,
    /// How the hosts are connected.
    #[serde(default)]
    pub topology: Topology,
    /// Its real machines.
    #[serde(default)]
    pub hosts: Vec<RealHost>,
    /// Whether testbeds stand for the whole campaign. Otherwise those of namespaces are built anew for each block.
    #[serde(default)]
    pub keeps_testbeds: bool,
    /// Its `[[program]]` tables; each cell names one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramSpec>,
    /// Every combination of levels, each once.
    pub cells: Vec<Cell>,
    /// How cells are measured: at least one probe, each once.
    pub probes: Vec<ProbeSpec>,
    /// How compared arms of one testbed share the time. The plan decides it for each group of arms.
    #[serde(default, skip_serializing_if = "ArmSchedule::is_alone")]
    pub schedule: ArmSchedule,
    /// The stopping rule.
    pub rule: StoppingRule,
    /// The comparisons; may be empty.
    pub comparisons: Vec<ComparisonSpec>,
}

/// A real machine, and its place on the network under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealHost {
    /// The machine.
    pub system: System,
    /// Its interface on that network, if one is named.
    pub interface: Option<String>,
    /// Its addresses there that are named; a link-local one with the zone of that machine.
    pub addresses: BTreeMap<Family, ScopedAddr>,
}

impl Study {
    /// The systems of its cells' hosts: each pair once, in the order of the cells.
    pub fn systems(&self) -> Vec<Systems> {
        once_each(self.cells.iter().map(Systems::of))
    }

    /// The systems of its cells' hosts, and the receiver's services: each combination once, in the order of the
    /// cells.
    pub fn labs(&self) -> Vec<(Systems, Services)> {
        once_each(self.cells.iter().map(|cell| (Systems::of(cell), Services::of(cell))))
    }

    /// The program of a cell, if one of the study's own is measured.
    pub fn program_of(&self, cell: &Cell) -> Option<&ProgramSpec> {
        let name = cell.settings.program.as_ref()?;
        self.programs.iter().find(|program| program.name == *name)
    }

    /// How packets cross the middle link in its cells: each mechanism once, in the order of the cells; none where there
    /// are no routers.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        once_each(self.rows().into_iter().map(|row| row.mechanism))
    }

    /// Its routed testbeds: each once, in the order of the cells. None if there are no routers.
    pub fn rows(&self) -> Vec<RoutedKind> {
        match self.topology {
            Topology::Routed(_) => once_each(self.cells.iter().map(RoutedKind::of)),
            Topology::Link | Topology::Wifi(_) => Vec::new(),
        }
    }

    /// Whether it asks for a metric of this kind.
    pub fn measures(&self, is_meant: impl Fn(Metric) -> bool) -> bool {
        self.probes.iter().flat_map(|probe| &probe.metrics).any(|metric| is_meant(*metric))
    }

    /// Its Wi-Fi networks: each once, in the order of the cells. None in other topologies.
    pub fn networks(&self) -> Vec<WifiConfig> {
        match &self.topology {
            Topology::Wifi(network) => once_each(self.cells.iter().map(|cell| network.of(cell))),
            Topology::Link | Topology::Routed(_) => Vec::new(),
        }
    }

    /// Whether all measured traffic begins at the sender.
    pub fn flows_forward_only(&self) -> bool {
        self.cells.iter().all(|cell| Direction::of(cell) == Direction::Forward)
    }

    /// How a probe runs, if the study uses it.
    pub fn probe(&self, probe: Probe) -> Option<&ProbeSpec> {
        self.probes.iter().find(|spec| spec.probe == probe)
    }

    /// The probe that measures a metric in this study.
    pub fn probe_of(&self, metric: Metric) -> Probe {
        let spec = self.probes.iter().find(|spec| spec.metrics.contains(&metric));
        spec.map_or(metric.probe(), |spec| spec.probe)
    }

    /// Every question: comparison, then metric, then each pair of cells that differ in nothing but the comparison's
    /// factor. A metric that means nothing over a cell's transport is not asked there.
    pub fn questions(&self) -> Vec<Question> {
        let mut questions = Vec::new();
        // A mechanism does not carry every family: not every cell has its like.
        let cells: HashSet<&Cell> = self.cells.iter().collect();
        for comparison in &self.comparisons {
            for metric in &comparison.metrics {
                let asked = self.cells.iter().filter_map(|cell| question(comparison, *metric, cell));
                questions.extend(asked.filter(|question| cells.contains(&question.candidate)));
            }
        }
        questions
    }

    /// Says of each comparison without a question why it has none.
    pub fn empty_comparisons(&self) -> Vec<String> {
        let questions = self.questions();
        let mut empty = Vec::new();
        for ComparisonSpec { factor, baseline, candidate, .. } in &self.comparisons {
            let mut of_factor = questions.iter().filter(|question| question.factor == *factor);
            let has_question = of_factor.any(|question| {
                question.baseline.level(*factor) == *baseline
                    && question.candidate.level(*factor) == *candidate
            });
            if !has_question {
                empty.push(format!(
                    "nothing compares {candidate} with {baseline}: no two cells that share a metric differ in {factor} \
                     alone; a factor that only one of them can have keeps them apart"
                ));
            }
        }
        empty
    }
}

/// The question of a comparison for a cell, if the cell is at its baseline.
fn question(comparison: &ComparisonSpec, metric: Metric, cell: &Cell) -> Option<Question> {
    if cell.level(comparison.factor) != comparison.baseline {
        return None;
    }
    let mut candidate = cell.clone();
    // A checked study has levels of the factor only.
    candidate.set(comparison.factor, &comparison.candidate).ok()?;
    if !metric.is_of_cell(cell) || !metric.is_of_cell(&candidate) {
        return None;
    }
    Some(Question {
        factor: comparison.factor,
        metric,
        baseline: cell.clone(),
        candidate,
        margin: match metric.scale() {
            Scale::Ratio => comparison.margin,
            Scale::Difference => metric.difference_margin(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, parse};
    use stacklab_model::Factor;

    fn study(text: &str) -> Study {
        parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn quickstart_asks_every_metric_of_size_and_transport() {
        let questions = study(include_str!("../../../studies/quickstart.toml")).questions();
        // Four metrics over both transports; TCP has no loss metric.
        assert_eq!(questions.len(), 2 * 3 * 4 - 3);
        for (index, question) in questions.iter().enumerate() {
            assert!(question.baseline.same_but(&question.candidate, Factor::Family));
            assert_eq!(question.baseline.level(Factor::Family), "ipv4");
            assert_eq!(question.candidate.level(Factor::Family), "ipv6");
            assert!(!questions[..index].contains(question));
        }
    }

    #[test]
    fn comparison_that_no_cells_fit_is_named() {
        let text = include_str!("../../../studies/quickstart.toml");
        assert_eq!(study(text).empty_comparisons(), Vec::<String>::new());
        // Only IPv6 has a flow label.
        let apart = study(&text.replace("[factors]\n", "[factors]\nflow_label = [1]\n"));
        assert_eq!(apart.questions(), []);
        let empty = apart.empty_comparisons();
        assert!(empty[0].starts_with("nothing compares ipv6 with ipv4: "), "{empty:?}");
    }

    #[test]
    fn a_share_is_judged_by_its_own_margin() {
        let text =
            include_str!("../../../studies/quickstart.toml").replace("margin = \"1 %\"", "margin = \"5 %\"");
        for question in study(&text).questions() {
            assert_eq!(question.margin, if question.metric == Metric::Loss { 0.001 } else { 0.05 });
        }
    }

    #[test]
    fn metric_a_transport_lacks_is_not_compared_there() {
        for (factor, baseline, candidate, count) in
            [("family", "ipv6", "ipv4", 2), ("transport", "tcp", "udp", 0)]
        {
            let text = format!(
                r#"
title = "connect"
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size = [64]
replica = ["a", "b"]
[probe.connect]
metrics = ["connect_time", "connect_rate"]
length = {{ packets = 10 }}
[probe.stream]
metrics = ["loss"]
length = {{ packets = 10 }}
[[comparison]]
factor = "{factor}"
baseline = "{baseline}"
candidate = "{candidate}"
"#
            );
            let questions = study(&text).questions();
            for metric in [Metric::ConnectTime, Metric::Loss] {
                let of_metric = questions.iter().filter(|question| question.metric == metric);
                assert_eq!(of_metric.count(), count, "{metric} by {factor}");
            }
        }
    }

    #[test]
    fn sizes_are_compared_by_number_or_by_text() {
        let text = include_str!("../../../studies/quickstart.toml")
            .replace("factor = \"family\"", "factor = \"size\"")
            .replace("\"ipv4\"\ncandidate = \"ipv6\"", "128\ncandidate = 1408");
        let by_number = study(&text).questions();
        let by_text = study(&text.replace("candidate = 1408", "candidate = \"1408\"")).questions();
        assert_eq!(by_number, by_text);
        assert_eq!(by_number.len(), 2 * 2 * 4 - 2);
        assert!(by_number.iter().all(|question| question.candidate.size == 1408));
    }
}
