//! The same text in other forms, and files that are refused with a reason that helps.

use super::{V4, file, is_near, one, read, tests};
use crate::{Content, Format, PlainText};
use stacklab_model::Metric;
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn refusal(bytes: &[u8], format: Option<Format>) -> String {
    read(bytes, format).expect_err("refused").to_string()
}

#[test]
fn text_is_the_same_in_every_form_of_a_file() {
    let text = std::str::from_utf8(sample!("iperf3-3.12-tcp4-P2.txt")).unwrap();
    let timed: String = text.lines().map(|line| format!("2026-11-29T00:59:41 {line}\n")).collect();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    for bytes in
        [gzip(text.as_bytes()), timed.into_bytes(), wide, marked, text.replace('\n', "\r\n").into_bytes()]
    {
        let plain = PlainText::unpack(&bytes).unwrap();
        assert!(plain.text().lines().eq(text.lines()), "{}", plain.text());
    }
}

#[test]
fn what_is_compressed_twice_is_named() {
    let twice = gzip(&gzip(sample!("netperf-2.7.1-tcp4.txt")));
    assert!(refusal(&twice, None).contains("compressed by gzip twice"));
}

#[test]
fn byte_order_marks_between_documents_are_passed() {
    let json = std::str::from_utf8(sample!("iperf3-3.12-tcp4.json")).unwrap();
    let joined = format!("\u{feff}{json}\n\u{feff}{json}\n");
    assert_eq!(tests(joined.as_bytes()).len(), 2);
}

#[test]
fn format_that_does_not_fit_the_content_is_named() {
    let said = refusal(sample!("iperf3-3.12-tcp4.json"), Some(Format::Netperf));
    assert_eq!(said, "its content is not netperf: leave out --format, or say --format iperf3");
}

#[test]
fn servers_output_without_times_hides_no_times() {
    let text = std::str::from_utf8(sample!("iperf3-3.12-tcp4-P2.txt")).unwrap();
    let server = std::str::from_utf8(sample!("iperf3-3.12-server.txt")).unwrap();
    let mut lines = String::new();
    for line in text.lines() {
        if line == "iperf Done." {
            lines.push_str(&format!("Server output:\n{server}\n"));
        }
        lines.push_str(&format!("Sun Nov 29 00:59:39 2026 {line}\n"));
    }
    is_near(&one(lines.as_bytes()), Metric::Throughput, 7_890.0 + 7_880.0);
}

#[test]
fn iperf3_that_did_not_connect_says_why() {
    let events = "{\"event\":\"error\",\"data\":\"unable to connect to server: Connection refused\"}\n{\"event\":\"end\",\"data\":{}}\n";
    let refused = file(events.as_bytes());
    assert!(refused.content.is_empty());
    assert_eq!(refused.left_out, ["test 1 failed: unable to connect to server: Connection refused"]);
    let stream = std::str::from_utf8(sample!("iperf3-3.21-stream.json")).unwrap();
    assert_eq!(one(format!("{events}{stream}").as_bytes()).family, V4);
    let json = std::str::from_utf8(sample!("iperf3-3.12-tcp4.json")).unwrap();
    let debug = format!("send_parameters:\n{{\n\"tcp\": true\n}}\n{json}");
    assert!(refusal(debug.as_bytes(), None).contains("without -d"));
}

const HEAD: &str = "block,position,started_unix_ns,wall_ns,status,probe,transport,size_of,family,size,metric,unit,number,missing,in_study";

#[test]
fn rows_with_another_unit_or_column_are_refused() {
    let row = "0,0,5,60,valid,stream,udp,payload,ipv4,64,throughput,Mbit/s,3.8,,yes";
    let text = format!("{HEAD}\n{row}\n");
    assert!(matches!(file(text.as_bytes()).content, Content::Runs(runs) if runs.len() == 1));
    for (from, to, words) in [
        ("Mbit/s", "Gbit/s", "line 2: throughput is in `Gbit/s`, and its unit is Mbit/s"),
        ("3.8,,", "3.8,no arrivals,", "line 2: throughput has a number, and is missing"),
        (",,yes", ",,maybe", "line 2: `maybe` in `in_study` is not yes or no"),
        ("missing,in_study", "missing,extra", "line 1: the column `extra` is not one of `stacklab export`"),
        ("missing,in_study", "missing,missing", "line 1: the column `missing` occurs twice"),
    ] {
        let said = refusal(text.replacen(from, to, 1).as_bytes(), None);
        assert!(said.starts_with(words), "{said}");
    }
}

#[test]
fn atlas_ping_without_requests_is_invalid() {
    let result =
        r#"{"af":4,"prb_id":42,"msm_id":1002,"type":"ping","proto":"ICMP","size":48,"timestamp":1790000000"#;
    let unresolved = format!(r#"{result},"dnserr":"non-recoverable failure in name resolution (1)"}}"#);
    assert_eq!(
        one(unresolved.as_bytes()).invalid,
        ["the probe says: non-recoverable failure in name resolution (1)"]
    );
    assert_eq!(one(format!("{result}}}").as_bytes()).invalid, ["the result has no requests"]);
}
