//! The keys of a Wi-Fi network.

use crate::language::key::{Key, Kind, default, optional};
use stacklab_model::wifi::{Attachment, Clock, Guard, LegacyRate, MOST_STATIONS, Security};

/// The keys of `testbed.wifi`. What is absent is `WifiConfig::default`.
pub(crate) const WIFI: &[Key] = &[
    default("standard", Kind::Name { set: "standard", names: &["n"] }, "\"n\"", "IEEE 802.11n."),
    default("band", Kind::Name { set: "band", names: &["2.4"] }, "\"2.4\"", "Frequency band, GHz."),
    default(
        "channel",
        CHANNEL,
        "1",
        "Primary channel. The second one of 40 MHz is above it, from channel 8 on below it.",
    ),
    default("width", WIDTH, "40", "Width of the channel, MHz."),
    default("mcs", MCS, "15", "Modulation and coding scheme of data frames: 0 to 7 one stream, 8 to 15 two."),
    default("guard", GUARD, "\"short\"", "Guard interval of data frames. short: 400 ns. long: 800 ns."),
    default(
        "security",
        SECURITY,
        "\"wpa2\"",
        "open: frames in the clear. wpa2: WPA2-Personal with CCMP. wpa3: WPA3-Personal (SAE) with CCMP and management frame protection.",
    ),
    default("aggregation", Kind::Table(AGGREGATION), "{}", "Limits of A-MPDUs: frames that share one PPDU."),
    default(
        "dtim",
        DTIM,
        "2",
        "Beacons from one delivery of group frames to the next, while a station sleeps.",
    ),
    default(
        "basic_rate",
        BASIC_RATE,
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
        NEIGHBOUR_LIFETIME,
        "How long sender and receiver remember each other's link-layer address in trials: then a packet causes ARP or neighbour discovery again. Absent: for ever.",
    ),
    default(
        "power_save",
        Kind::Boolean,
        "false",
        "Whether stations sleep after 100 ms without traffic, and wake up for beacons.",
    ),
    optional(
        "proxy_arp",
        Kind::Refused(
            "the access point would answer only for addresses that it saw DHCP give, and hosts have static ones; multicast_to_unicast spares group frames too",
        ),
        "",
    ),
    default(
        "receiver",
        RECEIVER,
        "\"station\"",
        "station: the receiver is a station too. wired: it is on a wire without a rate limit, which the access point bridges.",
    ),
    default(
        "stations",
        STATIONS,
        "0",
        "Stations beside sender and receiver. During trials each always has a UDP message of 1408 bytes over IPv4 for the access point to send.",
    ),
    optional(
        "snr",
        SNR,
        "Signal to noise ratio of all links, dB: frames are lost at random. Absent: by collisions only.",
    ),
    default(
        "time",
        CLOCK,
        "\"virtual\"",
        "virtual: simulated time, which passes while all processes of the network wait, so that a slow machine delays nothing; CPU figures mean nothing then. real: this machine's time.",
    ),
];

const AGGREGATION: &[Key] = &[
    default("frames", FRAMES, "64", "Most frames; 1 means no aggregation."),
    default("bytes", BYTES, "65535", "Most bytes, delimiters and padding included."),
    default("time", TIME_ON_AIR, "\"5484us\"", "The longest PPDU."),
];

pub(crate) const WIDTH: Kind = Kind::OneOfNumbers(&[20, 40]);
/// The indices that IEEE 802.11n has.
pub(crate) const MCS: Kind = Kind::Integer { least: 0, most: 76 };
pub(crate) const GUARD: Kind = Kind::Name { set: "guard", names: Guard::NAMES };
pub(crate) const CHANNEL: Kind = Kind::Integer { least: 1, most: 11 };
pub(crate) const SECURITY: Kind = Kind::Name { set: "security", names: Security::NAMES };
pub(crate) const RECEIVER: Kind = Kind::Name { set: "receiver", names: Attachment::NAMES };
pub(crate) const STATIONS: Kind = Kind::Integer { least: 0, most: MOST_STATIONS as i64 };
pub(crate) const FRAMES: Kind = Kind::Integer { least: 1, most: 64 };
pub(crate) const BYTES: Kind = Kind::Integer { least: 1, most: 65_535 };
pub(crate) const TIME_ON_AIR: Kind = Kind::Duration { least: "1us", most: "5484us" };
pub(crate) const DTIM: Kind = Kind::Integer { least: 1, most: 255 };
pub(crate) const NEIGHBOUR_LIFETIME: Kind = Kind::Duration { least: "1ms", most: "24h" };
pub(crate) const BASIC_RATE: Kind = Kind::Name { set: "rate", names: LegacyRate::NAMES };
pub(crate) const SNR: Kind = Kind::Integer { least: 1, most: 60 };
pub(crate) const CLOCK: Kind = Kind::Name { set: "time", names: Clock::NAMES };
