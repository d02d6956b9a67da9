//! Files as people keep them: with a byte order mark, in UTF-16, with other lines beside the JSON.

use super::{V4, V6, explain_refusal, file, is_missing, is_near, list_facts, one, read, tests};
use serde_json::{Value as Json, json};
use stacklab_model::{Direction, Metric, Transport};

/// A client's TCP test of 10 s over IPv6, of which so many bytes arrived.
fn tcp(received: u64, bytes: u64, seconds: f64) -> Json {
    let side =
        |bytes: u64| json!({"start": 0, "end": seconds, "bytes": bytes, "retransmits": 7, "sender": true});
    json!({
        "start": {
            "connected": [{"local_host": "2001:db8::1", "remote_host": "2001:db8::2"}],
            "version": "iperf 3.20",
            "test_start": {
                "protocol": "TCP", "blksize": 131_072, "reverse": 0, "bytes": bytes,
                "duration": if bytes > 0 { 0 } else { 10 },
            },
        },
        "intervals": [],
        "end": {"streams": [{"sender": side(1_250_000_000), "receiver": side(received)}]},
    })
}

/// A UDP test of 10 s over IPv4.
fn udp(server: bool, reverse: u8) -> Json {
    let mut document = json!({
        "start": {
            "connected": [{"local_host": "192.0.2.1", "remote_host": "192.0.2.2"}],
            "test_start": {"protocol": "UDP", "blksize": 1200, "duration": 10, "reverse": reverse},
        },
        "intervals": [],
        "end": {
            "streams": [{"udp": {
                "end": 10, "jitter_ms": 0.1, "lost_packets": 400, "packets": 10_000, "sender": true
            }}],
            "sum_sent": {"start": 0, "end": 10, "packets": 10_000, "bytes": 12_000_000},
            "sum_received": {"start": 0, "end": 10, "packets": 500, "bytes": 120_000},
        },
    });
    if server {
        document["start"]["accepted_connection"] = json!({"host": "192.0.2.2"});
    }
    document
}

#[test]
fn text_with_a_byte_order_mark_and_in_utf_16_is_read() {
    let text = format!("{:#}\r\n", tcp(1_250_000_000, 0, 10.0));
    let utf16 = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let [little, big] = [utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)];
    for bytes in [
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        [b"\xff\xfe", &little[..]].concat(),
        [b"\xfe\xff", &big[..]].concat(),
    ] {
        is_near(&one(&bytes), Metric::Throughput, 1000.0);
    }
    let cut = [b"\xff\xfe", &little[..little.len() / 4 * 2]].concat();
    assert!(
        read(&cut, Some(super::Format::Iperf3))
            .unwrap_err()
            .to_string()
            .contains("the JSON is cut short here")
    );
}

#[test]
fn lines_beside_the_json_and_errors_are_told() {
    let json = format!("{:#}", tcp(1_250_000_000, 0, 10.0));
    let warned = format!("warning: Ignoring nonsense TCP MSS 0\n{json}\n");
    let found = file(warned.as_bytes());
    assert_eq!(found.left_out, ["a line outside the JSON: warning: Ignoring nonsense TCP MSS 0"]);
    is_near(&one(warned.as_bytes()), Metric::Throughput, 1000.0);
    let failed = format!("{json}\niperf3: error - unable to send control message: Broken pipe\n{json}\n");
    let found = tests(failed.as_bytes());
    assert_eq!(found.len(), 2);
    assert!(found[0].invalid[0].contains("unable to send"), "{:?}", found[0].invalid);
    assert!(found[1].invalid.is_empty());
    // The place of an error is that in the file.
    let broken = format!("{json}\n{{\n\"start\": nonsense\n}}\n");
    let line = json.lines().count() + 2;
    assert!(read(broken.as_bytes(), None).unwrap_err().to_string().starts_with(&format!("line {line}, ")));
}

#[test]
fn numbers_that_are_none_are_null() {
    let text = udp(false, 0)
        .to_string()
        .replace("\"intervals\":[]", "\"intervals\":[{\"sum\":{\"lost_percent\":-nan}}]");
    is_near(&one(text.as_bytes()), Metric::Loss, 0.04);
}

#[test]
fn a_day_of_streamed_intervals_is_read_in_linear_time() {
    let document = tcp(1_250_000_000, 0, 10.0);
    let event = |name: &str| json!({"event": name, "data": document[name]}).to_string() + "\n";
    let interval = "{\"event\":\"interval\",\"data\":{\"streams\":[{\"bytes\":1,\"seconds\":1,\"omitted\":false}],\"sum\":{\"bytes\":1}}}\n";
    let text = event("start") + &interval.repeat(200_000) + &event("end");
    is_near(&one(text.as_bytes()), Metric::Throughput, 1000.0);
}

