//! A complete tree (see [`crate::parse::layers`]) read as a study, with the checks that need more than one key.
//!
//! Errors in single values were reported before ([`crate::language::check`]). Such values are skipped here, because
//! one mistake should give one error.

mod blocks;
mod clients;
mod comparisons;
mod connections;
mod containers;
mod destinations;
mod factors;
mod generators;
mod hosts;
mod levels;
mod mechanisms;
mod probes;
mod programs;
mod search;
mod user_stacks;
mod wifi;

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf::{self, ValueError};
use crate::parse::tree::{Located, Table};
use crate::study::Study;
use factors::Factors;
use stacklab_model::{LinkConfig, Metric, Topology};

/// The length of a row of a run that has none.
const NO_ROWS_NS: u64 = 100_000_000;

#[derive(Clone)]
struct At<T> {
    value: T,
    place: Location,
}

impl<T> At<T> {
    /// A problem at this place: its title, and what was expected.
    fn problem(&self, title: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem::at(&self.place, title, label)
    }
}

#[derive(Clone, Copy)]
struct Node<'a>(Option<&'a Located>);

impl<'a> Node<'a> {
    fn get(self, path: &str) -> Self {
        Node(self.0.and_then(|node| node.path(path)))
    }

    fn place(self) -> Option<&'a Location> {
        self.0.map(|node| &node.place)
    }

    fn items(self) -> impl Iterator<Item = Node<'a>> {
        self.0.map_or(&[][..], Located::items).iter().map(|item| Node(Some(item)))
    }

    fn at<T>(self, read: impl Fn(&Located) -> Result<T, ValueError>, problems: &Problems) -> Option<At<T>> {
        let node = self.0.filter(|node| !problems.known_at(&node.place))?;
        Some(At { value: read(node).ok()?, place: node.place.clone() })
    }

    fn value<T>(self, read: impl Fn(&Located) -> Result<T, ValueError>, problems: &Problems) -> Option<T> {
        self.at(read, problems).map(|at| at.value)
    }

    fn list<T>(self, read: impl Fn(&Located) -> Result<T, ValueError>, problems: &Problems) -> Vec<At<T>> {
        self.items().filter_map(|item| item.at(&read, problems)).collect()
    }
}

/// A whole number; its bounds have been checked.
fn whole(node: &Located) -> Result<u32, ValueError> {
    leaf::integer(node, 0, i64::from(u32::MAX)).map(|integer| integer as u32)
}

/// Nanoseconds; the bounds have been checked.
fn nanoseconds(node: &Located) -> Result<u64, ValueError> {
    leaf::duration(node, "0s", "100000h")
}

/// The metrics of a probe.
fn read_metrics(node: Node, problems: &Problems) -> Vec<Metric> {
    node.get("metrics").items().filter_map(|item| item.value(leaf::any_metric, problems)).collect()
}

/// Reads a study; `None` if it has an error. The problems contain the error.
pub(crate) fn study(tree: &Table, problems: &mut Problems) -> Option<Study> {
    let key = |name| Node(tree.get(name));
    let testbed = key("testbed");
    let probe = key("probe");
    let blocks = key("blocks");
    let title = key("title").value(leaf::text, problems);
    let link_config = link_config(testbed, problems);
    let all = Factors::read_all(tree, problems);
    for (index, factors) in all.iter().enumerate() {
        // What is wrong in [factors] is not said again for each table that shares it.
        if index == 0 || problems.is_empty() {
            levels::check(factors, probe, problems);
        }
    }
    let topology = mechanisms::topology(testbed, problems);
    if let Some(topology) = &topology {
        mechanisms::check(topology, testbed, &all, problems);
        wifi::check(topology, testbed, &all, problems);
    }
    let mut cells = factors::cells(&all, problems);
    let mut probes = probes::read(probe, testbed, &all, problems);
    search::check_goal(probe, &probes, &cells, problems);
    search::set_device(&mut probes, &cells);
    if let Some(topology) = &topology {
        search::check(probe, &probes, topology, testbed, &all, problems);
        search::check_overloads(probe, &probes, &topology.value, link_config.as_ref(), &all, problems);
        connections::check(probe, &probes, topology, &all, problems);
        search::set_router_queue(&probes, &topology.value, &mut cells);
    }
    clients::check(&all, &probes, problems);
    containers::check_probes(&all, &probes, problems);
    destinations::check(testbed, &all, &probes, problems);
    generators::check(probe, topology.as_ref(), &all, &probes, problems);
    let programs = programs::read(key("program"), probe, topology.as_ref(), &all, problems);
    let rule = blocks::rule(blocks, problems);
    let comparisons = comparisons::read(key("comparison"), &all, &probes, problems);
    programs::check_counts(key("comparison"), &programs, &cells, &comparisons, problems);
    let round_trip_ns = topology.as_ref().map_or(0, |topology| topology.value.round_trip_ns());
    let schedule = blocks::schedule(blocks, &probes, &comparisons, &cells, round_trip_ns, problems);
    let is_of_hosts = topology.as_ref().is_none_or(|topology| topology.value == Topology::Link);
    let hosts = hosts::read(key("host"), is_of_hosts, &all, problems);
    for factors in all.iter().filter(|_| is_of_hosts) {
        user_stacks::check(testbed, factors, problems);
    }
    let study = Study {
        title: title?,
        link_config: link_config?,
        topology: topology?.value,
        keeps_testbeds: testbed.get("rebuild").value(leaf::boolean, problems) == Some(false),
        hosts,
        programs,
        cells,
        probes,
        schedule,
        rule: rule?,
        comparisons,
    };
    check_loads(probe, key("comparison"), &study, problems);
    Some(study)
}

/// Adds loads that arms must have in common, where the plan measures them apart.
fn check_loads(probe: Node, comparisons: Node, study: &Study, problems: &mut Problems) {
    probes::check_share(probe, study, problems);
    search::check_common_loads(probe, comparisons, study, problems);
}

fn link_config(testbed: Node, problems: &Problems) -> Option<LinkConfig> {
    Some(LinkConfig {
        rate: testbed.get("rate").value(leaf::rate, problems),
        mtu: testbed.get("mtu").value(whole, problems)?,
        offloads: testbed.get("offloads").value(leaf::boolean, problems)?,
    })
}
