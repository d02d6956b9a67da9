//! Rules of the calling thread's network namespace that choose a routing table.

use crate::kernel::netlink::with_netlink;
use crate::{Attempt, Fault};
use rtnetlink::packet_route::rule::RuleAction;
use stacklab_model::Family;

/// The packets that a rule is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Selector<'a> {
    /// Those with this mark.
    Mark(u32),
    /// Those of sockets that are bound to this interface.
    Interface(&'a str),
}

/// Looks up routes of these packets in this table first.
pub(crate) fn add_rule(family: Family, selector: Selector<'_>, table: u32) -> Result<(), Fault> {
    let what = format!("add a rule that chooses the {family} table {table} (CONFIG_IP_MULTIPLE_TABLES)");
    with_netlink(async |netlink| {
        let rule = netlink.rule().add().table_id(table).action(RuleAction::ToTable).priority(table);
        let rule = match selector {
            Selector::Mark(mark) => rule.fw_mark(mark),
            Selector::Interface(interface) => rule.output_interface(interface),
        };
        let added = match family {
            Family::Ipv4 => rule.v4().execute().await,
            Family::Ipv6 => rule.v6().execute().await,
        };
        added.attempt(what)
    })
}