#[test]
fn receiver_that_says_nothing_arrived_gives_zero() {
    let test = one(tcp(0, 0, 10.0).to_string().as_bytes());
    assert_eq!((test.family, test.transport), (V6, Some(Transport::Tcp)));
    is_near(&test, Metric::Throughput, 0.0);
    // -n: the end has the seconds, and 0 does not say that nothing arrived.
    let counted = one(tcp(0, 125_000_000, 1.0).to_string().as_bytes());
    is_missing(&counted, Metric::Throughput, "-n and -k");
    assert_eq!(counted.duration_ns, 1_000_000_000);
}

#[test]
fn unknown_datagram_figures_are_missing_or_warned_of() {
    // A server that sends.
    let server = one(udp(true, 1).to_string().as_bytes());
    assert_eq!(server.direction, Direction::Reverse);
    is_missing(&server, Metric::Loss, "does not know the received bytes");
    is_missing(&server, Metric::JitterRfc3550, "does not know the received bytes");
    // All after the 500th was lost, and is not counted.
    let client = one(udp(false, 0).to_string().as_bytes());
    is_near(&client, Metric::Loss, 0.04);
    let warning = &client.warnings[0];
    assert!(warning.text.contains("10000 were sent, and it counted 500"), "{warning:?}");
    assert!(warning.advice.contains("99.000 %"), "{warning:?}");
}

/// A file of flent with these series, and what it says of one.
fn flent(results: Json, meta: Json) -> Vec<u8> {
    json!({
        "version": 4,
        "metadata": {"HOST": "192.0.2.1", "IP_VERSION": 4, "LENGTH": 4, "SERIES_META": {"TCP upload": meta}},
        "x_values": [], "raw_values": {}, "results": results,
    })
    .to_string()
    .into_bytes()
}

#[test]
fn series_of_flent_that_are_no_streams_are_none() {
    let meta = json!({"MEAN_VALUE": 10.0, "UNITS": "Mbits/s", "SEND_SIZE": 16_384, "TCP_RETRANSMIT": 3,
        "BYTES_RECVD": 2_500_000});
    let results =
        json!({"TCP upload": [10, 10], "TCP upload::tcp_cwnd": [40, 40], "TCP upload::tcp_rtt": [25, 25]});
    let test = one(&flent(results, meta));
    assert_eq!(list_facts(&test), (V4, Some(Transport::Tcp), Some(16_384), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 10.0);
    is_near(&test, Metric::Retransmits, 3.0 * 16_384.0 / 2_500_000.0);
    let fair = json!({"TCP upload BE1": [10, 10], "TCP upload BE2": [10, 10], "TCP upload fairness": [1, 1]});
    let test = one(&flent(fair, json!({})));
    assert_eq!(test.flows, 2);
    is_near(&test, Metric::Throughput, 20.0);
}

#[test]
fn time_in_which_nothing_arrived_counts() {
    let results = json!({"TCP upload": [10, 10, null, null]});
    is_near(
        &one(&flent(results.clone(), json!({"MEAN_VALUE": 5.0, "UNITS": "Mbits/s"}))),
        Metric::Throughput,
        5.0,
    );
    let sums = json!({"BYTES_RECVD": 2_500_000, "ELAPSED_TIME": 4.0});
    is_near(&one(&flent(results, sums)), Metric::Throughput, 5.0);
}

#[test]
fn formats_that_are_not_read_are_named() {
    assert!(explain_refusal("sockperf: == version #3.7 ==\n").contains("text of sockperf"));
    assert!(explain_refusal("<ntttcps computername=\"a\">").contains("XML of ntttcp"));
    assert!(explain_refusal("[{\"prb_id\": 1, \"msm_id\": 2}]").contains("RIPE Atlas"));
}

#[test]
fn rows_outside_the_study_are_not_compared() {
    let head = "block,position,started_unix_ns,wall_ns,status,reasons,probe,transport,size_of,family,size,replica,metric,unit,number,in_study,missing\n";
    let run = "0,0,5,60,valid,,stream,udp,payload,ipv4,64,,";
    let text = format!("{head}{run}throughput,Mbit/s,57.3,yes,\n{run}jitter,ms,1,no,\n");
    let one = &super::runs(&[file(text.as_bytes())]).unwrap()[0].1;
    assert_eq!((one.spec.probe.metrics.as_slice(), one.values.len()), (&[Metric::Throughput][..], 2));
}
