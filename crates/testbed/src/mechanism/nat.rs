//! NAT44, NAT66 and NPTv6: the near router changes source addresses by a rule of nftables, and the answers' destination
//! by its connection tracking. Rules and states vanish with the namespace.

use crate::addressing::NPT;
use crate::kernel::namespace::in_new_namespace;
use crate::kernel::netlink::Route;
use crate::mechanism::command::run_with_input;
use crate::{Attempt, Fault, MIDDLE, Router, Site, TestbedError, find};
use stacklab_model::{Family, Nat};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The kernel options that the rules need, as written in a kernel configuration.
pub const OPTIONS: [&str; 8] = [
    "CONFIG_NF_CONNTRACK=y",
    "CONFIG_NF_NAT=y",
    "CONFIG_NF_TABLES=y",
    "CONFIG_NF_TABLES_IPV4=y",
    "CONFIG_NF_TABLES_IPV6=y",
    "CONFIG_NFT_NAT=y",
    "CONFIG_NFT_MASQ=y",
    "CONFIG_NFT_NUMGEN=y",
];

/// The path of nftables' program. The error says how to get it.
pub fn nft_program() -> Result<PathBuf, TestbedError> {
    find("nft", "sudo apt-get install --no-install-recommends nftables")
}

pub(crate) fn build(router: &Router, nat: Nat) -> Result<(), Fault> {
    match router.site {
        Site::Near => add_rules(&write_rules(nat, router.mechanism.definition().carries, MIDDLE)),
        // The router's own address is on the link: only another prefix needs a route.
        Site::Far if nat == Nat::Masquerade => Ok(()),
        Site::Far => {
            let via = Some(router.other_outer(Family::Ipv6));
            Route { to: (NPT.0.into(), NPT.1), device: MIDDLE, via, mtu: None }.add()
        }
    }
}

/// Whether this kernel has these rules and this machine the program, after a test in a temporary namespace.
pub(crate) fn try_rules() -> Result<(), Fault> {
    let rules =
        write_rules(Nat::Masquerade, Family::ALL, "lo") + &write_rules(Nat::Prefix, &[Family::Ipv6], "lo");
    in_new_namespace(|| add_rules(&rules)).attempt("make a namespace")?
}

/// Rules that change the source address of packets of these families which leave by a device.
pub(super) fn write_rules(nat: Nat, families: &[Family], device: &str) -> String {
    let mut rules = String::new();
    for family in families {
        let change = match nat {
            Nat::Masquerade => "masquerade".to_owned(),
            Nat::Prefix => format!("snat {} prefix to {}/{}", name_family(*family), NPT.0, NPT.1),
        };
        rules += &write_source_change(*family, device, &change);
    }
    rules
}

/// The rule that changes the source address of what leaves by a device, with its table and chain.
pub(super) fn write_source_change(family: Family, device: &str, change: &str) -> String {
    let kind = name_family(family);
    format!(
        "add table {kind} stacklab\n\
         add chain {kind} stacklab out {{ type nat hook postrouting priority srcnat; }}\n\
         add rule {kind} stacklab out oifname \"{device}\" {change}\n"
    )
}

/// What nftables calls a family.
pub(super) fn name_family(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    }
}

/// Adds rules to this namespace by the program, which reads them from its standard input.
pub fn add_rules(rules: &str) -> Result<(), Fault> {
    let program = nft_program().attempt("find the program for nftables")?;
    run_with_input(&program, &["-f", "-"], rules)
        .attempt("add nftables rules (a guest's image has their modules if it is new: stacklab image get)")
}

/// What a counter of nftables has counted.
pub(super) struct RuleCount {
    pub packets: u64,
    /// Of IP packets with their headers.
    pub bytes: u64,
}

/// A counter of nftables in this namespace, in a table of a kind: `ip`.
pub(super) fn read_counter(kind: &str, table: &str, counter: &str) -> Result<RuleCount, Fault> {
    let what = format!("read the counter {counter} of nftables");
    let program = nft_program().attempt("find the program for nftables")?;
    let done = Command::new(program).args(["list", "counter", kind, table, counter]).output();
    let Output { stdout, stderr, .. } = done.attempt(&*what)?;
    let said = String::from_utf8_lossy(&stdout);
    match (find_number(&said, "packets"), find_number(&said, "bytes")) {
        (Some(packets), Some(bytes)) => Ok(RuleCount { packets, bytes }),
        _ => Err(String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()).attempt(what),
    }
}

/// The number behind a word: 7 in `packets 7 bytes 700`.
fn find_number(text: &str, before: &str) -> Option<u64> {
    text.split_whitespace().skip_while(|word| *word != before).nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_of_the_families_that_are_carried() {
        let rules = write_rules(Nat::Masquerade, &[Family::Ipv4], "st1");
        assert!(rules.ends_with("add rule ip stacklab out oifname \"st1\" masquerade\n"), "{rules}");
        assert!(!rules.contains("ip6"), "{rules}");
        let rules = write_rules(Nat::Prefix, &[Family::Ipv6], "st1");
        assert!(
            rules.contains("table ip6") && rules.contains("snat ip6 prefix to 2001:2:0:101::/64"),
            "{rules}"
        );
        assert_eq!(
            write_rules(Nat::Masquerade, Family::ALL, "lo").lines().count(),
            6,
            "three for each family"
        );
    }
}
