//! `[testbed]`: topology, routers and their links.

use crate::parse::tests::{
    STUDY, assert_mistakes, errors, parse_with_settings, study, with, write_routed_study,
};
use insta::assert_snapshot;
use stacklab_model::{Family, RoutedKind, Topology, Translator};

#[test]
fn system_pairs_have_every_mechanism_and_all_routers() {
    assert_eq!(
        list_rows("mechanism = [\"native\", \"nat64\"]\nos = [\"namespace\", \"namespace -> uml\"]"),
        [
            "nat64 namespace -> uml namespace",
            "nat64 namespace namespace",
            "native namespace -> uml namespace",
            "native namespace namespace",
        ]
    );
    assert_eq!(
        list_rows("router_os = [\"namespace\", \"uml -> linux-6.1\"]"),
        ["native namespace namespace", "native namespace uml -> linux-6.1"]
    );
    assert_eq!(study(STUDY).rows(), []);
}

fn list_rows(factors: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for RoutedKind { mechanism, clients, routers, .. } in study(&write_routed_study(factors)).rows() {
        rows.push(format!("{mechanism} {clients} {routers}"));
    }
    rows.sort();
    rows
}

#[test]
fn a_translator_that_is_asked_for_is_a_rows_own() {
    assert_eq!(list_translators("mechanism = [\"nat64\", \"464xlat\"]"), [None, None]);
    let both = list_translators("mechanism = [\"nat64\", \"464xlat\"]\ntranslator = [\"tayga\", \"jool\"]");
    assert_eq!(both.len(), 4);
    assert!([Translator::Tayga, Translator::Jool].iter().all(|one| both.contains(&Some(*one))));
    for (factors, forward_only) in
        [("direction = [\"forward\"]", true), ("", true), ("direction = [\"forward\", \"both\"]", false)]
    {
        assert_eq!(study(&write_routed_study(factors)).flows_forward_only(), forward_only, "{factors}");
    }
}

fn write_clients(factors: &str) -> String {
    write_routed_study(&format!("clients = [1, 4]\n{factors}"))
}

#[test]
fn refuses_what_several_clients_cannot_have() {
    assert_mistakes(&[
        (
            write_clients("mechanism = [\"native\", \"vxlan4\"]"),
            &["`vxlan4` has one customer, and `clients` has 4"],
        ),
        (
            write_clients("mechanism = [\"native\", \"map-t\"]"),
            &["`map-t` has one customer, and `clients` has 4"],
        ),
        (write_clients("router_os = [\"uml\"]"), &["`clients` needs namespaces"]),
        (write_clients("direction = [\"reverse\"]"), &["`clients` send, and the receiver does not"]),
        (write_clients("flows = [8, 2]"), &["of 4 `clients` only 2 would have a flow"]),
        (
            write_clients("").replace("topology = \"routed\"", "mtu = 1500"),
            &["`factors.clients` needs two routers"],
        ),
        (write_routed_study("clients = [17]"), &["17"]),
    ]);
    let mut counts: Vec<u32> = Vec::new();
    for row in study(&write_clients("mechanism = [\"native\", \"ds-lite\"]")).rows() {
        counts.push(row.customers);
    }
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 4, 4]);
}

fn write_destinations(factors: &str) -> String {
    write_routed_study(&format!("destinations = [1, 1000]\n{factors}"))
        .replace("transport = [\"tcp\", \"udp\"]", "transport = [\"udp\"]")
}

#[test]
fn refuses_what_several_destinations_cannot_have() {
    let echo = "[probe.echo]\nmetrics = [\"rtt\"]\nlength = { time = \"200ms\" }\n[blocks]";
    assert_mistakes(&[
        (
            write_destinations("").replace("[1, 1000]", "[1000]").replace("[blocks]", echo),
            &["probe `echo` has one destination"],
        ),
        (
            write_destinations("").replace("[\"udp\"]", "[\"tcp\"]"),
            &["`destinations` are those of datagrams"],
        ),
        (
            write_destinations("mechanism = [\"native\", \"6in4\"]"),
            &["`destinations` are reached by routes alone"],
        ),
        (write_destinations("clients = [2]"), &["`destinations` are behind one router"]),
        (write_destinations("neighbours = [0, 999]"), &["`destinations` are each a neighbour", "fewer than"]),
        (write_destinations("router_os = [\"uml\"]"), &["`destinations` need namespaces"]),
        (write_destinations("direction = [\"both\"]"), &["`destinations` are behind the receiver"]),
        (write_destinations("flows = [4]"), &["`destinations` are those of one flow"]),
        (write_destinations("io = [\"gso\"]"), &["`destinations` are one for each datagram"]),
        (write_destinations("flow_label = [7]"), &["`destinations` have no flow label"]),
        (
            write_destinations("").replace("topology = \"routed\"", "mtu = 1500"),
            &["`factors.destinations` needs two routers"],
        ),
        (write_routed_study("destinations = [0]"), &["0"]),
    ]);
    study(&write_destinations("").replace("[blocks]", echo));
}

