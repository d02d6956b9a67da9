//! Results of RIPE Atlas' `ping`: JSON, as an array, or a result a line.

use crate::error::ImportError;
use crate::file::{Content, Format, ToolFile};
use crate::json::{Documents, Node, document, documents};
use crate::test::ToolTest;
use crate::value::{MOST_TESTS, quantile, untold};
use stacklab_model::{Family, Metric, Probe, Transport, Value};

/// Reads a file: each ping of a probe is a test.
pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let (found, beside) = if text.trim_start().starts_with('[') {
        match document(text)? {
            Node::List(results) => (results, Vec::new()),
            _ => (Vec::new(), Vec::new()),
        }
    } else {
        let Documents { documents, beside, .. } = documents(text, &[])?;
        (documents, beside)
    };
    let mut left_out: Vec<String> =
        beside.into_iter().map(|(_, line)| format!("a line outside the JSON: {line}")).collect();
    if found.len() > MOST_TESTS {
        return Err(ImportError::of_file("it has too many tests".to_owned()));
    }
    let mut tests = Vec::new();
    for (number, result) in found.iter().enumerate() {
        match result.text("type") {
            Some("ping") => tests.push(test(result)),
            kind => {
                let kind = kind.unwrap_or("nothing that is named").escape_debug().to_string();
                left_out.push(format!("result {}: {kind}: only pings of RIPE Atlas are read", number + 1));
            }
        }
    }
    Ok(ToolFile { format: Format::Atlas, version: None, content: Content::Tests(tests), left_out })
}

fn test(result: &Node) -> ToolTest {
    let mut test = ToolTest::new(Probe::EchoOpenLoop);
    test.family = match result.number("af") {
        Some(4.0) => Some(Family::Ipv4),
        Some(6.0) => Some(Family::Ipv6),
        _ => None,
    };
    test.transport = Some(Transport::Udp);
    if result.text("proto") != Some("UDP") {
        test.warn(
            "tool_icmp",
            "these are echo requests of ICMP, which a record keeps as datagrams".to_owned(),
            "routers and hosts may treat ICMP and UDP differently",
        );
    }
    let is_size = |size: &f64| (1.0..65_536.0).contains(size);
    test.size = result.count("size").filter(is_size).map(|size| size as u32);
    test.started_unix_ns =
        result.count("timestamp").filter(|seconds| *seconds < 9e9).map(|seconds| (seconds * 1e9) as u64);
    let answers = result.get("result").map_or(&[][..], Node::items);
    let mut delays: Vec<f64> = answers.iter().filter_map(|answer| answer.count("rtt")).collect();
    delays.sort_by(f64::total_cmp);
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let median = quantile(&delays, 0.5).map_or_else(|| untold("the file", "a round trip"), Value::Measured);
    test.set(Metric::RttOpen, median);
    test.set(Metric::RttOpenMean, Value::finite(mean, "nothing was answered"));
    let lost = result
        .count("sent")
        .zip(result.count("rcvd"))
        .map(|(sent, received)| (1.0 - received / sent).max(0.0));
    test.set(Metric::EchoLoss, Value::finite(lost.unwrap_or(f64::NAN), "nothing was sent"));
    let error = answers.iter().find_map(|answer| answer.text("error")).or(result.text("error"));
    if let Some(error) = error.filter(|_| delays.is_empty()) {
        test.invalid.push(format!("the probe says: {error}"));
    }
    test
}
