//! Whether series of flent are streams of one test: of one family, and at the same time.

use crate::json::Json;
use crate::test::family_of_version;
use crate::value::mean;
use stacklab_model::Family;

/// Runners that compute a series of others.
const COMPUTING: [&str; 5] = ["Sum", "Average", "SmoothAverage", "DiffMin", "Fairness"];
/// How names of series end that are computed of others, where no runner is named.
const COMPUTED: [&str; 8] = ["sum", "total", "totals", "avg", "max", "min", "fairness", "median"];
/// How labels of series begin that are statistics of a stream's socket or of its round trips.
const STATISTICS: [&str; 7] = ["tcp_", "owd", "ipdv", "loss", "rtt", "delay", "jitter"];
/// Tools that send streams of TCP, as runners begin.
const TOOLS: [&str; 2] = ["Netperf", "Iperf"];

/// The least share of the longest stream that the shortest one lasts.
const MIN_DURATION_SHARE: f64 = 0.9;
/// The least share of the longest stream's samples that all streams have: series begin and end a little apart.
const MIN_SHARED_SAMPLES: f64 = 0.75;

/// A stream's rates, and its tool's own figures of the whole.
pub(super) struct FlentStream<'a> {
    pub name: &'a str,
    pub series: &'a Json,
    pub meta: &'a Json,
}

impl FlentStream<'_> {
    pub(super) fn is_in_megabits(&self) -> bool {
        self.meta.text("UNITS").is_none_or(|unit| unit == "Mbits/s")
    }

    /// Its mean rate, Mbit/s: its tool's own, since a mean of the samples leaves out the time in which nothing arrived.
    pub(super) fn rate(&self) -> Option<f64> {
        if let Some(rate) = self.own_rate() {
            return Some(rate);
        }
        let mean = mean(&figures(self.series));
        mean.is_finite().then_some(mean)
    }

    /// Its tool's mean rate, Mbit/s.
    fn own_rate(&self) -> Option<f64> {
        if let Some(mean) = self.meta.count("MEAN_VALUE") {
            return Some(mean);
        }
        let bytes = self.meta.count("BYTES_RECVD")?;
        let seconds = self.meta.count("ELAPSED_TIME").filter(|seconds| *seconds > 0.0)?;
        Some(bytes * 8.0 / 1e6 / seconds)
    }

    /// Whether its tool has a mean of the whole.
    pub(super) fn has_own_rate(&self) -> bool {
        self.own_rate().is_some()
    }

    /// Whether its tool's figures or its samples have a rate below 0.
    pub(super) fn has_negative_rates(&self) -> bool {
        let whole = ["MEAN_VALUE", "BYTES_RECVD"]
            .iter()
            .any(|name| self.meta.number(name).is_some_and(|number| number < 0.0));
        whole || figures(self.series).iter().any(|rate| *rate < 0.0)
    }

    /// Whether it is computed of other series, or a statistic of one: `TCP upload total`, `TCP upload::1::tcp_cwnd`,
    /// `Ping (ms) UDP::owd_up`. The runner says so, or the name in files without runners.
    pub(super) fn comes_from_others(&self) -> bool {
        let label = self.name.rsplit_once("::").map_or("", |(_, label)| label);
        let is_statistic = STATISTICS.iter().any(|statistic| label.starts_with(statistic));
        let is_computing = match self.meta.text("RUNNER") {
            Some(runner) => COMPUTING.iter().any(|name| runner.strip_suffix("Runner") == Some(*name)),
            None => COMPUTED.contains(&self.name.rsplit(' ').next().unwrap_or_default()),
        };
        is_statistic || is_computing
    }

    /// Whether a runner measured it that does not send streams of TCP.
    pub(super) fn is_of_other_tool(&self) -> bool {
        let runner = self.meta.text("RUNNER");
        runner.is_some_and(|runner| !TOOLS.iter().any(|tool| runner.starts_with(tool)))
    }

    /// The family that its tool was asked for (`-4`, `-6`); `None` if for none.
    pub(super) fn family(&self) -> Option<Family> {
        let command = self.meta.text("COMMAND")?;
        let options: Vec<&str> = command.split_whitespace().collect();
        match (options.contains(&"-4"), options.contains(&"-6")) {
            (true, false) => family_of_version(Some(4.0)),
            (false, true) => family_of_version(Some(6.0)),
            _ => None,
        }
    }

    /// The places of its first and last samples; `None` if it has none.
    fn span(&self) -> Option<[usize; 2]> {
        let items = self.series.items();
        Some([items.iter().position(is_sample)?, items.iter().rposition(is_sample)?])
    }
}

/// The figures of a series, without the places that have none.
pub(super) fn figures(series: &Json) -> Vec<f64> {
    let mut figures = Vec::new();
    for node in series.items() {
        if let Json::Number(number) = node
            && number.abs() <= 1e18
        {
            figures.push(*number);
        }
    }
    figures
}

/// Whether flent has a figure there; else it has null.
fn is_sample(node: &Json) -> bool {
    matches!(node, Json::Number(_))
}

/// Why streams are left out beside a series that may be one of them.
pub(super) fn describe_unknown(name: &str) -> String {
    format!("{name} is not understood, and it may be one of the streams: they are left out")
}

/// Why streams are no flows of one test, if they are not.
pub(super) fn find_difference(streams: &[&FlentStream<'_>]) -> Option<String> {
    let (first, others) = streams.split_first()?;
    if let Some(other) = others.iter().find(|other| other.family() != first.family()) {
        return Some(format!(
            "{} and {} are of different address families, and ran at once: no figure is that of one family",
            first.name, other.name
        ));
    }
    if last_differently(streams) || !run_at_once(streams) {
        let what = "ran at different times: their rates cannot be added up";
        return Some(format!("{} and {} more: they {what}", first.name, others.len()));
    }
    None
}

/// Whether some streams lasted longer than others, by their tools.
fn last_differently(streams: &[&FlentStream<'_>]) -> bool {
    let mut shortest = f64::INFINITY;
    let mut longest = 0.0_f64;
    for seconds in streams.iter().filter_map(|stream| stream.meta.count("ELAPSED_TIME")) {
        shortest = shortest.min(seconds);
        longest = longest.max(seconds);
    }
    shortest < MIN_DURATION_SHARE * longest
}

/// Whether the samples of all streams are at the same time.
fn run_at_once(streams: &[&FlentStream<'_>]) -> bool {
    let mut from = 0;
    let mut until = usize::MAX;
    let mut longest = 0;
    for [first, last] in streams.iter().filter_map(|stream| stream.span()) {
        from = from.max(first);
        until = until.min(last);
        longest = longest.max(last + 1 - first);
    }
    let shared = until.saturating_add(1).saturating_sub(from);
    shared as f64 >= MIN_SHARED_SAMPLES * longest as f64
}
