//! A firewall on a router, as rules of nftables that drop addresses which no packet of a study has. A last rule counts
//! what has been compared with all of them.

use crate::Fault;
use crate::kernel::memory::MemoryWatch;
use crate::mechanism::nat::{add_rules, name_family, read_counter};
use stacklab_model::{Family, RuleForm, Rules, Table};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The names of the table and of its counter.
const TABLE: &str = "stacklab_rules";
const COUNTER: &str = "passed";

pub(crate) fn build(rules: Rules, memory: &mut MemoryWatch) -> Result<(), Fault> {
    if rules.count == 0 {
        return Ok(());
    }
    for family in Family::ALL {
        memory.add(Table::Rules, *family, rules.count, || add_rules(&write_rules(rules, *family)))?;
    }
    Ok(())
}

/// The number of forwarded packets of a family in this namespace that no rule dropped.
pub(crate) fn count_packets(family: Family) -> Result<u64, Fault> {
    read_counter(family, TABLE, COUNTER)
}

fn write_rules(rules: Rules, family: Family) -> String {
    let kind = name_family(family);
    let mut lines = format!(
        "add table {kind} {TABLE}\n\
         add counter {kind} {TABLE} {COUNTER}\n\
         add chain {kind} {TABLE} relay {{ type filter hook forward priority filter; }}\n"
    );
    let holds = match family {
        Family::Ipv4 => "ipv4_addr",
        Family::Ipv6 => "ipv6_addr",
    };
    match rules.form {
        RuleForm::List => {
            for number in 0..rules.count {
                let address = choose_address(family, number);
                // Writing to a text cannot fail.
                let _ = writeln!(lines, "add rule {kind} {TABLE} relay {kind} saddr {address} drop");
            }
        }
        RuleForm::Set => {
            let all = list_addresses(rules, family, "");
            let _ = write!(
                lines,
                "add set {kind} {TABLE} dropped {{ type {holds}; }}\n\
                 add element {kind} {TABLE} dropped {{ {all} }}\n\
                 add rule {kind} {TABLE} relay {kind} saddr @dropped drop\n"
            );
        }
        RuleForm::Map => {
            let all = list_addresses(rules, family, " : drop");
            let _ = write!(
                lines,
                "add map {kind} {TABLE} verdicts {{ type {holds} : verdict; }}\n\
                 add element {kind} {TABLE} verdicts {{ {all} }}\n\
                 add rule {kind} {TABLE} relay {kind} saddr vmap @verdicts\n"
            );
        }
    }
    lines + &format!("add rule {kind} {TABLE} relay counter name {COUNTER}\n")
}

/// `10.0.0.0, 10.0.0.1`, each with what follows it.
fn list_addresses(rules: Rules, family: Family, then: &str) -> String {
    let mut all = Vec::new();
    for number in 0..rules.count {
        all.push(format!("{}{then}", choose_address(family, number)));
    }
    all.join(", ")
}

/// An address by its number, of a private network that no testbed has.
pub(super) fn choose_address(family: Family, number: u32) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) | number).into(),
        Family::Ipv6 => {
            let network = u128::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0));
            Ipv6Addr::from(network | u128::from(number)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_rule_for_each_address() {
        let lines = write_rules(Rules { count: 300, form: RuleForm::List }, Family::Ipv4);
        let drops = lines.lines().filter(|line| line.ends_with(" drop")).count();
        assert_eq!(drops, 300, "{lines}");
        assert!(lines.contains("ip saddr 10.0.1.43 drop"), "the last address");
        assert!(lines.ends_with("relay counter name passed\n"), "{lines}");
    }

    #[test]
    fn a_set_has_one_rule_for_all() {
        let lines = write_rules(Rules { count: 3, form: RuleForm::Set }, Family::Ipv6);
        assert!(lines.contains("{ fd00::, fd00::1, fd00::2 }"), "{lines}");
        assert_eq!(lines.lines().filter(|line| line.ends_with(" drop")).count(), 1, "{lines}");
    }

    #[test]
    fn a_map_has_one_rule_for_all() {
        let lines = write_rules(Rules { count: 2, form: RuleForm::Map }, Family::Ipv4);
        assert!(lines.contains("{ 10.0.0.0 : drop, 10.0.0.1 : drop }"), "{lines}");
        assert_eq!(lines.lines().filter(|line| line.contains(" vmap @verdicts")).count(), 1, "{lines}");
    }
}