fn list_translators(factors: &str) -> Vec<Option<Translator>> {
    study(&write_routed_study(factors)).rows().iter().map(|row| row.translator).collect()
}

#[test]
fn translator_that_translates_nothing_is_refused() {
    assert_snapshot!(errors(&write_routed_study("mechanism = [\"native\"]\ntranslator = [\"jool\"]")), @r#"
    error: no mechanism of this study translates
      --> study.toml:10:15
       |
    10 | translator = ["jool"]
       |               ^^^^^^ translates nothing
       |
       = help: leave the factor out, or add nat64, siit or 464xlat to factors.mechanism
    "#);
    let all = "[\"siit\", \"464xlat\", \"nat64\"]";
    assert_snapshot!(errors(&translate_back(all, "\"jool\"")), @r#"
    error: `464xlat` by jool is stateful: only the sender can open connections
      --> study.toml:10:14
       |
    10 | direction = ["reverse"]
       |              ^^^^^^^^^ begins at the receiver
    11 | translator = ["jool"]
       |               ------ together with this
       |
       = help: leave this direction out, or use "tayga" in factors.translator
    "#);
    assert_snapshot!(errors(&write_routed_study("mechanism = [\"native\", \"map-t\"]\ntranslator = [\"tayga\", \"jool\"]")), @r#"
    error: `map-t` is translated by tayga alone, behind its NAT
      --> study.toml:10:24
       |
     9 | mechanism = ["native", "map-t"]
       |                        ------- together with this
    10 | translator = ["tayga", "jool"]
       |                        ^^^^^^ another translator
       |
       = help: leave the translator out, or the mechanism
    "#);
    // One address to one, and what keeps no state, let everything through.
    assert_eq!(study(&translate_back(all, "\"tayga\"")).rows().len(), 3);
    assert_eq!(study(&translate_back("[\"siit\", \"native\"]", "\"jool\"")).rows().len(), 2);
}

#[test]
fn flow_offload_is_of_two_links() {
    let both = "flow_offload = [\"off\", \"on\"]";
    let tunnel = format!("mechanism = [\"nat44\", \"6in4\"]\n{both}");
    assert_snapshot!(errors(&write_routed_study(&tunnel)), @r#"
    error: a flowtable forwards nothing with `6in4`
      --> study.toml:10:24
       |
     9 | mechanism = ["nat44", "6in4"]
       |                       ------ together with this
    10 | flow_offload = ["off", "on"]
       |                        ^^^^ packets change between two links
       |
       = help: it forwards with native, nat44, nat66 or nptv6: leave the other mechanisms out, or flow_offload
    "#);
    let rows = study(&write_routed_study(both)).rows();
    assert_eq!(rows.iter().filter(|row| row.filters()).count(), 1, "one of two has a flowtable");
    let off = tunnel.replace(", \"on\"", "");
    assert_eq!(study(&write_routed_study(&off)).rows().len(), 2, "off forbids nothing");
}

fn translate_back(mechanisms: &str, translator: &str) -> String {
    write_routed_study(&format!(
        "mechanism = {mechanisms}\ndirection = [\"reverse\"]\ntranslator = [{translator}]"
    ))
}

#[test]
fn link_local_address_has_its_machines_interface() {
    let hosts = study(&set_address("fe80::7%ens3")).hosts;
    assert_eq!(hosts[1].system.to_string(), "ssh:user@fe80::7%eth0");
    assert_eq!(hosts[1].addresses[&Family::Ipv6].zone(), Some("ens3"));
    assert_mistakes(&[
        (set_address("fe80::7"), &["fe80::7 is link-local", "^^^", "as in \"fe80::7%eth0\""]),
        (set_address("2001:db8::7%ens3"), &["only link-local addresses", "leave out `%ens3`"]),
        (set_address("192.0.2.7%ens3"), &["only link-local addresses"]),
        (set_address("192.0.2.7"), &["expected an ipv6 address"]),
    ]);
}

/// A study between two real machines, of which the second has this address.
fn set_address(address: &str) -> String {
    let os = "ssh:user@fe80::7%eth0";
    let text = with("size = [128, 1408]", &format!("size = [128]\nos = [\"{os}\"]"));
    let first = "[[host]]\nos = \"localhost\"\ninterface = \"ens3\"\n";
    let second = format!("[[host]]\nos = \"{os}\"\ninterface = \"ens3\"\nipv6 = \"{address}\"\n");
    format!("{text}\n{first}{second}")
}

#[test]
fn names_systems_that_routers_exclude() {
    assert_mistakes(&[
        (
            with("mtu = 1500", "topology = \"routed\"").replace(
                "size = [128, 1408]",
                "size = [128]\nos = [\"namespace\", \"localhost -> ssh:lab\"]",
            ),
            &[
                "`localhost` cannot be a client behind routers",
                "is on another network",
                "clients are namespace, gvisor",
            ],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nos = [\"ssh:lab\"]"),
            &["`localhost` cannot be a client behind routers"],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nrouter_os = [\"gvisor\", \"uml\"]"),
            &["`gvisor` cannot be a router", "no tunnels", "routers are namespace, uml"],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nrouter_os = [\"uml -> ssh:lab\"]"),
            &["`ssh:lab` cannot be a router", "is on another network"],
        ),
        (
            with("size = [128, 1408]", "size = [128]\nrouter_os = [\"uml\"]"),
            &["`factors.router_os` needs two routers", "topology = \"routed\""],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nservices = [\"none\", \"dns\"]"),
            &["`services` cannot be set behind routers"],
        ),
    ]);
}

#[test]
fn names_link_settings_that_need_routers() {
    assert_mistakes(&[
        (
            with("mtu = 1500", "sender_link = { delay = \"1ms\" }"),
            &["`testbed.sender_link` needs two routers", "the link between the sender and its router"],
        ),
        (
            with("mtu = 1500", "delay = \"1ms\""),
            &["`testbed.delay` needs two routers", "write topology = \"routed\"", "packets are then delayed"],
        ),
        (
            with("mtu = 1500", "loss = \"1 %\""),
            &["`testbed.loss` needs two routers", "write topology = \"routed\"", "packets are then lost"],
        ),
    ]);
}

#[test]
fn names_links_narrower_than_the_middle_one() {
    assert_mistakes(&[
        (
            with("mtu = 1500", "topology = \"routed\"\nmtu = 1500\nreceiver_link = { mtu = 1400 }"),
            &[
                "`testbed.receiver_link.mtu` makes this link narrower",
                "the middle link's",
                "(testbed.mtu) must have the smallest",
            ],
        ),
        (
            with(
                "mtu = 1500",
                "topology = \"routed\"\nrate = \"1 Gbit/s\"\nsender_link = { rate = \"100 Mbit/s\" }",
            ),
            &["`testbed.sender_link.rate` makes this link narrower"],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"\nsender_link = { rate = \"1 Gbit/s\" }"),
            &["`testbed.sender_link.rate` makes this link narrower"],
        ),
    ]);
}

#[test]
fn option_named_for_a_delayed_link_works() {
    let delayed = with("mtu = 1500", "delay = \"10ms\"");
    let said = errors(&delayed).to_string();
    let (_, option) = said.split_once("(--set ").unwrap_or_else(|| panic!("{said}"));
    let (option, _) = option.split_once(')').unwrap_or_else(|| panic!("{said}"));
    let Topology::Routed(links) = parse_with_settings(&delayed, None, &[option]).unwrap().topology else {
        panic!("{option}")
    };
    assert_eq!(links.middle.delay_ns, 10_000_000);
}

#[test]
fn what_smoltcp_lacks_is_refused() {
    let text = parse_with_settings(
        STUDY,
        None,
        &[
            "factors.os=['smoltcp']",
            "factors.dscp=[46]",
            "factors.size=[128, 1473]",
            "factors.size_of=['write']",
        ],
    );
    assert_snapshot!(text.unwrap_err().to_string(), @r"
    error: smoltcp has no `dscp`
     --> --set:1:15
      |
    1 | factors.dscp=[46]
      |               ^^ not possible here
      |
     ::: --set:1:13
      |
    1 | factors.os=['smoltcp']
      |             --------- together with this system
      |
      = help: leave the factor out, or the system

    error: smoltcp does not fragment, and this takes a packet of 1521 bytes
     --> --set:1:20
      |
    1 | factors.size=[128, 1473]
      |                    ^^^^ more than the link's MTU of 1500
      |
     ::: --set:1:13
      |
    1 | factors.os=['smoltcp']
      |             --------- together with this system
      |
      = help: use smaller datagrams, or TCP alone
    ");
}

#[test]
fn smoltcp_takes_levels_that_ask_for_nothing() {
    let pair = "factors.os=['namespace -> smoltcp']";
    for (settings, expected) in [
        (["factors.flows=[257]", "factors.dscp=[0]"], "smoltcp has at most 256 flows"),
        (["factors.congestion_control=['none']", "factors.io=['send']"], "has no congestion control `none`"),
        (["testbed.offloads=true", "factors.io=['auto']"], "not with offloads"),
    ] {
        let errors =
            parse_with_settings(STUDY, None, &[pair, settings[0], settings[1]]).unwrap_err().to_string();
        assert!(errors.contains(expected) && errors.matches("error: ").count() == 1, "{errors}");
    }
    let settings = [pair, "factors.flows=[4]", "factors.io=['sendmmsg']", "factors.busy_poll=[0]"];
    assert!(parse_with_settings(STUDY, None, &settings).is_ok());
    assert_snapshot!(errors(&write_routed_study("os = [\"smoltcp\"]")), @r#"
    error: `smoltcp` cannot be a client behind routers
     --> study.toml:9:7
      |
    3 | topology = "routed"
      |            -------- together with this
    ...
    9 | os = ["smoltcp"]
      |       ^^^^^^^^^ its stack discovers no path MTU
      |
      = help: leave it out; clients are namespace, gvisor, uml, uml-NAME, linux-SERIES or disk:PATH, or a pair
    "#);
}
