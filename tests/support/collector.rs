//! A collector of OpenTelemetry: takes what it is given by OTLP over HTTP, and holds it to the rules of OTLP's JSON.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The messages of opentelemetry-proto that gauges need, with the names of their fields in JSON and what these are: a
/// message, `*` for a list of it; or a text, a double, or a number of 64 bits, which is a text.
const MESSAGES: [(&str, &[(&str, &str)]); 9] = [
    ("ExportMetricsServiceRequest", &[("resourceMetrics", "*ResourceMetrics")]),
    (
        "ResourceMetrics",
        &[("resource", "Resource"), ("scopeMetrics", "*ScopeMetrics"), ("schemaUrl", "text")],
    ),
    ("Resource", &[("attributes", "*KeyValue")]),
    ("ScopeMetrics", &[("scope", "Scope"), ("metrics", "*Metric"), ("schemaUrl", "text")]),
    ("Scope", &[("name", "text"), ("version", "text"), ("attributes", "*KeyValue")]),
    ("Metric", &[("name", "text"), ("description", "text"), ("unit", "text"), ("gauge", "Gauge")]),
    ("Gauge", &[("dataPoints", "*Point")]),
    ("Point", &[("attributes", "*KeyValue"), ("timeUnixNano", "long"), ("asDouble", "double")]),
    ("KeyValue", &[("key", "text"), ("value", "AnyValue")]),
];

/// A collector, until the test ends.
pub(crate) struct Collector {
    pub address: SocketAddr,
    given: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// Takes what comes there.
    pub(crate) fn on(listener: TcpListener) -> Self {
        let collector = Collector { address: listener.local_addr().unwrap(), given: Arc::default() };
        let given = Arc::clone(&collector.given);
        thread::spawn(move || {
            for stream in listener.incoming() {
                given.lock().unwrap().push(take(stream.unwrap()));
            }
        });
        collector
    }

    /// The data points of a gauge in all requests so far, once it has some: attributes and value.
    pub(crate) fn points(&self, gauge: &str, limit: Duration) -> Vec<(BTreeMap<String, String>, f64)> {
        let begun = Instant::now();
        loop {
            let found: Vec<_> =
                self.given.lock().unwrap().iter().flat_map(|given| points(given, gauge)).collect();
            if !found.is_empty() {
                return found;
            }
            assert!(begun.elapsed() < limit, "{gauge} was not given: {:?}", self.given.lock().unwrap());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Reads a request and takes it.
fn take(mut stream: TcpStream) -> Value {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_lowercase().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} {head}")).split_once(": ").unwrap().1
    };
    assert_eq!(header("content-type:"), "application/json");
    let mut body = vec![0; header("content-length:").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap();
    check(&request, "ExportMetricsServiceRequest");
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}").unwrap();
    request
}

/// Whether a value is a message of its kind.
fn check(value: &Value, kind: &str) {
    match kind {
        "text" => assert!(value.is_string(), "{value}"),
        "AnyValue" => {
            assert!(value.as_object().unwrap().len() == 1 && value["stringValue"].is_string(), "{value}")
        }
        "long" => {
            let ns: u64 = value.as_str().unwrap_or_else(|| panic!("{value}")).parse().unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
            assert!(now.abs_diff(ns) < 60_000_000_000, "{ns} is not now, {now}");
        }
        "double" => {
            let odd = ["NaN", "Infinity", "-Infinity"].map(Value::from);
            assert!(value.is_number() || odd.contains(value), "{value}");
        }
        _ => {
            let fields = MESSAGES.iter().find(|(name, _)| *name == kind).unwrap().1;
            let message: &Map<String, Value> = value.as_object().unwrap_or_else(|| panic!("{kind} {value}"));
            for (name, value) in message {
                let field = fields.iter().find(|(known, _)| known == name);
                let (_, of) = field.unwrap_or_else(|| panic!("{kind} has no field {name}"));
                match of.strip_prefix('*') {
                    Some(of) => value.as_array().unwrap().iter().for_each(|one| check(one, of)),
                    None => check(value, of),
                }
            }
        }
    }
}

fn points(request: &Value, gauge: &str) -> Vec<(BTreeMap<String, String>, f64)> {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let metrics = list(&request["resourceMetrics"])
        .into_iter()
        .flat_map(|resource| list(&resource["scopeMetrics"]))
        .flat_map(|scope| list(&scope["metrics"]));
    let points = metrics
        .filter(|metric| metric["name"] == gauge)
        .flat_map(|metric| list(&metric["gauge"]["dataPoints"]));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    points
        .map(|point| {
            let attributes = list(&point["attributes"]);
            let pairs: BTreeMap<String, String> = attributes
                .iter()
                .map(|pair| (text(&pair["key"]), text(&pair["value"]["stringValue"])))
                .collect();
            assert_eq!(pairs.len(), attributes.len(), "a key is there twice: {point}");
            (pairs, point["asDouble"].as_f64().unwrap_or(f64::INFINITY))
        })
        .collect()
}
