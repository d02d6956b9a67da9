//! Files that have only what a tool says when it fails: it could not connect, or was called wrongly. They have no test,
//! and the tool's words say why.

use crate::test::{Format, ToolFile};

/// How lines begin by which tools say that they failed.
const BEGINS: [(Format, &str); 12] = [
    (Format::Iperf3Text, "iperf3: "),
    (Format::IperfText, "iperf: "),
    (Format::IperfText, "connect failed: "),
    (Format::IperfText, "tcp connect failed: "),
    (Format::IperfText, "udp connect failed: "),
    (Format::IperfText, "bind failed: "),
    (Format::IperfText, "listener bind failed: "),
    (Format::Netperf, "netperf: "),
    (Format::Netperf, "establish control: "),
    (Format::Netperf, "establish_control "),
    (Format::Irtt, "[Connecting] "),
    (Format::Irtt, "Error: "),
];
/// How many of such lines are listed.
const MAX_LISTED: usize = 10;

/// A file of a tool that failed, with its words as what is left out; `None` if no line is one of a tool.
pub(super) fn read(text: &str) -> Option<ToolFile> {
    let format = text.lines().find_map(|line| find_format(line.trim()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut left_out: Vec<String> = Vec::new();
    for (place, line) in lines {
        if left_out.len() == MAX_LISTED {
            left_out.push("more lines without a result".to_owned());
            break;
        }
        left_out.push(format!("line {}: {}", place + 1, line.trim()));
    }
    ToolFile::of_tests(format, None, Vec::new(), left_out).ok()
}

/// The format of a tool that says in a line that it failed.
fn find_format(line: &str) -> Option<Format> {
    BEGINS.iter().find(|(_, begin)| line.starts_with(begin)).map(|(format, _)| *format)
}
