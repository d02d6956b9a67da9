//! A firewall on a router, as rules of nftables that drop addresses which no packet of a study has. A last rule counts
//! what has been compared with all of them.

use crate::Fault;
use crate::kernel::memory::MemoryWatch;
use crate::mechanism::nat::{add_rules, name_family, read_counter};
use stacklab_model::{Family, RuleForm, Rules, Table};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The names of the table and of its counter.
const TABLE: &str = "stacklab_rules";
const COUNTER: &str = "passed";

pub(crate) fn build(rules: Rules, memory: &mut MemoryWatch) -> Result<(), Fault> {
    if rules.count == 0 {
        return Ok(());
    }
    memory.add_to_both(Table::Rules, rules.count, |family, numbers| {
        add_rules(&write_rules(rules, family, numbers))
    })
}

/// The number of forwarded packets of a family in this namespace that no rule dropped.
pub(crate) fn count_packets(family: Family) -> Result<u64, Fault> {
    Ok(read_counter(name_family(family), TABLE, COUNTER)?.packets)
}

/// The rules, or entries of their set or map, with these numbers: with the table before the first, and with the rule
/// that counts behind the last.
fn write_rules(rules: Rules, family: Family, numbers: Range<u32>) -> String {
    let kind = name_family(family);
    let is_last = numbers.end == rules.count;
    let mut lines = String::new();
    if numbers.start == 0 {
        lines += &write_table(rules.form, family);
    }
    match rules.form {
        RuleForm::List => {
            for number in numbers {
                let address = choose_address(family, number);
                // Writing to a text cannot fail.
                let _ = writeln!(lines, "add rule {kind} {TABLE} relay {kind} saddr {address} drop");
            }
        }
        RuleForm::Set => {
            let all = list_addresses(numbers, family, "");
            let _ = writeln!(lines, "add element {kind} {TABLE} dropped {{ {all} }}");
        }
        RuleForm::Map => {
            let all = list_addresses(numbers, family, " : drop");
            let _ = writeln!(lines, "add element {kind} {TABLE} verdicts {{ {all} }}");
        }
    }
    if is_last {
        let _ = writeln!(lines, "add rule {kind} {TABLE} relay counter name {COUNTER}");
    }
    lines
}

/// The table with its chain, and with the rule for a set or a map.
fn write_table(form: RuleForm, family: Family) -> String {
    let kind = name_family(family);
    let holds = match family {
        Family::Ipv4 => "ipv4_addr",
        Family::Ipv6 => "ipv6_addr",
    };
    let collection = match form {
        RuleForm::List => String::new(),
        RuleForm::Set => format!(
            "add set {kind} {TABLE} dropped {{ type {holds}; }}\n\
             add rule {kind} {TABLE} relay {kind} saddr @dropped drop\n"
        ),
        RuleForm::Map => format!(
            "add map {kind} {TABLE} verdicts {{ type {holds} : verdict; }}\n\
             add rule {kind} {TABLE} relay {kind} saddr vmap @verdicts\n"
        ),
    };
    format!(
        "add table {kind} {TABLE}\n\
         add counter {kind} {TABLE} {COUNTER}\n\
         add chain {kind} {TABLE} relay {{ type filter hook forward priority filter; }}\n{collection}"
    )
}

/// `10.0.0.0, 10.0.0.1`, each with what follows it.
fn list_addresses(numbers: Range<u32>, family: Family, then: &str) -> String {
    let mut all = Vec::new();
    for number in numbers {
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
        let lines = write_rules(Rules { count: 300, form: RuleForm::List }, Family::Ipv4, 0..300);
        let drops = lines.lines().filter(|line| line.ends_with(" drop")).count();
        assert_eq!(drops, 300, "{lines}");
        assert!(lines.contains("ip saddr 10.0.1.43 drop"), "the last address");
        assert!(lines.ends_with("relay counter name passed\n"), "{lines}");
    }

    #[test]
    fn a_set_has_one_rule_for_all() {
        let lines = write_rules(Rules { count: 3, form: RuleForm::Set }, Family::Ipv6, 0..3);
        assert!(lines.contains("{ fd00::, fd00::1, fd00::2 }"), "{lines}");
        assert_eq!(lines.lines().filter(|line| line.ends_with(" drop")).count(), 1, "{lines}");
    }

    #[test]
    fn a_map_has_one_rule_for_all() {
        let lines = write_rules(Rules { count: 2, form: RuleForm::Map }, Family::Ipv4, 0..2);
        assert!(lines.contains("{ 10.0.0.0 : drop, 10.0.0.1 : drop }"), "{lines}");
        assert_eq!(lines.lines().filter(|line| line.contains(" vmap @verdicts")).count(), 1, "{lines}");
    }

    #[test]
    fn parts_of_rules_are_the_same_as_all() {
        for form in [RuleForm::List, RuleForm::Set, RuleForm::Map] {
            let rules = Rules { count: 9, form };
            let first = write_rules(rules, Family::Ipv4, 0..3);
            let rest = write_rules(rules, Family::Ipv4, 3..9);
            assert!(first.starts_with("add table ") && !rest.contains("add table "), "{first}{rest}");
            assert!(!first.contains(" counter name ") && rest.ends_with(" counter name passed\n"), "{rest}");
            assert_eq!((first + &rest).matches("10.0.0.").count(), 9, "{form}");
        }
    }
}
