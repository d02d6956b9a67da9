//! A complete tree (see [`crate::parse::layers`]) read as a study, with the checks that need more than one key.
//!
//! Whatever is wrong with a single value has been said before ([`crate::language::check`]): such values are passed over here,
//! so that one mistake is one problem.

mod comparisons;
mod factors;
mod hosts;
mod mechanisms;
mod probes;
mod rule;
mod settings;
mod sizes;

use crate::diagnostics::{Location, Problems};
use crate::language::leaf::{self, ValueError};
use crate::parse::tree::{Node, Table};
use crate::study::Study;
use factors::Factors;
use stacklab_model::LinkConfig;

/// A value that remembers where it was written.
struct At<T> {
    value: T,
    place: Location,
}

/// Reads a study; `None` where something is wrong that the problems say.
pub(crate) fn study(tree: &Table, problems: &mut Problems) -> Option<Study> {
    let title = at(tree.get("title"), leaf::text, problems).map(|title| title.value);
    let link_config = link_config(tree.get("testbed"), problems);
    let bed_mtu = at(tree.get("testbed").and_then(|link_config| link_config.get("mtu")), whole, problems);
    let factors = Factors::read(tree.get("factors"), bed_mtu, problems);
    sizes::check(&factors, problems);
    settings::check(&factors, problems);
    let topology = mechanisms::topology(tree.get("testbed"), problems);
    mechanisms::check(topology.as_ref(), tree.get("testbed"), &factors, problems);
    let cells = factors.cells(problems);
    let probes = probes::read(tree.get("probe"), tree.get("testbed"), &factors, problems);
    let rule = rule::read(tree.get("runs"), problems);
    let comparisons = comparisons::read(tree.get("comparison"), &factors, &probes, problems);
    let hosts = hosts::read(tree.get("host"), topology.as_ref(), &factors, problems);
    let topology = topology?.value;
    Some(Study {
        title: title?,
        link_config: link_config?,
        topology,
        hosts,
        cells,
        probes,
        rule: rule?,
        comparisons,
    })
}

fn link_config(node: Option<&Node>, problems: &Problems) -> Option<LinkConfig> {
    let key = |name| node.and_then(|node| node.get(name));
    Some(LinkConfig {
        rate: at(key("rate"), leaf::rate, problems).map(|rate| rate.value),
        mtu: at(key("mtu"), whole, problems)?.value,
        offloads: at(key("offloads"), leaf::boolean, problems)?.value,
    })
}

/// A value that is there and with which nothing is wrong.
fn at<T>(
    node: Option<&Node>,
    read: impl Fn(&Node) -> Result<T, ValueError>,
    problems: &Problems,
) -> Option<At<T>> {
    let node = node.filter(|node| !problems.known_at(&node.place))?;
    Some(At { value: read(node).ok()?, place: node.place.clone() })
}

/// The items of a list with which nothing is wrong.
fn items<T>(
    node: Option<&Node>,
    read: impl Fn(&Node) -> Result<T, ValueError>,
    problems: &Problems,
) -> Vec<At<T>> {
    let items = node.map_or(&[][..], |node| node.items());
    items.iter().filter_map(|item| at(Some(item), &read, problems)).collect()
}

/// A whole number; its bounds have been checked.
fn whole(node: &Node) -> Result<u32, ValueError> {
    leaf::integer(node, 0, i64::from(u32::MAX)).map(|integer| integer as u32)
}

/// Nanoseconds; the bounds have been checked.
fn nanoseconds(node: &Node) -> Result<u64, ValueError> {
    leaf::duration(node, "0s", "100000h")
}
