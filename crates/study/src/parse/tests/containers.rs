//! What a study may have beside the mechanisms that lead to a container, or from one.

use super::{errors, study, write_routed_study};

#[test]
fn a_container_is_a_namespace_that_is_sent_to() {
    for (more, error) in [
        ("direction = [\"reverse\"]", "`docker-proxy` is stateful: only the sender can open connections"),
        ("router_os = [\"linux-6.1\"]", "`docker-proxy` needs namespaces"),
        (
            "[probe.connect]\nmetrics = [\"connect_time\"]",
            "a connection through `docker-proxy` is open before the container has it",
        ),
        ("generator = [\"iperf3\"]", "`docker-proxy` carries the traffic of stacklab alone"),
        ("dscp = [46]", "behind `docker-proxy` there are no packets of the sender"),
        ("congestion_control = [\"bbr\"]", "behind `docker-proxy` there are no packets of the sender"),
        ("flows = [4, 9]", "`docker-proxy` publishes 8 ports, and 9 flows need one each"),
    ] {
        let text = write_routed_study(&format!("mechanism = [\"docker-proxy\", \"pasta\"]\n{more}"));
        let found = errors(&text).to_string();
        assert!(found.contains(error), "{more}: {found}");
    }
}

#[test]
fn each_flow_to_a_program_has_a_port() {
    for (mechanism, flows) in [("pasta", 8), ("docker-proxy", 8), ("dnat", 9), ("slirp4netns", 9)] {
        let text = write_routed_study(&format!("mechanism = [\"{mechanism}\"]\nflows = [{flows}]"));
        assert_eq!(study(&text).rows().len(), 1, "{mechanism}");
    }
}

#[test]
fn a_container_that_sends_has_no_forwarding_router() {
    for (more, error) in [
        ("direction = [\"reverse\"]", "`slirp4netns` is stateful: only the sender can open connections"),
        ("rules = [1000]", "with `slirp4netns` the sender's router forwards no packets"),
        ("routes = [1000]", "with `slirp4netns` the sender's router forwards no packets"),
        ("router_queue = [\"rps\"]", "with `slirp4netns` the sender's router forwards no packets"),
        ("generator = [\"iperf3\"]", "`slirp4netns` carries the traffic of stacklab alone"),
        ("mss = [1000]", "behind `slirp4netns` there are no packets of the sender"),
    ] {
        let text = write_routed_study(&format!("mechanism = [\"slirp4netns\"]\n{more}"));
        let found = errors(&text).to_string();
        assert!(found.contains(error), "{more}: {found}");
    }
    let large =
        write_routed_study("mechanism = [\"slirp4netns\"]").replace("size = [128]", "size = [128, 1453]");
    let found = errors(&large).to_string();
    assert!(
        found.contains("`slirp4netns` may crash at fragments, and this takes a packet of 1501 bytes"),
        "{found}"
    );
    let connect = "mechanism = [\"slirp4netns\"]\n[probe.connect]\nmetrics = [\"connect_time\"]";
    assert_eq!(study(&write_routed_study(connect)).rows().len(), 1);
}

#[test]
fn devices_of_programs_have_16_bit_lengths() {
    for mechanism in ["pasta", "slirp4netns", "docker-proxy", "dnat"] {
        let text = write_routed_study(&format!("mechanism = [\"{mechanism}\"]"));
        let text = text.replace("topology = \"routed\"", "topology = \"routed\"\nmtu = 65522");
        if mechanism.starts_with('d') {
            assert_eq!(study(&text).link_config.mtu, 65522);
            continue;
        }
        let found = errors(&text).to_string();
        assert!(found.contains(&format!("the device of `{mechanism}` has no MTU of 65522")), "{found}");
        assert_eq!(study(&text.replace("65522", "65521")).link_config.mtu, 65521);
    }
}

fn write_link_study(more: &str) -> String {
    write_routed_study(&format!("mechanism = [\"macvlan\"]\n{more}"))
}

#[test]
fn a_container_on_the_link_opens_connections_too() {
    for more in [
        "direction = [\"forward\", \"reverse\"]",
        "rules = [0, 1000]",
        "router_queue = [\"inline\", \"rps\"]",
    ] {
        assert!(!study(&write_link_study(more)).rows().is_empty(), "{more}");
    }
    for (more, error) in [
        ("router_os = [\"linux-6.1\"]", "`macvlan` needs namespaces"),
        ("clients = [2]", "`macvlan`"),
        ("[testbed.receiver_link]\nrate = \"1 Gbit/s\"", "its device is on the middle link"),
    ] {
        let found = errors(&write_link_study(more)).to_string();
        assert!(found.contains(error), "{more}: {found}");
    }
}
