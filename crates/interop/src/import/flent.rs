//! Data files of flent (`.flent.gz`), format 1 to 4. Sizes are not told, and ICMP is no transport of stacklab's.

use crate::import::error::ImportError;
use crate::import::file::{Content, Format, ToolFile};
use crate::import::json::{Node, documents};
use crate::import::test::{ToolTest, family, nanoseconds};
use stacklab_model::{Direction, Family, Metric, Probe, Transport, Value};

/// The newest format of flent's files.
const NEWEST: f64 = 4.0;

/// Reads a file: a test for each kind of its traffic.
pub(super) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let found = documents(text, &["raw_values", "x_values"])?;
    let [document] = &found[..] else {
        return Err(ImportError::of_file("it has more than one document".to_owned()));
    };
    let (Some(meta), Some(results)) = (document.get("metadata"), document.get("results")) else {
        return Err(ImportError::of_file(
            "it has no metadata and results: this is no file of flent".to_owned(),
        ));
    };
    match document.number("version") {
        Some(version) if version > NEWEST => {
            return Err(ImportError::of_file(format!(
                "its format is {version}, and up to {NEWEST} are known"
            )));
        }
        Some(_) => {}
        None => return Err(ImportError::of_file("it has no version".to_owned())),
    }
    let version = meta.text("FLENT_VERSION").map(str::to_owned);
    let mut left_out = Vec::new();
    let mut streams: [Vec<&Node>; 2] = [Vec::new(), Vec::new()];
    let (mut tests, mut pings) = (Vec::new(), Vec::new());
    for (name, series) in results.fields() {
        let is_sum = ["sum", "avg", "totals", "max", "min"].iter().any(|word| name.ends_with(word));
        match name.as_str() {
            _ if is_sum => {}
            name if name.starts_with("TCP upload") => streams[0].push(series),
            name if name.starts_with("TCP download") => streams[1].push(series),
            name if name.starts_with("Ping (ms) UDP") => pings.push((name, series)),
            name if name.contains("ICMP") => {
                left_out.push(format!("{name}: stacklab has no such transport"));
            }
            name => left_out.push(format!("{name}: stacklab has no metric that is like it")),
        }
    }
    for (name, series) in pings {
        // Not those of a path without load, and `rtt_loaded` is beside one stream in one direction.
        if streams.iter().all(Vec::is_empty) {
            tests.push(round_trips(meta, name, series));
        } else {
            left_out.push(format!("{name}: round trips beside these streams are no metric of stacklab's"));
        }
    }
    match streams.each_ref().map(|series| !series.is_empty()) {
        [true, true] => {
            let mut test = stream(meta, &streams[0], Direction::Both);
            test.set(Metric::ThroughputReverse, rate(&streams[1]));
            tests.push(test);
        }
        [true, false] => tests.push(stream(meta, &streams[0], Direction::Forward)),
        [false, true] => tests.push(stream(meta, &streams[1], Direction::Reverse)),
        [false, false] => {}
    }
    Ok(ToolFile { format: Format::Flent, version, content: Content::Tests(tests), left_out })
}

fn begun(meta: &Node, probe: Probe, transport: Transport) -> ToolTest {
    let mut test = ToolTest::new(probe);
    test.transport = Some(transport);
    test.family = match meta.number("IP_VERSION") {
        Some(4.0) => Some(Family::Ipv4),
        Some(6.0) => Some(Family::Ipv6),
        _ => meta.text("HOST").and_then(|host| family(host, host)),
    };
    test.duration_ns = meta.count("LENGTH").map_or(0, nanoseconds);
    test
}

/// The figures of a series, without gaps.
fn figures(series: &Node) -> Vec<f64> {
    let figure = |node: &Node| if let Node::Number(number) = node { Some(*number) } else { None };
    series.items().iter().filter_map(figure).filter(|number| number.abs() <= 1e18).collect()
}

fn mean(figures: &[f64]) -> Value {
    Value::finite(figures.iter().sum::<f64>() / figures.len() as f64, "the series has no figures")
}

/// UDP: irtt sends on a schedule, netperf after each answer.
fn round_trips(meta: &Node, name: &str, series: &Node) -> ToolTest {
    let runner = meta.get("SERIES_META").and_then(|all| all.get(name)?.text("RUNNER"));
    let (probe, median, average) = match runner {
        Some("IrttRunner") => (Probe::EchoOpen, Metric::RttOpen, Metric::RttOpenMean),
        _ => (Probe::Echo, Metric::Rtt, Metric::RttMean),
    };
    let mut test = begun(meta, probe, Transport::Udp);
    let mut figures = figures(series);
    test.set(average, mean(&figures));
    figures.sort_by(f64::total_cmp);
    let middle = match figures.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => figures[count / 2],
        count => (figures[count / 2 - 1] + figures[count / 2]) / 2.0,
    };
    test.set(median, Value::finite(middle, "the series has no figures"));
    test.warn(
        "tool_interpolated",
        "flent's series are interpolated between what was measured".to_owned(),
        "extremes and medians are smoothed",
    );
    test
}

/// Streams of one direction: their mean rates, added up.
fn stream(meta: &Node, series: &[&Node], direction: Direction) -> ToolTest {
    let mut test = begun(meta, Probe::Stream, Transport::Tcp);
    (test.direction, test.flows) = (direction, series.len() as u32);
    test.set(Metric::Throughput, rate(series));
    test
}

/// The mean rates of streams, added up.
fn rate(series: &[&Node]) -> Value {
    let means: Option<f64> = series.iter().map(|series| mean(&figures(series)).measured()).sum();
    means.map_or_else(|| Value::Missing("a stream has no figures".to_owned()), Value::Measured)
}
