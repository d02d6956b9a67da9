//! Closed sets of names: the nearest valid name when one is misspelt, and the present names of old ones.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    pub found: String,
    pub set: &'static str,
    pub valid: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(new) = self.renamed_to() {
            return write!(f, "{} `{}` was renamed to `{new}`", self.set, self.found);
        }
        write!(f, "there is no {} `{}`: expected one of {}", self.set, self.found, self.valid.join(", "))?;
        match nearest(&self.found, self.valid.iter().copied()) {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownName {}

impl UnknownName {
    pub fn renamed_to(&self) -> Option<&'static str> {
        find_new_name(self.set, &self.found)
    }
}

/// The valid name closest to the text, if at most a third of its letters are wrong, or one.
pub fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let length = found.chars().count();
    valid
        .into_iter()
        .filter(|name| has_near_length(length, name))
        .map(|name| (distance(&found, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The names from the nearest to the farthest. Of an untrusted text only the beginning counts.
pub fn by_distance<'a>(found: &str, valid: &[&'a str]) -> Vec<&'a str> {
    const BEGINNING: usize = 40;
    let found: String = found.to_lowercase().chars().take(BEGINNING).collect();
    let mut names = valid.to_vec();
    names.sort_by_key(|name| distance(&found, &name.to_lowercase()));
    names
}

/// Whether a text of this many characters may be near to a name. An untrusted text may have a megabyte.
fn has_near_length(length: usize, name: &str) -> bool {
    length.abs_diff(name.chars().count()) <= (name.len() / 3).max(1)
}

/// Edit distance (Damerau-Levenshtein): letters inserted, deleted, replaced, or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut edits = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            edits[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = edits[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swap = if swapped { edits[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(edits[i - 1][j] + 1).min(edits[i][j - 1] + 1).min(swap)
            };
        }
    }
    edits[a.len()][b.len()]
}

/// An enum whose variants each have one name, used alike in study files, records, messages and reports.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident ($set:literal) { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl $type {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            pub const NAMES: &'static [&'static str] = &[$($name,)+];
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        $crate::names::text_of_names!($type, $set);
    };
}
pub(crate) use named;

/// JSON of a type that is the text which it prints and parses.
macro_rules! json_is_text {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use json_is_text;

/// Reading and writing for a closed set with `ALL`, `NAMES` and `name`.
macro_rules! text_of_names {
    ($type:ident, $set:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|member| member.name() == text).ok_or_else(|| {
                    $crate::UnknownName { found: text.to_owned(), set: $set, valid: Self::NAMES }
                })
            }
        }
    };
}
pub(crate) use text_of_names;

/// Each item once, at its first occurrence.
pub fn once_each<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut each = Vec::new();
    for item in items {
        if !each.contains(&item) {
            each.push(item);
        }
    }
    each
}

/// Names from before the first release, which fail with the present one: the set (as in [`UnknownName`]), the old name
/// and the present one.
const RENAMED_NAMES: &[(&str, &str, &str)] = &[
    ("metric", "cpu_per_packet_sender", "sender_cpu_per_message"),
    ("metric", "cpu_per_packet", "receiver_cpu_per_message"),
    ("metric", "cpu_system", "sender_cpu_system"),
    ("metric", "cpu_receiver_system", "receiver_cpu_system"),
    ("metric", "packet_rate", "message_rate"),
    ("metric", "ttr", "transfer_time_ratio"),
    ("metric", "fragments", "ip_frag_creates"),
    ("metric", "reassembled", "ip_reasm_oks"),
    ("metric", "fragments_routers", "ip_frag_creates_routers"),
    ("metric", "reassembled_routers", "ip_reasm_oks_routers"),
    ("metric", "rtt_loaded", "rtt_under_load"),
    ("metric", "rtt_loaded_mean", "rtt_under_load_mean"),
    ("metric", "rtt_loaded_p99", "rtt_under_load_p99"),
    ("metric", "throughput_load", "load_throughput"),
    ("metric", "lateness", "pacing_error"),
    ("metric", "lateness_p99", "pacing_error_p99"),
    ("metric", "lateness_open", "pacing_error_open"),
    ("metric", "lateness_open_p99", "pacing_error_open_p99"),
    ("metric", "cpu_engine_sender", "cpu_generator_sender"),
    ("metric", "cpu_engine_receiver", "cpu_generator_receiver"),
    ("metric", "bias_sent", "generator_tx_error"),
    ("metric", "bias_received", "generator_rx_error"),
    ("probe", "echo_open", "echo_open_loop"),
    ("probe", "echo_loaded", "echo_under_load"),
    ("schedule", "separate", "sequential"),
    ("I/O path", "plain", "send"),
    ("I/O path", "batch", "sendmmsg"),
    ("I/O path", "segment", "gso"),
    ("factor", "framing", "size_of"),
    ("factor", "engine", "generator"),
    ("factor", "routers", "router_os"),
    ("factor", "width", "wifi.channel_width"),
    ("factor", "mcs", "wifi.mcs"),
    ("factor", "guard", "wifi.guard_interval"),
    ("factor", "channel", "wifi.channel"),
    ("factor", "security", "wifi.security"),
    ("factor", "aggregation_frames", "wifi.aggregation.frames"),
    ("factor", "aggregation_bytes", "wifi.aggregation.bytes"),
    ("factor", "aggregation_time", "wifi.aggregation.time"),
    ("factor", "dtim", "wifi.dtim_period"),
    ("factor", "basic_rate", "wifi.basic_rate"),
    ("factor", "multicast_to_unicast", "wifi.multicast_to_unicast"),
    ("factor", "neighbour_lifetime", "wifi.neighbour_lifetime"),
    ("factor", "power_save", "wifi.power_save"),
    ("factor", "receiver", "wifi.receiver"),
    ("factor", "stations", "wifi.stations"),
    ("factor", "snr", "wifi.snr"),
    ("factor", "time", "wifi.clock"),
    ("size_of", "segment", "payload"),
    ("size_of", "message", "write"),
    ("system", "here", "localhost"),
];

