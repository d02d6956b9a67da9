//! JSON of iperf3 that contradicts itself, and what its writer does not know.

use super::iperf3_text::count_without_repeats;
use super::{file, is_missing, is_near, one};
use serde_json::{Value as Json, json};
use stacklab_model::{Metric, Value};

/// A client's TCP test over IPv4.
fn sample() -> Json {
    serde_json::from_slice(sample!("iperf3-3.12-tcp4.json")).unwrap()
}

/// Why a test is invalid.
fn reasons(document: &Json) -> Vec<String> {
    one(document.to_string().as_bytes()).invalid
}

#[test]
fn results_that_contradict_themselves_are_invalid() {
    assert!(reasons(&sample()).is_empty());
    let mut fewer = sample();
    fewer["start"]["test_start"]["num_streams"] = 3.into();
    assert_eq!(reasons(&fewer), ["the file names 3 streams, and has results of 1"]);
    let stream = sample()["end"]["streams"][0].clone();
    for name in ["sender", "receiver"] {
        let mut half = sample();
        half["start"]["test_start"]["num_streams"] = 2.into();
        half["end"]["streams"] = json!([stream, stream]);
        half["end"]["streams"][1].as_object_mut().unwrap().remove(name);
        assert_eq!(reasons(&half)[0], format!("1 of 2 streams have counts of the {name}"));
        if name == "receiver" {
            is_missing(&one(half.to_string().as_bytes()), Metric::Throughput, "every stream");
        }
    }
}

#[test]
fn more_received_than_sent_is_invalid() {
    let mut more = sample();
    let sent = more["end"]["streams"][0]["sender"]["bytes"].as_u64().unwrap();
    more["end"]["streams"][0]["receiver"]["bytes"] = (2 * sent).into();
    let said = reasons(&more);
    assert_eq!(said, [format!("the file says that {} bytes arrived of {sent} that were sent", 2 * sent)]);
    // Each end leaves out the begin by its own clock.
    more["start"]["test_start"]["omit"] = 1.into();
    assert!(reasons(&more).is_empty());
    let mut datagrams: Json = serde_json::from_slice(sample!("iperf3-3.12-udp6.json")).unwrap();
    let sent = datagrams["end"]["sum_sent"]["bytes"].as_u64().unwrap();
    datagrams["end"]["sum_received"]["bytes"] = (2 * sent).into();
    assert_eq!(reasons(&datagrams).len(), 1);
}

#[test]
fn impossible_losses_are_missing() {
    for (lost, reason) in [(4200, "more was lost than was sent"), (-3, "more arrived than was sent")] {
        let mut datagrams: Json = serde_json::from_slice(sample!("iperf3-3.12-udp6.json")).unwrap();
        datagrams["end"]["streams"][0]["udp"]["lost_packets"] = lost.into();
        datagrams["end"]["sum_received"]["lost_packets"] = lost.into();
        is_missing(&one(datagrams.to_string().as_bytes()), Metric::Loss, reason);
    }
}

#[test]
fn server_does_not_know_its_clients_cpu_time() {
    let mut server = sample();
    let host = server["end"]["cpu_utilization_percent"]["host_user"].as_f64().unwrap();
    is_near(&one(server.to_string().as_bytes()), Metric::CpuGeneratorSender, host);
    server["start"]["accepted_connection"] = json!({"host": "127.0.0.1"});
    server["end"]["streams"][0]["sender"]["sender"] = false.into();
    let test = one(server.to_string().as_bytes());
    is_missing(&test, Metric::CpuGeneratorSender, "before it has the client's CPU time");
    is_near(&test, Metric::CpuGeneratorReceiver, host);
}

#[test]
fn file_transfer_with_zero_received_has_no_figure() {
    let mut sent = sample();
    sent["end"]["streams"][0]["receiver"]["bytes"] = 0.into();
    is_near(&one(sent.to_string().as_bytes()), Metric::Throughput, 0.0);
    sent["end"]["streams"][0]["diskfile"] = json!({"sent": 1270, "filename": "/etc/passwd"});
    is_missing(&one(sent.to_string().as_bytes()), Metric::Throughput, "-F");
    let values = one(sent.to_string().as_bytes()).values;
    assert!(matches!(values[&Metric::TcpSrtt], Value::Measured(_)));
}

#[test]
fn placeholder_cookies_identify_no_test() {
    let mut hidden = sample();
    hidden["start"]["cookie"] = "hidden".into();
    let mut other = hidden.clone();
    other["start"]["connected"][0]["local_port"] = 1.into();
    let both = format!("{hidden}\n{other}\n");
    assert_eq!(count_without_repeats(&[both.as_bytes()]), 2);
    let known = format!("{}\n{}\n", sample(), sample());
    assert_eq!(count_without_repeats(&[known.as_bytes()]), 1);
    assert!(file(known.as_bytes()).left_out.is_empty());
}
