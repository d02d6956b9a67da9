//! The keys of a Wi-Fi network.

use crate::language::{KeyDef, Kind, default, optional};
use stacklab_model::wifi::{Attachment, Guard, LegacyRate, Security, WifiClock, WifiSettings};

/// The keys of `testbed.wifi`. What is absent is `WifiConfig::default`.
pub(crate) const WIFI: &[KeyDef] = &[
    default("standard", Kind::Name { set: "standard", names: &["n"] }, "\"n\"", "IEEE 802.11n."),
    default("band", Kind::Name { set: "band", names: &["2.4"] }, "\"2.4\"", "Frequency band, GHz."),
    optional(
        "proxy_arp",
        Kind::Refused(
            "the access point would answer only for addresses that it saw DHCP give, and hosts have static ones; multicast_to_unicast spares group frames too",
        ),
        "",
    ),
    default(
        "channel",
        Kind::Integer { least: 1, most: 11 },
        "1",
        "Primary channel. The second one of 40 MHz is above it, from channel 8 on below it.",
    ),
    default("channel_width", Kind::OneOfNumbers(&[20, 40]), "40", "Width of the channel, MHz."),
    default(
        "mcs",
        Kind::Integer { least: 0, most: 76 },
        "15",
        "Modulation and coding scheme of data frames: 0 to 7 one stream, 8 to 15 two.",
    ),
    default(
        "guard_interval",
        Kind::Name { set: "guard interval", names: Guard::NAMES },
        "\"short\"",
        "Guard interval of data frames. short: 400 ns. long: 800 ns.",
    ),
    default(
        "security",
        Kind::Name { set: "security", names: Security::NAMES },
        "\"wpa2\"",
        "open: frames in the clear. wpa2: WPA2-Personal with CCMP. wpa3: WPA3-Personal (SAE) with CCMP and management frame protection.",
    ),
    default("aggregation", Kind::Table(AGGREGATION), "{}", "Limits of A-MPDUs: frames that share one PPDU."),
    default(
        "dtim_period",
        Kind::Integer { least: 1, most: 255 },
        "2",
        "Beacons from one delivery of group frames to the next, while a station sleeps.",
    ),
    default(
        "basic_rate",
        Kind::Name { set: "rate", names: LegacyRate::NAMES },
        "\"6 Mbit/s\"",
        "The lowest rate that all stations have: that of group frames and of management frames.",
    ),
    default(
        "multicast_to_unicast",
        Kind::Boolean,
        "false",
        "Whether the access point sends group frames to each station alone, at the rate of data frames.",
    ),
    optional(
        "neighbour_lifetime",
        Kind::Duration { least: "1ms", most: "24h" },
        "How long sender and receiver remember each other's link-layer address in trials: then a packet causes ARP or neighbour discovery again. Absent: for ever.",
    ),
    default(
        "power_save",
        Kind::Boolean,
        "false",
        "Whether stations sleep after 100 ms without traffic, and wake up for beacons.",
    ),
    default(
        "receiver",
        Kind::Name { set: "receiver", names: Attachment::NAMES },
        "\"station\"",
        "station: the receiver is a station too. wired: it is on a wire without a rate limit, which the access point bridges.",
    ),
    default(
        "stations",
        Kind::Integer { least: 0, most: WifiSettings::MAX_STATIONS as i64 },
        "0",
        "Stations beside sender and receiver. During trials each always has a UDP message of 1408 bytes over IPv4 for the access point to send.",
    ),
    optional(
        "snr",
        Kind::Integer { least: 1, most: 60 },
        "Signal to noise ratio of all links, dB: frames are lost at random. Absent: by collisions only.",
    ),
    default(
        "clock",
        Kind::Name { set: "clock", names: WifiClock::NAMES },
        "\"virtual\"",
        "virtual: simulated time, which passes while all processes of the network wait, so that a slow machine delays nothing; CPU figures mean nothing then. real: this machine's time.",
    ),
];

const AGGREGATION: &[KeyDef] = &[
    default("frames", Kind::Integer { least: 1, most: 64 }, "64", "Most frames; 1 means no aggregation."),
    default(
        "bytes",
        Kind::Integer { least: 1, most: 65_535 },
        "65535",
        "Most bytes, delimiters and padding included.",
    ),
    default("time", Kind::Duration { least: "1us", most: "5484us" }, "\"5484us\"", "The longest PPDU."),
];

/// Keys at the beginning of [`WIFI`] that are not factors.
const FIXED: usize = 3;

/// The keys of `factors.wifi`: those of `testbed.wifi`, as lists.
pub(crate) const VARIED: &[KeyDef] =
    &vary_keys::<{ WIFI.len() - FIXED }>(WIFI, FIXED, Kind::Table(VARIED_AGGREGATION));
const VARIED_AGGREGATION: &[KeyDef] = &vary_keys::<{ AGGREGATION.len() }>(AGGREGATION, 0, Kind::Table(&[]));

/// The keys from a place on, as lists of their values; `table` is in the place of a table.
const fn vary_keys<const COUNT: usize>(keys: &'static [KeyDef], from: usize, table: Kind) -> [KeyDef; COUNT] {
    let mut varied = [keys[from]; COUNT];
    let mut place = 0;
    while place < COUNT {
        let key = &keys[from + place];
        let kind = if let Kind::Table(_) = key.kind { table } else { Kind::List(&key.kind) };
        varied[place] = optional(key.name, kind, key.doc);
        place += 1;
    }
    varied
}
