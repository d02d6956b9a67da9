//! Wi-Fi networks, and what cannot be had on them.

use super::factors::Factors;
use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Node;
use crate::read::node::{At, at, nanoseconds, whole};
use stacklab_model::wifi::{Aggregation, Mcs, WifiConfig, WifiError, WifiSettings};
use stacklab_model::{Factor, Framing, Topology};

/// Reads the network of a study. Cells may differ from it.
pub(super) fn network(node: Option<&Node>, mtu: Option<&Node>, problems: &Problems) -> WifiConfig {
    let standard = WifiConfig::default();
    let own = standard.settings;
    let mtu = at(mtu, whole, problems).map_or(own.mtu, |mtu| mtu.value);
    let key = |name| node.and_then(|node| node.get(name));
    let limit = |name| key("aggregation").and_then(|node| node.get(name));
    let number = |node| at(node, whole, problems).map(|number| number.value);
    let byte = |node| number(node).and_then(|number| u8::try_from(number).ok());
    // Numbers have levels of the same text.
    let level = |name| at(key(name), leaf::level, problems).map(|level: At<String>| level.value);
    let aggregation = Aggregation {
        frames: number(limit("frames")).unwrap_or(own.aggregation.frames),
        bytes: number(limit("bytes")).unwrap_or(own.aggregation.bytes),
        time_ns: at(limit("time"), nanoseconds, problems).map_or(own.aggregation.time_ns, |time| time.value),
        ..own.aggregation
    };
    let parsed = |name| level(name).unwrap_or_default();
    let settings = WifiSettings {
        channel: byte(key("channel")).unwrap_or(own.channel),
        width: parsed("width").parse().unwrap_or(own.width),
        guard: parsed("guard").parse().unwrap_or(own.guard),
        mcs: byte(key("mcs")).unwrap_or(own.mcs),
        aggregation,
        basic_rate: parsed("basic_rate").parse().unwrap_or(own.basic_rate),
        dtim: byte(key("dtim")).unwrap_or(own.dtim),
        multicast_to_unicast: parsed("multicast_to_unicast").parse().unwrap_or(own.multicast_to_unicast),
        neighbour_lifetime_ns: at(key("neighbour_lifetime"), nanoseconds, problems).map(|time| time.value),
        power_save: parsed("power_save").parse().unwrap_or(own.power_save),
        receiver: parsed("receiver").parse().unwrap_or(own.receiver),
        stations: byte(key("stations")).unwrap_or(own.stations),
        snr_db: byte(key("snr")).map(f64::from),
        mtu,
        time: parsed("time").parse().unwrap_or(own.time),
        seed: own.seed,
    };
    WifiConfig { settings, security: parsed("security").parse().unwrap_or(standard.security) }
}

/// Keys of the testbed that are of wires.
const OF_WIRES: [(&str, &str); 1] =
    [("rate", "width, mcs and guard of testbed.wifi set the rate of the channel")];

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
    testbed: Option<&Node>,
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
        if let Some(framing) = factors.framing.iter().find(|framing| framing.value == Framing::Frame) {
            let why = "sizes of Ethernet frames: expected \"segment\" or \"message\"";
            refuse(framing.place.clone(), "frame".to_owned(), why);
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
    let levels = all.iter().flat_map(|factors| factors.setting_levels(Factor::Mcs)).cloned();
    for mcs in mcs.chain(levels).collect::<Vec<At<String>>>() {
        let Ok(index) = mcs.value.parse() else { continue };
        refuse_setting(Mcs::new(index).err(), &mcs, topology, problems);
    }
}

/// Adds the error of a setting at its place.
fn refuse_setting<T>(
    error: Option<WifiError>,
    setting: &At<T>,
    topology: &At<Topology>,
    problems: &mut Problems,
) {
    let Some(error) = error.map(|error| error.to_string()) else { return };
    // Each such sentence ends with what is possible.
    let (title, expected) = error.split_once(": ").unwrap_or((&error, ""));
    problems.add(
        Problem::at(setting.place.clone(), title, expected)
            .related(topology.place.clone(), "together with this"),
    );
}
