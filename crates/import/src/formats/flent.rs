//! Data files of flent (`.flent.gz`), format 1 to 4. They have no sizes, and stacklab does not measure ICMP.

use super::flent_streams::{FlentStream, describe_unknown, figures, find_difference};
use crate::json::{Json, documents};
use crate::test::{
    Format, Identity, Part, ToolFile, ToolTest, family, family_of_version, nanoseconds, of_flows, write_size,
};
use crate::value::{ImportError, mean, of_delays, quantile};
use stacklab_model::{Direction, Metric, Probe, Role, Transport, Value};

const NEWEST: f64 = 4.0;

/// Reads a file: a test for each kind of its traffic.
pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let found = documents(text, &["raw_values"])?;
    let [document] = &found.documents[..] else {
        return Err(ImportError::of_file("it has more than one document"));
    };
    let (Some(meta), Some(results)) = (document.get("metadata"), document.get("results")) else {
        return Err(ImportError::of_file("it has no metadata and results: this is not a file of flent"));
    };
    match document.number("version") {
        Some(version) if version > NEWEST => {
            let reason = format!("its format is {version}, and up to {NEWEST} are known");
            return Err(ImportError::of_file(reason));
        }
        Some(_) => {}
        None => return Err(ImportError::of_file("it has no version")),
    }
    let version = meta.text("FLENT_VERSION").map(str::to_owned);
    let mut left_out = found.left_out();
    let Kinds { up, down, pings, computed, unknown } = sort_series(meta, results, &mut left_out);
    let mut tests = Vec::new();
    for ping in pings {
        // Not those of a path without load, and `rtt_under_load` is beside one stream in one direction.
        if up.is_empty() && down.is_empty() && unknown.is_none() {
            tests.push(round_trips(meta, &ping));
        } else {
            let what = "stacklab has no metric for round trips during these streams";
            left_out.push(format!("{}: {what}", ping.name));
        }
    }
    let times = figures(&document["x_values"]);
    let all: Vec<&FlentStream<'_>> = up.iter().chain(&down).collect();
    match unknown.map(describe_unknown).or_else(|| find_difference(&all)) {
        Some(reason) => left_out.push(reason),
        None if all.is_empty() => {}
        None if down.is_empty() => tests.push(series(stream(meta, &up, Direction::Forward), &times, &up)),
        None if up.is_empty() => tests.push(series(stream(meta, &down, Direction::Reverse), &times, &down)),
        None => {
            let mut test = stream(meta, &up, Direction::Both);
            test.set(Metric::ThroughputReverse, rate(&down));
            warn_missing_samples(&mut test, &down);
            tests.push(test);
        }
    }
    if !computed.is_empty() {
        left_out.push(format!(
            "{}: computed of other series, or statistics of their sockets",
            computed.join(", ")
        ));
    }
    for (number, test) in tests.iter_mut().enumerate() {
        test.identities.extend(identity(meta, number));
        warn_failed_runners(test, meta);
    }
    ToolFile::of_tests(Format::Flent, version, tests, left_out)
}

/// The series of a file by what they are of.
#[derive(Default)]
struct Kinds<'a> {
    up: Vec<FlentStream<'a>>,
    down: Vec<FlentStream<'a>>,
    pings: Vec<FlentStream<'a>>,
    /// Those that are computed of others.
    computed: Vec<&'a str>,
    /// A series of TCP whose direction is not known.
    unknown: Option<&'a str>,
}

/// Sorts the series, and names those of which nothing is imported.
fn sort_series<'a>(meta: &'a Json, results: &'a Json, left_out: &mut Vec<String>) -> Kinds<'a> {
    let mut kinds = Kinds::default();
    for (name, series) in results.fields() {
        let stream = FlentStream { name, series, meta: &meta["SERIES_META"][name] };
        match name.as_str() {
            name if stream.comes_from_others() => kinds.computed.push(name),
            name if name.starts_with("TCP") && stream.is_of_other_tool() => kinds.unknown = Some(name),
            name if is_of(name, "TCP upload") => kinds.up.push(stream),
            name if is_of(name, "TCP download") => kinds.down.push(stream),
            name if name.starts_with("TCP") => kinds.unknown = Some(name),
            name if is_of(name, "Ping (ms) UDP") || name.starts_with("Ping (ms)::UDP") => {
                kinds.pings.push(stream);
            }
            name if name.contains("ICMP") => left_out.push(format!("{name}: stacklab has no such transport")),
            name => left_out.push(format!("{name}: stacklab has no such metric")),
        }
    }
    kinds
}

/// Whether a series is one of these: `TCP upload`, `TCP upload2`, `TCP upload BE`, `TCP upload::2`,
/// `TCP upload::0 (CS0)`.
fn is_of(name: &str, kind: &str) -> bool {
    let Some(rest) = name.strip_prefix(kind) else { return false };
    rest.chars().next().is_none_or(|letter| " :".contains(letter) || letter.is_ascii_digit())
}

/// Warns if commands of the test gave no data: streams that should be there may be missing.
fn warn_failed_runners(test: &mut ToolTest, meta: &Json) {
    if meta.is_set("FAILED_RUNNERS") {
        let failed = meta.number("FAILED_RUNNERS").unwrap_or_default();
        test.warn(
            "tool_runners",
            format!("flent says that {failed} of its runners failed: they gave no valid data"),
            "a stream may be missing, or another one may have run alone: repeat the test",
        );
    }
}

