//! Streams of flent that are of one test, and series that are none.

use super::{TCP, V4, V6, file, is_missing, is_near, list_facts, one};
use serde_json::{Value as Json, json};
use stacklab_model::{Direction, Metric};

/// A file of flent over IPv6.
struct File(Json);

impl File {
    fn new() -> Self {
        let meta =
            json!({"IP_VERSION": 6, "LENGTH": 4, "LOCAL_HOST": "host1", "HOST": "h", "SERIES_META": {}});
        File(json!({"version": 4, "x_values": [0.0, 0.2, 0.4, 0.6], "metadata": meta, "results": {}}))
    }

    /// With a series that lasted 4 s, of a mean and four samples.
    fn series(mut self, name: &str, option: &str, mean: f64, samples: [Option<f64>; 4]) -> Self {
        self.0["results"][name] = json!(samples);
        self.0["metadata"]["SERIES_META"][name] = json!({
            "MEAN_VALUE": mean, "ELAPSED_TIME": 4.0, "RUNNER": "NetperfDemoRunner", "UNITS": "Mbits/s",
            "COMMAND": format!("/usr/bin/netperf -P 0 -D -0.20 {option} -H h -t TCP_STREAM -l 4"),
        });
        self
    }

    fn stream(self, name: &str, option: &str, mean: f64) -> Self {
        self.series(name, option, mean, [Some(mean); 4])
    }

    /// With another value of a series' metadata.
    fn meta(mut self, name: &str, key: &str, value: impl Into<Json>) -> Self {
        self.0["metadata"]["SERIES_META"][name][key] = value.into();
        self
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    /// Why the streams are left out.
    fn reason(&self) -> String {
        let found = file(self.text().as_bytes());
        assert!(found.content.is_empty(), "{found:?}");
        found.left_out[0].clone()
    }
}

#[test]
fn streams_of_both_families_are_left_out() {
    let both = File::new().stream("TCP upload BE", "-4", 10.0).stream("TCP upload EF", "-6", 10.0);
    let said = both.reason();
    assert!(said.starts_with("TCP upload BE and TCP upload EF are of different address families"), "{said}");
    // The tool's option counts more than the file's.
    let four = File::new().stream("TCP upload BE", "-4", 10.0).stream("TCP upload EF", "-4", 10.0);
    assert_eq!(list_facts(&one(four.text().as_bytes())), (V4, TCP, None, 2, Direction::Forward));
}

#[test]
fn runner_says_which_series_are_streams() {
    let prio = File::new()
        .stream("TCP upload", "-6", 10.0)
        .stream("TCP upload2", "-6", 20.0)
        .stream("TCP upload total", "-6", 30.0)
        .meta("TCP upload total", "RUNNER", "SumRunner");
    let test = one(prio.text().as_bytes());
    assert_eq!(list_facts(&test), (V6, TCP, None, 2, Direction::Forward));
    is_near(&test, Metric::Throughput, 30.0);
    // A stream may have the name of a sum.
    let named = prio.meta("TCP upload total", "RUNNER", "NetperfDemoRunner");
    is_near(&one(named.text().as_bytes()), Metric::Throughput, 60.0);
    for name in ["TCP flow", "TCP uploads"] {
        let strange = File::new().stream("TCP upload", "-6", 10.0).stream(name, "-6", 20.0);
        assert!(strange.reason().starts_with(&format!("{name} is not understood")));
    }
    let other = File::new().stream("TCP upload", "-6", 10.0).meta("TCP upload", "RUNNER", "NewRunner");
    assert!(other.reason().starts_with("TCP upload is not understood"));
}

#[test]
fn streams_at_different_times_are_left_out() {
    let short = File::new().stream("TCP upload::1", "-6", 7.5).stream("TCP upload::2", "-6", 5.0).meta(
        "TCP upload::2",
        "ELAPSED_TIME",
        2.0,
    );
    assert!(short.reason().contains("ran at different times"));
    let late = [None, None, Some(20.0), Some(20.0)];
    let begin = [Some(10.0), Some(10.0), None, None];
    let iterated =
        File::new().series("TCP download", "-6", 10.0, begin).series("TCP upload", "-6", 20.0, late);
    assert!(iterated.reason().contains("ran at different times"));
    let edges = [None, Some(20.0), Some(20.0), Some(20.0)];
    let one_test = File::new().stream("TCP download", "-6", 10.0).series("TCP upload", "-6", 20.0, edges);
    assert_eq!(one(one_test.text().as_bytes()).direction, Direction::Both);
}

#[test]
fn another_unit_of_a_stream_is_named() {
    let kilobits = File::new().stream("TCP upload", "-6", 10_000.0).meta("TCP upload", "UNITS", "Kbits/s");
    let test = one(kilobits.text().as_bytes());
    is_missing(&test, Metric::Throughput, "a stream is in `Kbits/s`, and only Mbits/s are read");
}

fn list_warnings(text: &str) -> Vec<String> {
    one(text.as_bytes()).warnings.into_iter().map(|warning| warning.code + ": " + &warning.text).collect()
}

#[test]
fn failed_runners_and_missing_samples_are_warned_of() {
    let text = r#"{"version": 4, "metadata": {"IP_VERSION": 6, "LENGTH": 4, "HOST": "h", "SERIES_META": {}},
        "x_values": [0, 1, 2, 3], "results": {"TCP upload": [10, null, null, null]}}"#;
    assert_eq!(
        list_warnings(text),
        ["tool_samples: TCP upload: its rate is the mean of 1 of 4 samples: the others have no figure"]
    );
    let own = text.replace(r#""SERIES_META": {}"#, r#""SERIES_META": {"TCP upload": {"MEAN_VALUE": 3}}"#);
    assert_eq!(list_warnings(&own), Vec::<String>::new());
    let failed = own.replace(r#""LENGTH": 4"#, r#""LENGTH": 4, "FAILED_RUNNERS": 2"#);
    assert_eq!(
        list_warnings(&failed),
        ["tool_runners: flent says that 2 of its runners failed: they gave no valid data"]
    );
}
