//! Names of before the first release, so that study files, records' commands and scripts that have them fail with the
//! present name.

/// Old and new names of each closed set, by what [`crate::UnknownName`] calls the set.
const NAMES: &[(&str, &[(&str, &str)])] = &[
    ("metric", METRICS),
    ("probe", PROBES),
    ("schedule", SCHEDULES),
    ("I/O path", IO_PATHS),
    ("factor", FACTORS),
    ("size_of", SIZES_OF),
    ("system", &[("here", "localhost")]),
];

const METRICS: &[(&str, &str)] = &[
    ("cpu_per_packet_sender", "sender_cpu_per_message"),
    ("cpu_per_packet", "receiver_cpu_per_message"),
    ("cpu_system", "sender_cpu_system"),
    ("cpu_receiver_system", "receiver_cpu_system"),
    ("packet_rate", "message_rate"),
    ("ttr", "transfer_time_ratio"),
    ("fragments", "ip_frag_creates"),
    ("reassembled", "ip_reasm_oks"),
    ("fragments_routers", "ip_frag_creates_routers"),
    ("reassembled_routers", "ip_reasm_oks_routers"),
    ("rtt_loaded", "rtt_under_load"),
    ("rtt_loaded_mean", "rtt_under_load_mean"),
    ("rtt_loaded_p99", "rtt_under_load_p99"),
    ("throughput_load", "load_throughput"),
    ("lateness", "pacing_error"),
    ("lateness_p99", "pacing_error_p99"),
    ("lateness_open", "pacing_error_open"),
    ("lateness_open_p99", "pacing_error_open_p99"),
    ("cpu_engine_sender", "cpu_generator_sender"),
    ("cpu_engine_receiver", "cpu_generator_receiver"),
    ("bias_sent", "generator_tx_error"),
    ("bias_received", "generator_rx_error"),
];

const PROBES: &[(&str, &str)] = &[("echo_open", "echo_open_loop"), ("echo_loaded", "echo_under_load")];

const SCHEDULES: &[(&str, &str)] = &[("separate", "sequential")];

const IO_PATHS: &[(&str, &str)] = &[("plain", "send"), ("batch", "sendmmsg"), ("segment", "gso")];

const FACTORS: &[(&str, &str)] = &[
    ("framing", "size_of"),
    ("engine", "generator"),
    ("routers", "router_os"),
    ("width", "wifi.channel_width"),
    ("mcs", "wifi.mcs"),
    ("guard", "wifi.guard_interval"),
    ("channel", "wifi.channel"),
    ("security", "wifi.security"),
    ("aggregation_frames", "wifi.aggregation.frames"),
    ("aggregation_bytes", "wifi.aggregation.bytes"),
    ("aggregation_time", "wifi.aggregation.time"),
    ("dtim", "wifi.dtim_period"),
    ("basic_rate", "wifi.basic_rate"),
    ("multicast_to_unicast", "wifi.multicast_to_unicast"),
    ("neighbour_lifetime", "wifi.neighbour_lifetime"),
    ("power_save", "wifi.power_save"),
    ("receiver", "wifi.receiver"),
    ("stations", "wifi.stations"),
    ("snr", "wifi.snr"),
    ("time", "wifi.clock"),
];

const SIZES_OF: &[(&str, &str)] = &[("segment", "payload"), ("message", "write")];

/// Keys of study files other than factors: the table that had the key, which `scale.NAME` may precede, the key, and its
/// present name in the same table. `*` is any one table.
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

/// Flags of commands.
pub const RENAMED_FLAGS: &[(&str, &str)] = &[
    ("--most-rate", "--max-rate"),
    ("--longest", "--max-duration"),
    ("--most-mb", "--max-bytes"),
    ("--idle", "--idle-timeout"),
    ("--open", "--no-auth"),
    ("--framing", "--size-of"),
];

/// The present name of a member of a closed set.
pub(crate) fn renamed(set: &str, old: &str) -> Option<&'static str> {
    let (_, names) = NAMES.iter().find(|(name, _)| *name == set)?;
    names.iter().find(|(name, _)| *name == old).map(|(_, new)| *new)
}

/// The present name of a study file's key; `path` is the key's dotted path.
pub fn renamed_key(path: &str) -> Option<&'static str> {
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    let table = match table.strip_prefix("scale.") {
        Some(rest) => rest.split_once('.').map_or("", |(_, table)| table),
        None => table,
    };
    if ["factors", "include"].contains(&table) {
        return renamed("factor", key);
    }
    let is_in = |pattern: &str| match pattern.strip_suffix(".*") {
        Some(parent) => table.rsplit_once('.').is_some_and(|(above, _)| above == parent),
        None => pattern == table,
    };
    RENAMED_KEYS.iter().find(|(pattern, old, _)| *old == key && is_in(pattern)).map(|(_, _, new)| *new)
}

/// Every renamed member of a closed set: the set, the old name, and the present one.
pub fn renamed_names() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    NAMES.iter().flat_map(|(set, names)| names.iter().map(move |(old, new)| (*set, *old, *new)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Factor, Io, Metric, Probe, SizeOf, System};
    use std::str::FromStr;

    #[test]
    fn old_names_fail_with_the_new_ones() {
        // The schedule is the study reader's own.
        for (set, old, new) in renamed_names().filter(|(set, ..)| *set != "schedule") {
            let parse = |name: &str| match set {
                "metric" => Metric::from_str(name).map(drop),
                "probe" => Probe::from_str(name).map(drop),
                "I/O path" => Io::from_str(name).map(drop),
                "factor" => Factor::from_str(name).map(drop),
                "size_of" => SizeOf::from_str(name).map(drop),
                _ => panic!("{set}"),
            };
            let expected = format!("{set} `{old}` was renamed to `{new}`");
            if set == "system" {
                assert_eq!(old.parse::<System>().map_err(|error| error.to_string()), Err(expected));
                assert!(new.parse::<System>().is_ok());
                continue;
            }
            assert_eq!(parse(old).map_err(|error| error.to_string()), Err(expected));
            assert_eq!(parse(new), Ok(()));
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
