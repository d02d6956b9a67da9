//! Text of D-ITG's ITGDec, version 2.8. It tells neither the transport nor whether delays are of one way or of both.

use crate::test::{Format, ToolFile, ToolTest, datagram, family, nanoseconds};
use crate::value::{ImportError, number, untold};
use stacklab_model::{Metric, Probe, Value};
use std::collections::BTreeMap;

/// Reads the flows of a file: each is a test.
pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut version = None;
    // The line of each, its ends, and its figures.
    let mut flows: Vec<(usize, Vec<&str>, BTreeMap<&str, &str>)> = Vec::new();
    let mut totals = false;
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(said) = line.strip_prefix("ITGDec version ") {
            version = said.split_whitespace().next().map(str::to_owned);
        } else if line.starts_with("Flow number:") {
            ImportError::too_many(flows.len(), place)?;
            if totals {
                return Err(ImportError::of_line(place, "no flow is expected here"));
            }
            flows.push((place, Vec::new(), BTreeMap::new()));
        } else if line.contains("TOTAL RESULTS") {
            totals = true;
        } else if let (Some((_, ends, figures)), false) = (flows.last_mut(), totals) {
            if let Some(end) = line.strip_prefix("From ").or(line.strip_prefix("To ")) {
                ends.push(end.trim().rsplit_once(':').map_or(end, |(address, _)| address));
            } else if let Some((name, figure)) = line.split_once('=') {
                figures.insert(name.trim(), figure.trim());
            }
        }
    }
    if !totals {
        let reason = "the total results at the end are missing: the file is cut short, or not from ITGDec";
        return Err(ImportError::of_file(reason));
    }
    let mut tests = Vec::new();
    for (place, ends, figures) in &flows {
        tests.push(test(ends, figures).map_err(|reason| ImportError::of_line(*place, reason))?);
    }
    ToolFile::of_tests(Format::Ditg, version, tests, Vec::new())
}

fn test(ends: &[&str], figures: &BTreeMap<&str, &str>) -> Result<ToolTest, String> {
    let figure = |name: &str| -> Result<f64, String> {
        let text = figures.get(name).ok_or_else(|| format!("this flow has no `{name}`"))?;
        let first = text.split_whitespace().next().unwrap_or_default();
        number(first).ok_or_else(|| format!("`{name}` of this flow is not a number"))
    };
    let (seconds, packets) = (figure("Total time")?, figure("Total packets")?);
    let (bytes, rate) = (figure("Bytes received")?, figure("Average bitrate")?);
    let dropped = figure("Packets dropped")?;
    let unit = figures["Average bitrate"].split_whitespace().nth(1).unwrap_or_default();
    if unit != "Kbit/s" {
        return Err(format!("the unit of the bitrate is `{}`, and Kbit/s is expected", unit.escape_debug()));
    }
    let mut test = ToolTest::new(Probe::Stream);
    test.family = if let [from, to] = ends { family(from, to) } else { None };
    test.duration_ns = nanoseconds(seconds);
    test.size = datagram(bytes / packets);
    test.set(Metric::Throughput, Value::Measured(rate / 1e3));
    test.set(Metric::Loss, Value::finite(dropped / (packets + dropped), "nothing was sent"));
    test.set(Metric::MessageRate, Value::finite(packets / seconds, "it took no time"));
    for (metric, name) in [(Metric::OneWayDelayMean, "Average delay"), (Metric::Jitter, "Average jitter")] {
        let said = figure(name).map_or("not stated".to_owned(), |seconds| format!("{} ms", seconds * 1e3));
        let what = format!("whether delays are one-way or round-trip (it says {said})");
        test.set(metric, untold("ITGDec", &what));
    }
    Ok(test)
}
