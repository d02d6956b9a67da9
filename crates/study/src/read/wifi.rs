//! Wi-Fi networks, and what cannot be had on them.

use super::factors::Factors;
use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::read::node::{At, at, whole};
use stacklab_model::wifi::{Mcs, WifiConfig, WifiSettings};
use stacklab_model::{CellSettings, Factor, SizeOf, Topology};

/// Reads the network of a study. Cells may differ from it.
pub(super) fn network(node: Option<&Located>, mtu: Option<&Located>, problems: &Problems) -> WifiConfig {
    let mut given = CellSettings::default();
    for factor in Factor::ALL.iter().filter(|factor| factor.is_of_wifi()) {
        let node = node.and_then(|node| node.path(factor.name().trim_start_matches("wifi.")));
        if let Some(level) = at(node, leaf::level, problems) {
            // What is not a level has been reported.
            let _ = given.set(*factor, &level.value);
        }
    }
    let mut network = WifiConfig::default().with(&given.wifi);
    network.settings.mtu = at(mtu, whole, problems).map_or(network.settings.mtu, |mtu| mtu.value);
    network
}

/// Keys of the testbed that are of wires.
const OF_WIRES: [(&str, &str); 1] =
    [("rate", "channel_width, mcs and guard_interval of testbed.wifi set the rate of the channel")];

/// Factors that a Wi-Fi network does not support, and why.
const UNSUPPORTED: [(Factor, &str); 6] = [
    (Factor::Os, "all three hosts run in one user-mode Linux, to which the radios belong"),
    (Factor::Services, "daemons run between namespaces of this machine only"),
    (Factor::Mtu, "the network has the MTU that it is built with: testbed.mtu"),
    (Factor::QueueLength, "the queues of a radio are the medium's"),
    (Factor::Pinning, "the guest has one processor"),
    (Factor::BusyPoll, "the interface has no queue that a receive could poll"),
];

/// Adds what does not go together.
pub(super) fn check(
    topology: Option<&At<Topology>>,
    testbed: Option<&Located>,
    all: &[Factors],
    problems: &mut Problems,
) {
    let Some(topology) = topology else { return };
    let key = |name| testbed.and_then(|node| node.get(name));
    let Topology::Wifi(_) = topology.value else {
        let factors = Factor::ALL.iter().filter(|factor| factor.is_of_wifi()).flat_map(|factor| {
            let levels = all.iter().filter_map(|factors| factors.setting_levels(*factor).first());
            levels.map(move |level| (format!("factors.{factor}"), level.place.clone()))
        });
        let wifi = key("wifi").map(|node| ("testbed.wifi".to_owned(), node.place.clone()));
        for (what, place) in wifi.into_iter().chain(factors).collect::<Vec<_>>() {
            problems.add(
                Problem::at(place, format!("`{what}` needs a Wi-Fi network"), "not possible on a wire")
                    .help("add topology = \"wifi\" to [testbed], or leave it out"),
            );
        }
        return;
    };
    let mut refuse = |place, what: String, why: &str| {
        problems.add(
            Problem::at(place, format!("`{what}` cannot be set on Wi-Fi"), why)
                .related(topology.place.clone(), "together with this")
                .help("leave it out"),
        );
    };
    for (name, why) in OF_WIRES {
        if let Some(node) = key(name) {
            refuse(node.place.clone(), format!("testbed.{name}"), why);
        }
    }
    for factors in all {
        for (factor, why) in UNSUPPORTED {
            // A factor's value may be stated even if it is the default.
            let plain = match factor {
                Factor::Os => "namespace",
                Factor::Services | Factor::Pinning => "none",
                _ => "",
            };
            let levels = factors.setting_levels(factor);
            if let Some(level) = levels.iter().find(|level| level.value != plain) {
                refuse(level.place.clone(), format!("factors.{factor}"), why);
            }
        }
        if let Some(size_of) = factors.size_of.iter().find(|size_of| size_of.value == SizeOf::Frame) {
            let why = "sizes of Ethernet frames: expected \"payload\" or \"write\"";
            refuse(size_of.place.clone(), "frame".to_owned(), why);
        }
    }
    let offloads = at(key("offloads"), leaf::boolean, problems).filter(|offloads| offloads.value);
    let mtu = at(key("mtu"), whole, problems);
    if let Some(offloads) = offloads {
        problems.add(
            Problem::at(offloads.place, "Wi-Fi has no offloads", "expected false")
                .related(topology.place.clone(), "together with this"),
        );
    }
    if let Some(mtu) = mtu {
        let settings = WifiSettings { mtu: mtu.value, ..WifiSettings::default() };
        refuse_setting(settings.radio().err(), &mtu, topology, problems);
    }
    let mcs = key("wifi").and_then(|wifi| wifi.get("mcs"));
    let mcs = at(mcs, leaf::level, problems).into_iter();
    let levels = all.iter().flat_map(|factors| factors.setting_levels(Factor::WifiMcs)).cloned();
    for mcs in mcs.chain(levels).collect::<Vec<At<String>>>() {
        let Ok(index) = mcs.value.parse() else { continue };
        refuse_setting(Mcs::new(index).err(), &mcs, topology, problems);
    }
}

/// Adds the error of a setting at its place.
fn refuse_setting<T>(
    error: Option<String>,
    setting: &At<T>,
    topology: &At<Topology>,
    problems: &mut Problems,
) {
    let Some(error) = error else { return };
    // Each such sentence ends with what is possible.
    let (title, expected) = error.split_once(": ").unwrap_or((&error, ""));
    problems.add(
        Problem::at(setting.place.clone(), title, expected)
            .related(topology.place.clone(), "together with this"),
    );
}
