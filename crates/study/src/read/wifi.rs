//! Wi-Fi networks, and what cannot be had on them.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf;
use crate::read::factors::Factors;
use crate::read::{At, Node, whole};
use stacklab_model::wifi::{Mcs, WifiConfig, WifiSettings};
use stacklab_model::{CellSettings, Factor, SizeOf, Topology};

/// Reads the network of a study. Cells may differ from it.
pub(super) fn network(testbed: Node, problems: &Problems) -> WifiConfig {
    let mut given = CellSettings::default();
    for factor in Factor::ALL.iter().filter(|factor| factor.is_of_wifi()) {
        if let Some(level) = testbed.get(factor.name()).value(leaf::level, problems) {
            // What is not a level has been reported.
            let _ = given.set(*factor, &level);
        }
    }
    let mut network = WifiConfig::default().with(&given.wifi);
    network.settings.mtu = testbed.get("mtu").value(whole, problems).unwrap_or(network.settings.mtu);
    network
}

const UNSUPPORTED: [(Factor, &str); 6] = [
    (Factor::Os, "all three hosts run in one user-mode Linux, to which the radios belong"),
    (Factor::Services, "daemons run between namespaces of this machine only"),
    (Factor::Mtu, "the network has the MTU that it is built with: testbed.mtu"),
    (Factor::QueueLength, "the queues of a radio are the medium's"),
    (Factor::Pinning, "the guest has one processor"),
    (Factor::BusyPoll, "the interface has no queue that a receive could poll"),
];

pub(super) fn check(topology: &At<Topology>, testbed: Node, all: &[Factors], problems: &mut Problems) {
    let Topology::Wifi(_) = topology.value else { return refuse_wifi_on_wire(testbed, all, problems) };
    if let Some(place) = testbed.get("rate").place() {
        let why = "channel_width, mcs and guard_interval of testbed.wifi set the rate of the channel";
        problems.add(refuse(topology, place, "testbed.rate", why));
    }
    for factors in all {
        for (factor, why) in UNSUPPORTED {
            // A factor's value may be stated even if it is the default.
            let plain = match factor {
                Factor::Os => "namespace",
                Factor::Services | Factor::Pinning => "none",
                _ => "",
            };
            let mut levels = factors.setting_levels(factor).iter();
            if let Some(level) = levels.find(|level| level.value != plain) {
                problems.add(refuse(topology, &level.place, &format!("factors.{factor}"), why));
            }
        }
        if let Some(size_of) = factors.size_of.iter().find(|size_of| size_of.value == SizeOf::Frame) {
            let why = "sizes of Ethernet frames: expected \"payload\" or \"write\"";
            problems.add(refuse(topology, &size_of.place, "frame", why));
        }
    }
    let mut wrong = Vec::new();
    if let Some(offloads) = testbed.get("offloads").at(leaf::boolean, problems).filter(|on| on.value) {
        wrong.push(offloads.problem("Wi-Fi has no offloads", "expected false"));
    }
    if let Some(mtu) = testbed.get("mtu").at(whole, problems) {
        let settings = WifiSettings { mtu: mtu.value, ..WifiSettings::default() };
        wrong.extend(settings.radio().err().map(|error| describe_error(&mtu, &error)));
    }
    let mcs = testbed.get("wifi.mcs").at(leaf::level, problems);
    for mcs in mcs.iter().chain(all.iter().flat_map(|factors| factors.setting_levels(Factor::WifiMcs))) {
        let error = mcs.value.parse().ok().and_then(|index| Mcs::new(index).err());
        wrong.extend(error.map(|error| describe_error(mcs, &error)));
    }
    for problem in wrong {
        problems.add(problem.with_related_place(&topology.place, "together with this"));
    }
}

fn refuse(topology: &At<Topology>, place: &Location, what: &str, why: &str) -> Problem {
    Problem::at(place, format!("`{what}` cannot be set on Wi-Fi"), why)
        .with_related_place(&topology.place, "together with this")
        .help("leave it out")
}

fn refuse_wifi_on_wire(testbed: Node, all: &[Factors], problems: &mut Problems) {
    let factors = Factor::ALL.iter().filter(|factor| factor.is_of_wifi()).flat_map(|factor| {
        let levels = all.iter().filter_map(|factors| factors.setting_levels(*factor).first());
        levels.map(move |level| (format!("factors.{factor}"), &level.place))
    });
    let wifi = testbed.get("wifi").place().map(|place| ("testbed.wifi".to_owned(), place));
    for (what, place) in wifi.into_iter().chain(factors) {
        problems.add(
            Problem::at(place, format!("`{what}` needs a Wi-Fi network"), "not possible on a wire")
                .help("add topology = \"wifi\" to [testbed], or leave it out"),
        );
    }
}

/// The error of a setting: each such sentence ends with what is possible.
fn describe_error<T>(setting: &At<T>, error: &str) -> Problem {
    let (title, expected) = error.split_once(": ").unwrap_or((error, ""));
    setting.problem(title, expected)
}
