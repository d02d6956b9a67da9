//! Descriptions of a routed testbed.

use crate::rig::routed_source::RoutedSource;
use stacklab_model::{LinkConfig, OwnLink, RoutedKind, System, Topology, once_each};
use stacklab_testbed::RoutedSpec;

/// Describes a routed testbed in a line for what it has in common with others, and one for its mechanism.
pub(crate) fn describe(source: &RoutedSource, link_config: &LinkConfig) -> String {
    let RoutedSource { plan, carried, guest, .. } = source;
    let (mechanism, links) = (plan.kind.mechanism, &plan.links);
    let place = guest.as_ref().map_or_else(String::new, |guest| format!(" inside {guest}"));
    let (hosts, seen_by) = hosts(&place, &source.guests());
    let rate = link_config.rate.map_or("no rate limit".to_owned(), |rate| rate.to_string());
    let by = translators(plan);
    let own = links.all().into_iter().filter(|(_, link)| *link != OwnLink::default()).map(|(name, link)| {
        let rate = link.rate.map(|rate| rate.to_string());
        let mtu = link.mtu.map(|mtu| format!("MTU {mtu}"));
        let parts: Vec<String> = rate.into_iter().chain(mtu).chain(link.impairments()).collect();
        format!("; {name} link: {}", parts.join(", "))
    });
    let seen = carried.iter().map(|carried| {
        format!("{} as {}, path MTU {}", carried.family, carried.headers.join(" / "), carried.path_mtus[0])
    });
    let bottleneck = Topology::Routed(*links).bottleneck(link_config);
    let bottleneck = bottleneck.map_or_else(String::new, |link| format!("; bottleneck: {link}"));
    let offloads = if link_config.offloads { "on" } else { "off" };
    format!(
        "client - router - router - client{hosts}, MTU {}, {rate}, offloads {offloads}{}{bottleneck}\n\
         {mechanism}{by}, seen on the middle link{seen_by}: {}",
        link_config.mtu,
        own.collect::<String>(),
        seen.collect::<Vec<_>>().join("; ")
    )
}

/// The kind of each host, in their order on the path.
pub(crate) fn kinds(source: &RoutedSource) -> [String; 4] {
    let RoutedSource { plan, guest: inside, .. } = source;
    let RoutedKind { mechanism, clients, routers, .. } = &plan.kind;
    let inside = inside.as_ref().map_or_else(String::new, |guest| format!(" in {guest}"));
    let [[sender, receiver], [near, far]] = source.guests();
    let of = |system: &System, guest: Option<String>| match guest {
        Some(guest) => format!("{}: {guest}, {mechanism}", system.kind()),
        None => format!("namespace{inside}, {mechanism}"),
    };
    [of(&clients.0[0], sender), of(&routers.0[0], near), of(&routers.0[1], far), of(&clients.0[1], receiver)]
}

/// The translation between the routers, for a sentence; empty without translation.
pub fn translators(plan: &RoutedSpec) -> String {
    let names = once_each(plan.translators().into_iter().map(ToString::to_string));
    let how = if plan.keeps_state() { "stateful" } else { "stateless" };
    if names.is_empty() { String::new() } else { format!(" ({}, {how})", names.join(" and ")) }
}

/// Two parts of the sentence: the four hosts, and whether packets were captured while the clients were namespaces.
fn hosts(place: &str, [clients, routers]: &[[Option<String>; 2]; 2]) -> (String, &'static str) {
    let pair = |guests: &[Option<String>; 2], names: [&str; 3]| match guests {
        [None, None] => format!("the {}s namespaces", names[0]),
        [Some(one), Some(other)] if one == other => format!("both {}s {one}", names[0]),
        ends => {
            let [near, far] = ends.each_ref().map(|end| end.as_deref().unwrap_or("a namespace"));
            format!("the {} {near}, the {} {far}", names[1], names[2])
        }
    };
    if [clients, routers].iter().all(|guests| **guests == [None, None]) {
        return (format!(" in four namespaces{place}"), "");
    }
    let seen_by = if *clients == [None, None] { "" } else { " while the clients were namespaces" };
    let clients = pair(clients, ["client", "sender", "receiver"]);
    let routers = pair(routers, ["router", "near router", "far router"]);
    (format!(", {clients}, {routers}"), seen_by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_the_hosts_are() {
        let said = |guests: [[Option<&str>; 2]; 2]| {
            hosts("", &guests.map(|pair| pair.map(|guest| guest.map(str::to_owned))))
        };
        let none = [None, None];
        assert_eq!(hosts(" inside a guest", &Default::default()).0, " in four namespaces inside a guest");
        let (both, seen_by) = said([[Some("UML 7"), Some("UML 7")], none]);
        assert_eq!(both, ", both clients UML 7, the routers namespaces");
        assert_eq!(seen_by, " while the clients were namespaces");
        let (mixed, _) = said([[None, Some("UML 7")], [Some("UML 6"), None]]);
        let expected =
            ", the sender a namespace, the receiver UML 7, the near router UML 6, the far router a namespace";
        assert_eq!(mixed, expected);
        let (routers, seen_by) = said([none, [Some("UML 7"), Some("UML 7")]]);
        assert_eq!(routers, ", the clients namespaces, both routers UML 7");
        assert_eq!(seen_by, "");
    }
}
