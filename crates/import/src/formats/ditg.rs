//! Text of D-ITG's ITGDec, version 2.8. It tells neither the transport nor whether delays are of one way or of both.

use super::forms::{Forms, Unread, find, not_understood};
use crate::test::{Format, ToolFile, ToolTest, datagram, family, nanoseconds};
use crate::value::{Datagrams, ImportError, number, share_of_losses, untold};
use stacklab_model::{Metric, Probe, Value};
use std::collections::BTreeMap;

/// What a line is.
#[derive(Debug, Clone, Copy)]
enum DitgLine {
    Version,
    Flow,
    End,
    /// A figure, by its name.
    Figure(&'static str),
    Total,
    /// It has no figure that is read, and changes none.
    Known,
}

const LINES: &Forms<DitgLine> = &[
    (DitgLine::Version, "ITGDec version {version} {..}"),
    (DitgLine::Known, "Compile-time options: {..}"),
    (DitgLine::Known, "------------------------------{..}"),
    (DitgLine::Known, "______________________________{..}"),
    (DitgLine::Flow, "Flow number: {n}"),
    (DitgLine::End, "From {end}"),
    (DitgLine::End, "To {end}"),
    (DitgLine::Total, "**************** TOTAL RESULTS ******************"),
    (DitgLine::Figure("Total time"), "Total time = {figure} s"),
    (DitgLine::Figure("Total packets"), "Total packets = {figure}"),
    (DitgLine::Figure("Average delay"), "Average delay = {figure} s"),
    (DitgLine::Figure("Average jitter"), "Average jitter = {figure} s"),
    (DitgLine::Figure("Bytes received"), "Bytes received = {figure}"),
    (DitgLine::Figure("Average bitrate"), "Average bitrate = {figure} Kbit/s"),
    (DitgLine::Figure("Packets dropped"), "Packets dropped = {figure} ({n} %)"),
    (DitgLine::Known, "Minimum delay = {n} s"),
    (DitgLine::Known, "Maximum delay = {n} s"),
    (DitgLine::Known, "Delay standard deviation = {n} s"),
    (DitgLine::Known, "Average packet rate = {n} pkt/s"),
    (DitgLine::Known, "Average loss-burst size = {n} pkt"),
    (DitgLine::Known, "Number of flows = {n}"),
    (DitgLine::Known, "Error lines = {n}"),
];

/// Why an output that does not end is not read.
const NO_TOTALS: &str =
    "the total results before here are missing: the file is cut short, or not from ITGDec";

/// A flow: its line, its ends and figures, and why it is left out, if it is.
#[derive(Default)]
struct Flow<'t> {
    place: usize,
    ends: Vec<&'t str>,
    figures: BTreeMap<&'static str, &'t str>,
    left_out: Option<String>,
}

/// Reads the flows of a file: each is a test.
pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut version = None;
    let mut flows: Vec<Flow> = Vec::new();
    let mut has_totals = false;
    let mut unread = Unread::default();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let flow = flows.last_mut().filter(|_| !has_totals);
        match (find(LINES, line.trim()), flow) {
            (Some((DitgLine::Version, _)), Some(_)) => {
                return Err(ImportError::of_line(place, NO_TOTALS));
            }
            // The outputs of several runs of ITGDec.
            (Some((DitgLine::Version, fields)), _) => {
                version = Some(fields.text("version").to_owned());
                has_totals = false;
            }
            (Some((DitgLine::Flow, _)), _) if has_totals => {
                return Err(ImportError::of_line(
                    place,
                    "a flow behind the total results, which are the end",
                ));
            }
            (Some((DitgLine::Flow, _)), _) => {
                ImportError::too_many(flows.len(), place)?;
                flows.push(Flow { place, ..Flow::default() });
            }
            (Some((DitgLine::Total, _)), _) => has_totals = true,
            (Some((DitgLine::Known, _)), _) => {}
            (Some((DitgLine::End, fields)), Some(flow)) => {
                let end = fields.text("end");
                flow.ends.push(end.rsplit_once(':').map_or(end, |(address, _)| address));
            }
            (Some((DitgLine::Figure(name), fields)), Some(flow)) => {
                flow.figures.insert(name, fields.text("figure"));
            }
            (None, Some(flow)) => {
                flow.left_out.get_or_insert_with(|| not_understood(place, line));
            }
            // Figures of all flows are not read.
            (Some(_), None) if has_totals => {}
            (_, None) => unread.add(place, line),
        }
    }
    if !has_totals {
        return Err(ImportError::of_file(NO_TOTALS));
    }
    let mut tests = Vec::new();
    let mut left_out = Vec::new();
    for flow in &flows {
        match &flow.left_out {
            Some(reason) => left_out.push(format!("the flow of line {}: {reason}", flow.place + 1)),
            None => tests.push(
                test(&flow.ends, &flow.figures).map_err(|reason| ImportError::of_line(flow.place, reason))?,
            ),
        }
    }
    left_out.extend(unread.describe());
    ToolFile::of_tests(Format::Ditg, version, tests, left_out)
}

fn test(ends: &[&str], figures: &BTreeMap<&str, &str>) -> Result<ToolTest, String> {
    let seconds = read_figure(figures, "Total time")?;
    let packets = read_figure(figures, "Total packets")?;
    let bytes = read_figure(figures, "Bytes received")?;
    let rate = read_figure(figures, "Average bitrate")?;
    let dropped = read_figure(figures, "Packets dropped")?;
    let mut test = ToolTest::new(Probe::Stream);
    test.family = if let [from, to] = ends { family(from, to) } else { None };
    test.duration_ns = nanoseconds(seconds);
    test.size = datagram(bytes / packets);
    test.set(Metric::Throughput, Value::Measured(rate / 1e3));
    let counts = Datagrams { lost: dropped, sent: packets + dropped };
    test.set(Metric::Loss, share_of_losses(&[counts], "nothing was sent"));
    test.set(Metric::MessageRate, Value::finite(packets / seconds, "it took no time"));
    for (metric, name) in [(Metric::OneWayDelayMean, "Average delay"), (Metric::Jitter, "Average jitter")] {
        let figure = read_figure(figures, name);
        let said = figure.map_or("not stated".to_owned(), |seconds| format!("{} ms", seconds * 1e3));
        let what = format!("whether delays are one-way or round-trip (it says {said})");
        test.set(metric, untold("ITGDec", &what));
    }
    Ok(test)
}

fn read_figure(figures: &BTreeMap<&str, &str>, name: &str) -> Result<f64, String> {
    let text = figures.get(name).ok_or_else(|| format!("this flow has no `{name}`"))?;
    number(text).ok_or_else(|| format!("`{name}` of this flow is not a number"))
}
