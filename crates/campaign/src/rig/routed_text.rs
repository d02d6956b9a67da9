//! A routed testbed in words: its hosts, links and routers, and what was seen on the middle link.

use crate::rig::routed_source::RoutedSource;
use stacklab_model::{
    FlowOffload, LinkConfig, OwnLink, Publisher, RouterQueue, RuleForm, Rules, Tables, Topology, Tracking,
    once_each,
};
use stacklab_testbed::{CustomerId, RoutedSpec};

/// Describes a routed testbed in a line for what it has in common with others, and one for its mechanism.
pub(super) fn describe(source: &RoutedSource, link_config: &LinkConfig) -> String {
    let RoutedSource { plan, carried, guest, .. } = source;
    let mechanism = plan.kind.mechanism;
    let links = &plan.links;
    let place = guest.as_ref().map_or_else(String::new, |guest| format!(" inside {guest}"));
    let (hosts, seen_by) = hosts(&place, 3 + plan.kind.customers, &source.guests());
    let rate = link_config.rate.map_or("no rate limit".to_owned(), |rate| rate.to_string());
    let by = translators(plan) + &describe_rules(plan.kind.rules) + &describe_tables(plan.kind.tables);
    let own = links
        .all()
        .into_iter()
        .filter(|(_, link)| *link != OwnLink::default())
        .map(|(name, link)| format!("; {name} link: {}", link.describe().join(", ")));
    let queue = match plan.kind.queue {
        RouterQueue::Inline => "",
        RouterQueue::Thread => ", a kernel thread at each ingress of the routers",
        RouterQueue::Rps => {
            ", packets steered to the receiver's processors at each ingress of the routers (RPS)"
        }
    };
    let seen = carried.iter().map(|carried| {
        let whose = match carried.customer {
            CustomerId::FIRST => String::new(),
            customer => format!("customer {}'s ", customer.number()),
        };
        let headers = carried.headers.join(" / ");
        format!("{whose}{} as {headers}, path MTU {}", carried.family, carried.path_mtus[0])
    });
    let black_hole = match carried.iter().any(|carried| carried.black_hole) {
        true => "; a larger packet vanishes without an answer, so the testbed sets the path MTU",
        false => "",
    };
    let bottleneck = Topology::Routed(*links).bottleneck(link_config, plan.kind.customers);
    let bottleneck = bottleneck.map_or_else(String::new, |link| format!("; bottleneck: {link}"));
    let offloads = if link_config.offloads { "on" } else { "off" };
    let customers = match plan.kind.customers {
        1 => String::new(),
        count => format!(
            "{count} customers of one sender, each with the first router and the first two links of: "
        ),
    };
    format!(
        "{customers}client - router - router - client{hosts}, MTU {}, {rate}, offloads {offloads}{}{bottleneck}\n\
         {mechanism}{by}{queue}, seen on the middle link{seen_by}: {}{black_hole}",
        link_config.mtu,
        own.collect::<String>(),
        seen.collect::<Vec<_>>().join("; ")
    )
}

/// What changes addresses at the routers, for a sentence; empty where nothing does.
pub(crate) fn translators(plan: &RoutedSpec) -> String {
    let mut names = once_each(plan.translators().into_iter().map(ToString::to_string));
    let how = if plan.keeps_state() { "stateful" } else { "stateless" };
    if plan.kind.mechanism.changes_source() || plan.kind.mechanism.publisher() == Some(Publisher::Dnat) {
        names.push("nftables".to_owned());
    }
    if names.is_empty() { String::new() } else { format!(" ({}, {how})", names.join(" and ")) }
}

/// The firewall on the near router, for a sentence; empty without one.
fn describe_rules(rules: Rules) -> String {
    match (rules.count, rules.form) {
        (0, _) => String::new(),
        (count, RuleForm::List) => format!(", {count} firewall rules on router1"),
        (count, RuleForm::Set) => format!(", a firewall rule with a set of {count} on router1"),
        (count, RuleForm::Map) => format!(", a firewall rule with a map of {count} on router1"),
    }
}

/// The routers' tables, for a sentence; empty without further entries and a flowtable.
fn describe_tables(tables: Tables) -> String {
    let routes = match tables.routes {
        0 => String::new(),
        routes => format!(", {routes} more routes of each family on router1"),
    };
    let destinations = match tables.destinations {
        1 => String::new(),
        several => format!(", packets to {several} destinations"),
    };
    let neighbours = match tables.neighbours {
        0 => String::new(),
        neighbours => format!(", {neighbours} more neighbours of each family of router2"),
    };
    let connections = match tables.tracking {
        Tracking::Off => String::new(),
        Tracking::On(0) => ", connections tracked on router1".to_owned(),
        Tracking::On(more) => format!(", connections tracked on router1 among {more} more of each family"),
    };
    let flowtable = match tables.offload {
        FlowOffload::Off => "",
        FlowOffload::On => ", known connections by a flowtable on router1",
    };
    routes + &destinations + &neighbours + &connections + flowtable
}

/// Two parts of the sentence: the hosts, and whether packets were captured while the clients were namespaces.
fn hosts(place: &str, count: u32, [clients, routers]: &[[Option<String>; 2]; 2]) -> (String, &'static str) {
    if [clients, routers].iter().all(|guests| **guests == [None, None]) {
        let count = if count == 4 { "four".to_owned() } else { count.to_string() };
        return (format!(" in {count} namespaces{place}"), "");
    }
    let seen_by = if *clients == [None, None] { "" } else { " while the clients were namespaces" };
    let clients = describe_pair(clients, ["client", "sender", "receiver"]);
    let routers = describe_pair(routers, ["router", "near router", "far router"]);
    (format!(", {clients}, {routers}"), seen_by)
}

fn describe_pair(guests: &[Option<String>; 2], names: [&str; 3]) -> String {
    match guests {
        [None, None] => format!("the {}s namespaces", names[0]),
        [Some(one), Some(other)] if one == other => format!("both {}s {one}", names[0]),
        ends => {
            let [near, far] = ends.each_ref().map(|end| end.as_deref().unwrap_or("a namespace"));
            format!("the {} {near}, the {} {far}", names[1], names[2])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_hosts(guests: [[Option<&str>; 2]; 2]) -> (String, &'static str) {
        hosts("", 4, &guests.map(|pair| pair.map(|guest| guest.map(str::to_owned))))
    }

    #[test]
    fn the_sentence_says_what_the_hosts_are() {
        let none = [None, None];
        assert_eq!(hosts(" inside a guest", 4, &Default::default()).0, " in four namespaces inside a guest");
        assert_eq!(hosts("", 5, &Default::default()).0, " in 5 namespaces");
        let (both, seen_by) = describe_hosts([[Some("UML 7"), Some("UML 7")], none]);
        assert_eq!(both, ", both clients UML 7, the routers namespaces");
        assert_eq!(seen_by, " while the clients were namespaces");
        let (mixed, _) = describe_hosts([[None, Some("UML 7")], [Some("UML 6"), None]]);
        let expected =
            ", the sender a namespace, the receiver UML 7, the near router UML 6, the far router a namespace";
        assert_eq!(mixed, expected);
        let (routers, seen_by) = describe_hosts([none, [Some("UML 7"), Some("UML 7")]]);
        assert_eq!(routers, ", the clients namespaces, both routers UML 7");
        assert_eq!(seen_by, "");
    }
}
