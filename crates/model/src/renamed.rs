//! Names of before the first release, so that study files, records' commands and scripts that have them fail with the
//! present name.

/// Old and new names of each closed set, by what [`crate::UnknownName`] calls the set.
const NAMES: &[(&str, &[(&str, &str)])] = &[("metric", METRICS), ("probe", PROBES), ("schedule", SCHEDULES)];

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
    ("bias_sent", "generator_tx_error"),
    ("bias_received", "generator_rx_error"),
];

const PROBES: &[(&str, &str)] = &[("echo_open", "echo_open_loop"), ("echo_loaded", "echo_under_load")];

const SCHEDULES: &[(&str, &str)] = &[("separate", "sequential")];

/// Keys of study files: the table that had the key, which `scale.NAME` may precede, the key, and its present name in
/// the same table. `*` is any one table.
pub const RENAMED_KEYS: &[(&str, &str, &str)] = &[
    ("", "runs", "blocks"),
    ("blocks", "arms", "schedule"),
    ("", "also", "include"),
    ("probe", "echo_open", "echo_open_loop"),
    ("probe", "echo_loaded", "echo_under_load"),
    ("probe.*", "packet_rate", "message_rate"),
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
    use crate::{Metric, Probe};
    use std::str::FromStr;

    #[test]
    fn old_names_fail_with_the_new_ones() {
        // The schedule is the study reader's own.
        for (set, old, new) in renamed_names().filter(|(set, ..)| *set != "schedule") {
            let parse = |name: &str| match set {
                "metric" => Metric::from_str(name).map(drop),
                "probe" => Probe::from_str(name).map(drop),
                _ => panic!("{set}"),
            };
            let expected = format!("{set} `{old}` was renamed to `{new}`");
            assert_eq!(parse(old).map_err(|error| error.to_string()), Err(expected));
            assert_eq!(parse(new), Ok(()));
        }
    }

    #[test]
    fn keys_are_found_in_their_tables_only() {
        assert_eq!(renamed_key("probe.stream.packet_rate"), Some("message_rate"));
        assert_eq!(renamed_key("scale.quick.probe.echo_open"), Some("echo_open_loop"));
        assert_eq!(renamed_key("packet_rate"), None);
        assert_eq!(renamed_key("testbed.packet_rate"), None);
    }
}
