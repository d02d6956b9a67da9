//! A complete tree (see [`crate::parse::layers`]) read as a study, with the checks that need more than one key.
//!
//! Errors in single values were reported before ([`crate::language::check`]). Such values are skipped here, because
//! one mistake should give one error.

mod comparisons;
mod factors;
mod generators;
mod hosts;
mod mechanisms;
mod node;
mod probes;
mod rule;
mod setting;
mod settings;
mod sizes;
mod slicing;
mod wifi;

use crate::diagnostics::Problems;
use crate::language::leaf;
use crate::parse::tree::{Located, Table};
use crate::study::Study;
use factors::Factors;
use node::{at, whole};
use stacklab_model::LinkConfig;

/// Reads a study; `None` if it has an error. The problems contain the error.
pub(crate) fn study(tree: &Table, problems: &mut Problems) -> Option<Study> {
    let title = at(tree.get("title"), leaf::text, problems).map(|title| title.value);
    let link_config = link_config(tree.get("testbed"), problems);
    let bed_mtu = at(tree.get("testbed").and_then(|link_config| link_config.get("mtu")), whole, problems);
    let all = Factors::read_all(tree, &bed_mtu, problems);
    for (index, factors) in all.iter().enumerate() {
        // What is wrong in [factors] is not said again for each table that shares it.
        if index == 0 || problems.is_empty() {
            sizes::check(factors, problems);
            settings::check(factors, problems);
        }
    }
    let topology = mechanisms::topology(tree.get("testbed"), problems);
    mechanisms::check(topology.as_ref(), tree.get("testbed"), &all, problems);
    wifi::check(topology.as_ref(), tree.get("testbed"), &all, problems);
    let cells = factors::cells(&all, problems);
    let probes = probes::read(tree.get("probe"), tree.get("testbed"), &all, problems);
    generators::check(tree.get("probe"), topology.as_ref(), &all, &probes, problems);
    let rule = rule::read(tree.get("blocks"), problems);
    let comparisons = comparisons::read(tree.get("comparison"), &all, &probes, problems);
    let round_trip_ns = topology.as_ref().map_or(0, |topology| topology.value.round_trip_ns());
    let schedule = slicing::read(tree.get("blocks"), &probes, &comparisons, &cells, round_trip_ns, problems);
    let hosts = hosts::read(tree.get("host"), topology.as_ref(), &all, problems);
    let topology = topology?.value;
    let rebuild = tree.get("testbed").and_then(|testbed| testbed.get("rebuild"));
    let keeps_testbeds = at(rebuild, leaf::boolean, problems).is_some_and(|rebuild| !rebuild.value);
    let study = Study {
        title: title?,
        link_config: link_config?,
        topology,
        keeps_testbeds,
        hosts,
        cells,
        probes,
        schedule,
        rule: rule?,
        comparisons,
    };
    probes::check_share(tree.get("probe"), &study, problems);
    Some(study)
}

fn link_config(node: Option<&Located>, problems: &Problems) -> Option<LinkConfig> {
    let key = |name| node.and_then(|node| node.get(name));
    Some(LinkConfig {
        rate: at(key("rate"), leaf::rate, problems).map(|rate| rate.value),
        mtu: at(key("mtu"), whole, problems)?.value,
        offloads: at(key("offloads"), leaf::boolean, problems)?.value,
    })
}