/// What no other test has: the host, the time and the name of the data file.
fn identity(meta: &Json, number: usize) -> Option<Identity> {
    let time = meta.text("T0").or_else(|| meta.text("TIME"))?;
    let host = meta.text("LOCAL_HOST").unwrap_or_default();
    let test = meta.text("NAME").unwrap_or_default();
    let name = format!("{time} {host} {test} {number}");
    Some(Identity { what: "host and time", name, at_s: None })
}

/// A test with what the file says of all, and the family of this stream of it.
fn begun(meta: &Json, probe: Probe, transport: Transport, stream: &FlentStream<'_>) -> ToolTest {
    let mut test = ToolTest::new(probe);
    test.transport = Some(transport);
    test.family = stream.family().or(family_of_version(meta.number("IP_VERSION")));
    if test.family.is_none() {
        test.family = meta.text("HOST").and_then(|host| family(host, host));
    }
    test.duration_ns = meta.count("LENGTH").map_or(0, nanoseconds);
    test
}

/// UDP: irtt sends on a schedule, netperf after each answer.
fn round_trips(meta: &Json, stream: &FlentStream<'_>) -> ToolTest {
    let (probe, median, average) = match stream.meta.text("RUNNER") {
        Some("IrttRunner") => (Probe::EchoOpenLoop, Metric::RttOpen, Metric::RttOpenMean),
        _ => (Probe::Echo, Metric::Rtt, Metric::RttMean),
    };
    let mut test = begun(meta, probe, Transport::Udp, stream);
    let mut figures = figures(stream.series);
    figures.sort_by(f64::total_cmp);
    let otherwise = "the series has no figures";
    test.set(average, of_delays(&figures, Some(mean(&figures)), otherwise));
    test.set(median, of_delays(&figures, quantile(&figures, 0.5), otherwise));
    test.warn(
        "tool_interpolated",
        "flent's series are interpolated between measurements".to_owned(),
        "extremes and medians are smoothed",
    );
    test
}

/// Streams of one direction: their mean rates, added up.
fn stream(meta: &Json, streams: &[FlentStream<'_>], direction: Direction) -> ToolTest {
    let mut test = begun(meta, Probe::Stream, Transport::Tcp, &streams[0]);
    test.direction = direction;
    test.flows = streams.len() as u32;
    test.set(Metric::Throughput, rate(streams));
    warn_missing_samples(&mut test, streams);
    let sizes: Vec<Option<f64>> = streams.iter().map(|stream| stream.meta.count("SEND_SIZE")).collect();
    if let Some(Some(size)) = sizes.first().filter(|first| sizes.iter().all(|size| size == *first)) {
        test.size = write_size(*size);
    }
    let all = |name| streams.iter().map(|stream| stream.meta.count(name)).sum::<Option<f64>>();
    if let Some(again) = all("TCP_RETRANSMIT") {
        test.set_retransmits(Some(again), all("BYTES_SENT").or_else(|| all("BYTES_RECVD")).unwrap_or(0.0));
    }
    test
}

/// Warns of rates that are means of samples, some of which are missing.
fn warn_missing_samples(test: &mut ToolTest, streams: &[FlentStream<'_>]) {
    for stream in streams {
        let samples = figures(stream.series).len();
        let all = stream.series.items().len();
        if samples < all && !stream.has_own_rate() {
            test.warn(
                "tool_samples",
                format!("{}: its rate is the mean of {samples} of {all} samples: the others have no figure", stream.name),
                "the rate leaves out the time in which nothing arrived: repeat the test with netperf's own mean",
            );
        }
    }
}

/// A test with its streams' rates as intervals. Tools print them at the host that started them: the sender of an
/// upload, the receiver of a download.
fn series(mut test: ToolTest, times: &[f64], streams: &[FlentStream<'_>]) -> ToolTest {
    if streams.iter().all(|stream| stream.is_in_megabits() && !stream.has_negative_rates()) {
        let flows: Vec<Vec<Part>> = streams.iter().map(|stream| list_parts(stream, times)).collect();
        let role = if test.direction == Direction::Reverse { Role::Receiver } else { Role::Sender };
        test.series = of_flows(role, &flows);
    }
    test
}

/// The samples of a stream, each up to the time of the next one.
fn list_parts(stream: &FlentStream<'_>, times: &[f64]) -> Vec<Part> {
    let step = times.windows(2).map(|pair| pair[1] - pair[0]).next().unwrap_or(0.0);
    let samples = stream.series.items();
    let mut parts = Vec::new();
    for (place, from) in times.iter().copied().enumerate() {
        let to = times.get(place + 1).copied().unwrap_or(from + step);
        // flent has null where it has nothing to interpolate between.
        let rate = if let Some(Json::Number(rate)) = samples.get(place) { *rate } else { 0.0 };
        parts.push(Part { from, to, bytes: rate * 1e6 / 8.0 * (to - from), messages: 0.0 });
    }
    parts
}

fn rate(streams: &[FlentStream<'_>]) -> Value {
    if let Some(other) = streams.iter().find(|stream| !stream.is_in_megabits()) {
        let unit = other.meta.text("UNITS").unwrap_or_default().escape_debug();
        return Value::Missing(format!("a stream is in `{unit}`, and only Mbits/s are read"));
    }
    if let Some(stream) = streams.iter().find(|stream| stream.has_negative_rates()) {
        return Value::Missing(format!("{} has a rate below 0", stream.name));
    }
    let means: Option<f64> = streams.iter().map(FlentStream::rate).sum();
    means.map_or_else(|| Value::Missing("a stream has no figures".to_owned()), Value::Measured)
}
