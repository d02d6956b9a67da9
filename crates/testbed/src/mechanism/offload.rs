//! A flowtable of nftables on a router, in software: packets of connections that it has pass neither rules nor routes.
//! A counter of those that do pass the rules proves it, and so does the kernel's list of connections, where it has one.

use crate::kernel::namespace::in_new_namespace;
use crate::mechanism::nat::{add_rules, read_counter};
use crate::{Attempt, Fault, INTERFACE, MIDDLE};
use stacklab_model::{Family, FlowOffload};
use std::fs;

/// The kernel options that it needs, as written in a kernel configuration.
pub const OPTIONS: [&str; 4] = [
    "CONFIG_NF_FLOW_TABLE=y",
    "CONFIG_NF_FLOW_TABLE_INET=y",
    "CONFIG_NFT_FLOW_OFFLOAD=y",
    "CONFIG_NF_TABLES_INET=y",
];
/// The kernel module that adds connections to one.
pub const MODULE: &str = "nft_flow_offload";

const KIND: &str = "inet";
const TABLE: &str = "stacklab_flows";

pub(crate) fn build(offload: FlowOffload) -> Result<(), Fault> {
    match offload {
        FlowOffload::Off => Ok(()),
        FlowOffload::On => add_rules(&write_table(&[INTERFACE, MIDDLE])),
    }
}

/// Whether this kernel has flowtables and this machine the program, after a test in a temporary namespace.
pub(crate) fn try_table() -> Result<(), Fault> {
    in_new_namespace(|| add_rules(&write_table(&["lo"]))).attempt("make a namespace")?
}

/// A flowtable of these devices, to which each connection is added that TCP has opened or UDP has used. What follows
/// counts packets that it did not forward.
fn write_table(devices: &[&str]) -> String {
    let devices = devices.join(", ");
    let mut lines = format!(
        "add table {KIND} {TABLE}\n\
         add flowtable {KIND} {TABLE} known {{ hook ingress priority filter; devices = {{ {devices} }}; }}\n\
         add chain {KIND} {TABLE} relay {{ type filter hook forward priority filter; }}\n\
         add rule {KIND} {TABLE} relay meta l4proto {{ tcp, udp }} flow add @known\n"
    );
    for family in Family::ALL {
        lines += &format!(
            "add counter {KIND} {TABLE} {family}\n\
             add rule {KIND} {TABLE} relay meta nfproto {family} counter name {family}\n"
        );
    }
    lines
}

/// The number of forwarded packets of a family in this namespace that passed its rules.
pub(crate) fn count_slow_packets(family: Family) -> Result<u64, Fault> {
    Ok(read_counter(KIND, TABLE, family.name())?.packets)
}

/// Whether the kernel's list of connections has one of a family that is offloaded. `None` without such a list.
pub(crate) fn has_offloaded_connection(family: Family) -> Option<bool> {
    let list = fs::read_to_string("/proc/thread-self/net/nf_conntrack").ok()?;
    Some(shows_offload(&list, family))
}

fn shows_offload(list: &str, family: Family) -> bool {
    list.lines().any(|line| line.starts_with(family.name()) && line.contains("[OFFLOAD]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_added_before_others_are_counted() {
        let lines = write_table(&["st0", "st1"]);
        let rules: Vec<&str> = lines.lines().filter(|line| line.starts_with("add rule ")).collect();
        assert!(
            lines.contains("devices = { st0, st1 };") && rules[0].ends_with("flow add @known"),
            "{lines}"
        );
        assert_eq!(rules.len(), 3, "{lines}");
        assert!(rules[2].ends_with("meta nfproto ipv6 counter name ipv6"), "{lines}");
    }

    #[test]
    fn an_offloaded_connection_is_of_its_family() {
        let list = "ipv4     2 udp      17 src=198.18.1.1 dst=198.18.2.1 sport=9 dport=9 [OFFLOAD] mark=0 use=3\n\
                    ipv6     10 udp      17 29 src=2001:2:0:1::1 dst=2001:2:0:2::1 sport=9 dport=9 [ASSURED] use=2\n";
        assert!(shows_offload(list, Family::Ipv4) && !shows_offload(list, Family::Ipv6));
    }
}