/// Renamed keys of study files other than factors: the table, which `scale.NAME` may precede, the old key, and its
/// present name there. `*` is any one table.
pub const RENAMED_KEYS: &[(&str, &str, &str)] = &[
    ("", "runs", "blocks"),
    ("blocks", "arms", "schedule"),
    ("", "also", "include"),
    ("testbed", "near", "sender_link"),
    ("testbed", "far", "receiver_link"),
    ("testbed.wifi", "width", "channel_width"),
    ("testbed.wifi", "guard", "guard_interval"),
    ("testbed.wifi", "dtim", "dtim_period"),
    ("testbed.wifi", "time", "clock"),
    ("probe", "echo_open", "echo_open_loop"),
    ("probe", "echo_loaded", "echo_under_load"),
    ("probe.*", "packet_rate", "message_rate"),
];

pub const RENAMED_FLAGS: &[(&str, &str)] = &[
    ("--most-rate", "--max-rate"),
    ("--longest", "--max-duration"),
    ("--most-mb", "--max-bytes"),
    ("--idle", "--idle-timeout"),
    ("--open", "--no-auth"),
    ("--framing", "--size-of"),
];

/// The present name of a member of a closed set.
pub(crate) fn find_new_name(set: &str, old: &str) -> Option<&'static str> {
    renamed_names().find(|(of, name, _)| (*of, *name) == (set, old)).map(|(_, _, new)| new)
}

/// The present name of a study file's key; `path` is the key's dotted path.
pub fn renamed_key(path: &str) -> Option<&'static str> {
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    let table = match table.strip_prefix("scale.") {
        Some(rest) => rest.split_once('.').map_or("", |(_, table)| table),
        None => table,
    };
    if ["factors", "include"].contains(&table) {
        return find_new_name("factor", key);
    }
    let found = RENAMED_KEYS.iter().find(|(pattern, old, _)| *old == key && fits_table(pattern, table));
    found.map(|(_, _, new)| *new)
}

/// Whether a pattern is of this table: its path, or `parent.*`.
fn fits_table(pattern: &str, table: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(parent) => table.rsplit_once('.').is_some_and(|(above, _)| above == parent),
        None => pattern == table,
    }
}

/// Every renamed member of a closed set: the set, the old name, and the present one.
pub fn renamed_names() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    RENAMED_NAMES.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Factor, Io, Metric, Probe, SizeOf, System};
    use std::str::FromStr;

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        assert_eq!(nearest("ipv5", ["ipv4", "ipv6"]), Some("ipv4"));
        assert_eq!(nearest("familly", ["family", "transport"]), Some("family"));
        assert_eq!(nearest("mut", ["rate", "mtu", "offloads"]), Some("mtu"));
        assert_eq!(nearest("banana", ["family", "transport"]), None);
        // Not compared letter by letter, which would take seconds and gigabytes.
        assert!(!has_near_length(20 << 20, "transport") && has_near_length(12, "transport"));
        assert_eq!(nearest(&"a".repeat(20 << 20), ["family", "transport"]), None);
    }

    #[test]
    fn old_names_fail_with_the_new_ones() {
        // The schedule is the study reader's own.
        for (set, old, new) in renamed_names().filter(|(set, ..)| *set != "schedule") {
            let expected = format!("{set} `{old}` was renamed to `{new}`");
            if set == "system" {
                assert_eq!(old.parse::<System>().map_err(|error| error.to_string()), Err(expected));
                assert!(new.parse::<System>().is_ok());
                continue;
            }
            assert_eq!(parse_member(set, old).map_err(|error| error.to_string()), Err(expected));
            assert_eq!(parse_member(set, new), Ok(()));
        }
    }

    fn parse_member(set: &str, name: &str) -> Result<(), UnknownName> {
        match set {
            "metric" => Metric::from_str(name).map(drop),
            "probe" => Probe::from_str(name).map(drop),
            "I/O path" => Io::from_str(name).map(drop),
            "factor" => Factor::from_str(name).map(drop),
            "size_of" => SizeOf::from_str(name).map(drop),
            _ => panic!("{set}"),
        }
    }

    #[test]
    fn keys_are_found_in_their_tables_only() {
        assert_eq!(renamed_key("probe.stream.packet_rate"), Some("message_rate"));
        assert_eq!(renamed_key("scale.quick.probe.echo_open"), Some("echo_open_loop"));
        assert_eq!(renamed_key("scale.paper.include.snr"), Some("wifi.snr"));
        assert_eq!(renamed_key("packet_rate"), None);
        assert_eq!(renamed_key("testbed.packet_rate"), None);
    }
}
