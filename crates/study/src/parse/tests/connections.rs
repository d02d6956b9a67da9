//! Searches of connections in `[probe.search]`.

use crate::parse::tests::{assert_mistakes, study, write_routed_study};
use stacklab_model::{Pacing, Probe, SearchSpec};

const LOSS: &str = "loss = \"0.5 %\"";

fn write_study(factors: &str, metrics: &str, keys: &str) -> String {
    let stream = "[probe.stream]\nmetrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n";
    let search = format!("[probe.search]\nmetrics = [{metrics}]\n{keys}\n");
    let text = write_routed_study(factors).replace(stream, &search);
    text.replace("transport = [\"tcp\", \"udp\"]", "transport = [\"udp\"]")
}

fn write_rate(factors: &str) -> String {
    write_study(factors, "\"connection_rate\"", LOSS)
}

#[test]
fn connections_are_those_of_a_table() {
    for factors in [
        "conntrack = [0]",
        "conntrack = [0, 20_000]",
        "mechanism = [\"native\", \"nat44\", \"nat66\"]\nconntrack = [0]",
        "mechanism = [\"nat44\", \"nat66\"]",
    ] {
        let keys = format!("connections = 4096\n{LOSS}");
        let text = write_study(factors, "\"connection_rate\", \"teardown_rate\"", &keys);
        let Some(Pacing::Search(search)) = study(&text).probe(Probe::Search).map(|probe| probe.pacing) else {
            panic!("{factors}")
        };
        assert_eq!((search.connections(), SearchSpec::USUAL_CONNECTIONS), (4096, 16_384));
    }
}

#[test]
fn rates_of_connections_need_an_allowed_loss() {
    let tracked = "conntrack = [0]";
    assert_mistakes(&[
        (
            write_study(tracked, "\"teardown_rate\", \"established_rate\"", ""),
            &["established_rate needs an allowed loss", "add loss = \"0.5 %\""],
        ),
        (write_study(tracked, "\"connection_rate\"", ""), &["connection_rate needs an allowed loss"]),
    ]);
    study(&write_study(tracked, "\"teardown_rate\"", ""));
}

#[test]
fn refuses_routers_without_a_table() {
    assert_mistakes(&[
        (write_rate(""), &["connection_rate needs connections that are tracked", "add conntrack = [0]"]),
        (write_rate("conntrack = [\"off\", 0]"), &["needs connections that are tracked", "no table"]),
        (write_rate("mechanism = [\"native\", \"nat44\"]"), &["needs connections that are tracked"]),
        (
            write_rate("mechanism = [\"native\", \"nat64\"]\nconntrack = [0]"),
            &["`nat64` has no table of connections", "tayga translates each packet by itself"],
        ),
        (
            write_rate("mechanism = [\"native\", \"464xlat\"]\nconntrack = [0]"),
            &["`464xlat` has no table of connections", "use nat44, nat66, nptv6"],
        ),
        (
            write_rate("mechanism = [\"native\", \"6in4\"]\nconntrack = [0]"),
            &["`6in4` has no table", "of one router"],
        ),
        (
            write_rate("").replace("topology = \"routed\"", "rate = \"10 Mbit/s\""),
            &["connection_rate needs a router with a table", "add topology = \"routed\""],
        ),
    ]);
}

#[test]
fn refuses_what_connections_cannot_have() {
    for (factors, words) in [
        ("flows = [2]", "has a connection for each message"),
        ("direction = [\"reverse\"]", "is of connections that the sender makes"),
        ("clients = [2]", "one customer's router"),
        ("destinations = [10]", "many ports between two addresses"),
        ("io = [\"gso\"]", "sends one message in a call"),
        ("dscp = [46]", "without further options"),
        ("busy_poll = [50]", "without further options"),
        ("send_buffer = [65536]", "without further options"),
        ("receive_buffer = [65536, 1048576]", "without further options"),
        ("flow_offload = [\"on\"]", "which a flowtable refers to"),
    ] {
        let text = write_rate(&format!("conntrack = [0]\n{factors}"));
        assert_mistakes(&[(text, &[words, "leave this level out, or connection_rate"])]);
    }
    let without = write_study("", "\"load_at_loss\"", "connections = 4096");
    assert_mistakes(&[(without, &["no metric of this search makes connections"])]);
}
