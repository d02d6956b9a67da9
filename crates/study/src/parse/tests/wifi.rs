//! `[testbed]`: Wi-Fi.

use crate::parse::tests::{STUDY, assert_mistakes, errors, study, with};
use insta::assert_snapshot;
use stacklab_model::Topology;
use stacklab_model::wifi::{LegacyRate, Security, Width, WifiClock, WifiConfig};

/// A study over Wi-Fi, with these keys of testbed.wifi and these factors more.
fn wifi(keys: &str, factors: &str) -> String {
    with("mtu = 1500", &format!("topology = \"wifi\"\n{keys}"))
        .replace("size = [128, 1408]", &format!("size = [128]\n{factors}"))
}

fn network(text: &str) -> WifiConfig {
    match study(text).topology {
        Topology::Wifi(network) => network,
        other => panic!("{other:?}"),
    }
}

#[test]
fn unsaid_network_keys_are_the_models_defaults() {
    assert_eq!(network(&wifi("", "")), WifiConfig::default());
    assert_eq!(network(&wifi("wifi = {}", "")), WifiConfig::default());
    assert_eq!(study(STUDY).networks(), []);
}

#[test]
fn every_key_of_a_network_is_read() {
    let keys = "wifi = { standard = \"n\", band = \"2.4\", channel = 6, channel_width = 20, mcs = 7, guard_interval = \"long\", \
        security = \"open\", aggregation = { frames = 8, bytes = 8191, time = \"4ms\" }, dtim_period = 3, \
        basic_rate = \"1 Mbit/s\", multicast_to_unicast = true, power_save = true, receiver = \"wired\", stations = 3, \
        snr = 20, clock = \"real\" }\nmtu = 1280";
    assert_eq!(
        network(&wifi(keys, "")).to_string(),
        "802.11n, channel 6 (2437 MHz), 20 MHz, MCS 7 (65.0 Mbit/s), long guard interval, security open, A-MPDUs of \
         up to 8 frames, 8191 bytes and 4000 us, basic rate 1 Mbit/s, DTIM period 3, group frames to each station \
         alone, idle stations sleep, receiver on a wire, 3 other stations that always send, signal to noise ratio \
         20 dB, real time"
    );
    assert_eq!(network(&wifi(keys, "")).settings.mtu, 1280);
}

#[test]
fn cells_that_differ_in_a_key_have_their_own_networks() {
    let networks = study(&wifi(
        "wifi = { mcs = 7 }",
        "wifi.security = [\"open\", \"wpa2\"]\nwifi.channel_width = [20, 40]\nwifi.basic_rate = [\"1 Mbit/s\"]\nwifi.clock = [\"real\"]",
    ))
    .networks();
    let found: Vec<_> = networks.iter().map(|network| (network.security, network.settings.width)).collect();
    let open = Security::Open;
    let wpa2 = Security::Wpa2;
    assert_eq!(
        found,
        [(open, Width::Mhz20), (wpa2, Width::Mhz20), (open, Width::Mhz40), (wpa2, Width::Mhz40)]
    );
    for WifiConfig { settings, .. } in networks {
        assert_eq!(
            (settings.mcs, settings.basic_rate, settings.clock),
            (7, LegacyRate::Dsss1, WifiClock::Real)
        );
    }
}

