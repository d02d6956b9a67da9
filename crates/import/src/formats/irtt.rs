//! JSON of irtt (`irtt client -o FILE`), version 0.9: round trips of datagrams on a schedule.

use crate::json::{Json, documents};
use crate::test::{Format, Identity, MAX_ROWS, ToolFile, ToolTest, family};
use crate::value::{ImportError, loss, of_delays, quantile, rfc3339_ns, untold};
use stacklab_model::{Family, IntervalRow, Metric, Probe, Role, ToolSeries, Transport};

/// Reads the tests of a file: each document is one.
pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let read = documents(text, &["timestamps", "ipdv"])?;
    let left_out = read.left_out();
    let found = read.documents;
    let mut tests = Vec::new();
    for (number, document) in found.iter().enumerate() {
        let (Some(config), Some(stats)) = (document.get("config"), document.get("stats")) else {
            let reason = format!("document {} has no config and stats: this is not JSON of irtt", number + 1);
            return Err(ImportError::of_file(reason));
        };
        tests.push(test(config, stats, document["round_trips"].items()));
    }
    let version = found.iter().find_map(|document| document["version"].text("irtt")).map(str::to_owned);
    ToolFile::of_tests(Format::Irtt, version, tests, left_out)
}

fn test(config: &Json, stats: &Json, round_trips: &[Json]) -> ToolTest {
    let mut test = ToolTest::new(Probe::EchoOpenLoop);
    test.transport = Some(Transport::Udp);
    test.family = match config.text("ip_version") {
        Some("IPv4") => Some(Family::Ipv4),
        Some("IPv6") => Some(Family::Ipv6),
        _ => {
            let local = find_host(config, "local_address");
            let remote = find_host(config, "remote_address");
            local.zip(remote).and_then(|(local, remote)| family(local, remote))
        }
    };
    let asked = &config["params"];
    let interval = config["params"].count("interval");
    let length = asked.count("length").filter(|length| (1.0..65_536.0).contains(length));
    test.size = length.map(|length| length as u32);
    let schedule = interval.filter(|interval| *interval > 0.0).zip(test.size);
    test.rate = schedule.map(|(interval, size)| f64::from(size) * 8e9 / interval);
    test.duration_ns = stats.count("duration").map_or(0, |ns| ns as u64);
    test.started_unix_ns = stats.text("start_time").and_then(rfc3339_ns);
    test.series = interval.and_then(|interval| series(round_trips, interval, test.size));
    let delays = round_trips.iter().filter_map(|one| one["delay"].number("rtt"));
    let mut delays: Vec<f64> = delays.map(|ns| ns / 1e6).collect();
    delays.sort_by(f64::total_cmp);
    let figure = |name: &str| stats["rtt"].count(name).map(|ns| ns / 1e6);
    let no_answer = "the file does not report a round trip: nothing was answered";
    let is_answered = stats.count("packets_received").is_none_or(|count| count > 0.0);
    for (metric, known) in [
        (Metric::RttOpen, figure("median").or(quantile(&delays, 0.5))),
        (Metric::RttOpenMean, figure("mean")),
        (Metric::RttOpenP99, quantile(&delays, 0.99)),
    ] {
        test.set(metric, of_delays(&delays, known.filter(|_| is_answered), no_answer));
    }
    let lost = stats.count("packets_sent").zip(stats.count("packets_received"));
    let echo_loss = match lost {
        Some((sent, received)) => loss(sent, received),
        None => untold("the file", "how many requests were sent and answered"),
    };
    test.set(Metric::EchoLoss, echo_loss);
    if stats.number("packets_sent") == Some(0.0) {
        test.invalid.push("nothing was sent".to_owned());
    }
    if let Some(time) = stats.text("start_time") {
        let ends = ["local_address", "remote_address"].map(|name| config.text(name).unwrap_or_default());
        test.identities.push(Identity {
            what: "addresses and time",
            name: format!("{time} {ends:?}"),
            at_s: None,
        });
    }
    test
}

/// The host of an end, without its port.
fn find_host<'a>(config: &'a Json, name: &str) -> Option<&'a str> {
    let end = config.text(name)?;
    let host = end.rsplit_once(':').map_or(end, |(host, _)| host);
    Some(host.trim_start_matches('[').trim_end_matches(']'))
}

/// Answers by the second in which their requests were scheduled.
fn series(round_trips: &[Json], interval_ns: f64, size: Option<u32>) -> Option<ToolSeries> {
    const SECOND_NS: u64 = 1_000_000_000;
    let mut rows: Vec<(IntervalRow, f64)> = Vec::new();
    for one in round_trips {
        let second = one.count("seqno")? * interval_ns / SECOND_NS as f64;
        if second >= MAX_ROWS as f64 {
            return None;
        }
        while rows.len() <= second as usize {
            let start_ns = rows.len() as u64 * SECOND_NS;
            rows.push((IntervalRow { start_ns, messages: 0, bytes: 0, delay_mean_ns: None }, 0.0));
        }
        if let Some(rtt) = one["delay"].count("rtt") {
            let (row, sum) = &mut rows[second as usize];
            row.messages += 1;
            row.bytes += u64::from(size?);
            *sum += rtt;
            row.delay_mean_ns = Some(*sum / row.messages as f64);
        }
    }
    let rows: Vec<IntervalRow> = rows.into_iter().map(|(row, _)| row).collect();
    (rows.len() > 1).then_some(ToolSeries { role: Role::Sender, rows })
}
