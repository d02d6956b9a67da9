//! Results of RIPE Atlas' `ping`: JSON, as an array, or a result a line.

use crate::json::{Documents, Json, document, documents};
use crate::test::{Format, Identity, ToolFile, ToolTest, family_of_version};
use crate::value::{ImportError, MAX_TESTS, loss, mean, of_delays, quantile, untold};
use stacklab_model::{Metric, Probe, Transport};

/// Reads a file: each ping of a probe is a test.
pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let found = match text.trim_start().starts_with('[') {
        true => Documents { documents: document(text)?.items().to_vec(), ..Documents::default() },
        false => documents(text, &[])?,
    };
    let mut left_out = found.left_out();
    let found = found.documents;
    if found.len() > MAX_TESTS {
        return Err(ImportError::of_file("it has too many tests"));
    }
    let mut tests = Vec::new();
    for (number, result) in found.iter().enumerate() {
        match result.text("type") {
            Some("ping") => match result.text("proto") {
                Some("ICMP" | "UDP") | None => tests.push(test(result)),
                Some(other) => {
                    left_out.push(format!(
                        "result {}: a ping over {other}: only ICMP and UDP are read",
                        number + 1
                    ));
                }
            },
            kind => {
                let kind = kind.unwrap_or("nothing that is named").escape_debug().to_string();
                left_out.push(format!("result {}: {kind}: only pings of RIPE Atlas are read", number + 1));
            }
        }
    }
    ToolFile::of_tests(Format::Atlas, None, tests, left_out)
}

fn test(result: &Json) -> ToolTest {
    let mut test = ToolTest::new(Probe::EchoOpenLoop);
    test.family = family_of_version(result.number("af"));
    test.transport = Some(Transport::Udp);
    if result.text("proto") != Some("UDP") {
        test.warn(
            "tool_icmp",
            "these are echo requests of ICMP, which a record keeps as datagrams".to_owned(),
            "routers and hosts may treat ICMP and UDP differently",
        );
    }
    let size = result.count("size").filter(|size| (1.0..65_536.0).contains(size));
    test.size = size.map(|size| size as u32);
    test.started_unix_ns =
        result.count("timestamp").filter(|seconds| *seconds < 9e9).map(|seconds| (seconds * 1e9) as u64);
    let answers = result["result"].items();
    // A second answer to a request is not another round trip.
    let firsts = answers.iter().filter(|answer| answer.get("dup").is_none());
    let mut delays: Vec<f64> = firsts.filter_map(|answer| answer.number("rtt")).collect();
    delays.sort_by(f64::total_cmp);
    let no_answer = "nothing was answered";
    test.set(Metric::RttOpen, of_delays(&delays, quantile(&delays, 0.5), no_answer));
    test.set(Metric::RttOpenMean, of_delays(&delays, Some(mean(&delays)), no_answer));
    let lost = result.count("sent").zip(result.count("rcvd"));
    let echo_loss = match lost {
        Some((sent, received)) => loss(sent, received),
        None => untold("the file", "how many requests were sent and answered"),
    };
    test.set(Metric::EchoLoss, echo_loss);
    let error = answers.iter().find_map(|answer| answer.text("error"));
    // `dnserr`: the probe could not resolve the name.
    let error = error.or(result.text("error")).or(result.text("dnserr"));
    if let Some(error) = error.filter(|_| delays.is_empty()) {
        test.invalid.push(format!("the probe says: {error}"));
    } else if result.number("sent") == Some(0.0) {
        test.invalid.push("nothing was sent".to_owned());
    } else if answers.is_empty() && result.number("sent").is_none() {
        test.invalid.push("the result has no requests".to_owned());
    }
    let ids = ["msm_id", "prb_id", "timestamp", "af"].map(|name| result.number(name));
    if ids.iter().all(Option::is_some) {
        let address = result.text("dst_addr").unwrap_or_default();
        let name = format!("{ids:?} {address}");
        test.identities.push(Identity { what: "measurement, probe and time", name, at_s: None });
    }
    test
}