#[test]
fn what_80211n_lacks_is_refused_with_what_it_has() {
    assert_snapshot!(errors(&wifi("wifi = { channel_width = 20, mcs = 32 }", "")), @r#"
    error: MCS 32 exists at 40 MHz only and is not supported
     --> study.toml:4:36
      |
    3 | topology = "wifi"
      |            ------ together with this
    4 | wifi = { channel_width = 20, mcs = 32 }
      |                                    ^^ expected 0 to 15
    "#);
    assert_mistakes(&[
        (
            wifi("wifi = { channel_width = 30 }", ""),
            &["`testbed.wifi.channel_width`", "expected one of 20, 40"],
        ),
        (
            wifi("", "wifi.channel_width = [20, 80]"),
            &["`factors.wifi.channel_width`", "expected one of 20, 40"],
        ),
        (wifi("wifi = { mcs = 16 }", ""), &["there is no MCS 16", "expected 0 to 15"]),
        (wifi("", "wifi.mcs = [7, 16]"), &["there is no MCS 16", "expected 0 to 15"]),
        (wifi("wifi = { channel = 36 }", ""), &["expected a whole number from 1 to 11"]),
        (wifi("wifi = { band = \"5\" }", ""), &["there is no band `5`", "expected one of 2.4"]),
        (wifi("wifi = { standard = \"ac\" }", ""), &["there is no standard `ac`", "expected one of n"]),
        (wifi("wifi = { security = \"wep\" }", ""), &["there is no security `wep`", "open, wpa2, wpa3"]),
        (wifi("wifi = { stations = 9 }", ""), &["expected a whole number from 0 to 8"]),
        (
            wifi("", "wifi.stations = [0, 9]"),
            &["`factors.wifi.stations`", "expected a whole number from 0 to 8"],
        ),
        (wifi("wifi = { receiver = \"wire\" }", ""), &["there is no receiver `wire`", "station, wired"]),
        (wifi("wifi = { power_save = \"on\" }", ""), &["`testbed.wifi.power_save`"]),
        (wifi("wifi = { neighbour_lifetime = \"1us\" }", ""), &["`testbed.wifi.neighbour_lifetime`", "1ms"]),
        (wifi("wifi = { aggregation = { frames = 65 } }", ""), &["expected a whole number from 1 to 64"]),
        (
            wifi("wifi = { proxy_arp = true }", ""),
            &["`testbed.wifi.proxy_arp` has no meaning", "static ones"],
        ),
        (wifi("mtu = 9000", ""), &["an MTU of 9000 bytes is not possible", "expected 1280 to 2254"]),
    ]);
}

#[test]
fn what_wifi_cannot_have_is_refused_where_written() {
    assert_snapshot!(errors(&wifi("", "os = [\"namespace\", \"gvisor\"]")), @r#"
    error: `factors.os` cannot be set on Wi-Fi
      --> study.toml:10:20
       |
     3 | topology = "wifi"
       |            ------ together with this
    ...
    10 | os = ["namespace", "gvisor"]
       |                    ^^^^^^^^ all three hosts run in one user-mode Linux, to which the radios belong
       |
       = help: leave it out
    "#);
    assert_mistakes(&[
        (
            wifi("rate = \"100 Mbit/s\"", ""),
            &["`testbed.rate` cannot be set on Wi-Fi", "channel_width, mcs and guard_interval"],
        ),
        (wifi("offloads = true", ""), &["Wi-Fi has no offloads"]),
        (wifi("delay = \"5ms\"", ""), &["`testbed.delay` needs two routers", "in place of"]),
        (wifi("", "mechanism = [\"6in4\"]"), &["`factors.mechanism` needs two routers"]),
        (wifi("", "services = [\"dns\"]"), &["`factors.services` cannot be set on Wi-Fi"]),
        (wifi("", "mtu = [1500]"), &["`factors.mtu` cannot be set on Wi-Fi", "testbed.mtu"]),
        (wifi("", "queue_length = [50]"), &["`factors.queue_length` cannot be set on Wi-Fi"]),
        (wifi("", "pinning = [\"halves\"]"), &["`factors.pinning` cannot be set on Wi-Fi"]),
        (
            wifi("", "").replace("size_of = [\"payload\"]", "size_of = [\"frame\"]").replace("\"tcp\", ", ""),
            &["`frame` cannot be set on Wi-Fi"],
        ),
    ]);
    let plain = "os = [\"namespace\"]\nservices = [\"none\"]\npinning = [\"none\"]";
    assert_eq!(network(&wifi("", plain)), WifiConfig::default());
}

#[test]
fn a_wire_has_no_wifi() {
    assert_mistakes(&[
        (
            with("mtu = 1500", "wifi = { mcs = 7 }"),
            &["`testbed.wifi` needs a Wi-Fi network", "topology = \"wifi\""],
        ),
        (
            with("size = [128, 1408]", "size = [128]\nwifi.security = [\"open\", \"wpa2\"]"),
            &["`factors.wifi.security` needs a Wi-Fi network"],
        ),
    ]);
}

#[test]
fn arms_of_several_networks_do_not_take_turns() {
    let by_family = wifi("", "wifi.security = [\"open\", \"wpa2\"]")
        .replace("min = 6", "schedule = \"interleaved\"\nmin = 6");
    let by_security = by_family.replace(
        "factor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"",
        "factor = \"wifi.security\"\nbaseline = \"open\"\ncandidate = \"wpa2\"",
    );
    assert_mistakes(&[(
        by_security,
        &[
            "differ in wifi.security, and each Wi-Fi network has a separate guest and clock",
            "expected \"sequential\"",
        ],
    )]);
    assert!(!study(&by_family).schedule.is_alone());
}
