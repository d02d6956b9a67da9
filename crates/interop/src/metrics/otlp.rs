//! OTLP, the protocol of OpenTelemetry, in its JSON form over HTTP (opentelemetry-proto, `metrics_service.proto`).

use crate::metrics::gauge::{Gauge, Labels};
use serde_json::{Value, json};

/// Its content type.
pub const OTLP_CONTENT_TYPE: &str = "application/json";
/// Where collectors take metrics, below their address.
pub const OTLP_METRICS_PATH: &str = "/v1/metrics";
/// Data points of a request, at most: some 2 MB. Collectors refuse bodies of 20 MiB and more.
const MOST_POINTS: usize = 5000;

/// Which program tells the figures, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its version: `service.version`.
    pub version: String,
    /// The name of its machine: `host.name`, and `service.instance.id`, by which collectors tell instances apart.
    pub host: String,
}

/// Gauges as requests (`ExportMetricsServiceRequest`), each with a part of them, at this time, nanoseconds since 1970.
/// Names, and labels as attributes, are those that Prometheus reads. Without samples there is no request.
pub fn requests(gauges: &[Gauge], resource: &Resource, unix_ns: u64) -> impl Iterator<Item = String> {
    let samples: Vec<_> =
        gauges.iter().flat_map(|gauge| gauge.samples.iter().map(move |sample| (gauge, sample))).collect();
    (0..samples.len()).step_by(MOST_POINTS).map(move |from| {
        let some = &samples[from..samples.len().min(from + MOST_POINTS)];
        let metrics = some.chunk_by(|one, next| one.0.name == next.0.name).map(|of_gauge| {
            let points = of_gauge.iter().map(|(_, (labels, value))| point(labels, *value, unix_ns));
            let gauge = of_gauge[0].0;
            json!({
                "name": gauge.name,
                "description": gauge.help,
                "gauge": { "dataPoints": points.collect::<Vec<_>>() },
            })
        });
        let attributes = [
            ("service.name", "stacklab"),
            ("service.version", &resource.version),
            ("service.instance.id", &resource.host),
            ("host.name", &resource.host),
        ];
        let scope = json!({ "name": "stacklab", "version": resource.version });
        let request = json!({
            "resourceMetrics": [{
                "resource": { "attributes": attributes.map(|(key, value)| attribute(key, value)) },
                "scopeMetrics": [{ "scope": scope, "metrics": metrics.collect::<Vec<_>>() }],
            }],
        });
        request.to_string()
    })
}

fn point(labels: &Labels, value: f64, unix_ns: u64) -> Value {
    let attributes: Vec<Value> = labels.iter().map(|(key, value)| attribute(key, value)).collect();
    // Integers of 64 bits are texts in JSON.
    json!({ "attributes": attributes, "timeUnixNano": unix_ns.to_string(), "asDouble": number(value) })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// As JSON of protocol buffers has it: what JSON has no number for is a text.
fn number(value: f64) -> Value {
    match value {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        value if value.is_nan() => json!("NaN"),
        value => json!(value),
    }
}

/// What a collector that took a request says of it (`ExportMetricsServiceResponse`): `None` if it took all, else how
/// many data points it refused, and why. An answer without content, or in another form, says nothing.
pub fn refused_points(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let refused = partial.get("rejectedDataPoints")?;
    let count = refused.as_u64().or_else(|| refused.as_str()?.parse().ok()).filter(|count| *count > 0)?;
    let reason = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    Some((count, reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource() -> Resource {
        Resource { version: "1.2".to_owned(), host: "probe7".to_owned() }
    }

    fn gauge(name: &'static str, values: &[f64]) -> Gauge {
        let label = |place: usize| vec![("family", format!("level \"{place}\""))];
        let samples = values.iter().enumerate().map(|(place, value)| (label(place), *value)).collect();
        Gauge { name, help: "A help.", samples }
    }

    fn read(gauges: &[Gauge]) -> Vec<Value> {
        let unix_ns = 1_795_536_000_123_456_789;
        requests(gauges, &resource(), unix_ns).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    #[test]
    fn a_request_has_the_fields_of_the_protocol() {
        let found = read(&[gauge("stacklab_none", &[]), gauge("stacklab_x", &[1.5, f64::INFINITY])]);
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let point = |place: usize, value: Value| {
            json!({
                "attributes": [text("family", &format!("level \"{place}\""))],
                "timeUnixNano": "1795536000123456789",
                "asDouble": value,
            })
        };
        let expected = json!({"resourceMetrics": [{
            "resource": {"attributes": [
                text("service.name", "stacklab"),
                text("service.version", "1.2"),
                text("service.instance.id", "probe7"),
                text("host.name", "probe7"),
            ]},
            "scopeMetrics": [{
                "scope": {"name": "stacklab", "version": "1.2"},
                "metrics": [{
                    "name": "stacklab_x",
                    "description": "A help.",
                    "gauge": {"dataPoints": [point(0, json!(1.5)), point(1, json!("Infinity"))]},
                }],
            }],
        }]});
        assert_eq!(found, [expected]);
        assert_eq!(read(&[gauge("stacklab_none", &[])]), [Value::Null; 0]);
    }

    #[test]
    fn many_data_points_are_several_requests_with_each_of_them_once() {
        let many: Vec<f64> = (0..MOST_POINTS + 7).map(|place| place as f64).collect();
        let mut values = Vec::new();
        for request in read(&[gauge("stacklab_a", &many), gauge("stacklab_b", &[0.5])]) {
            let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
            let points: Vec<&Value> =
                metrics.iter().flat_map(|metric| metric["gauge"]["dataPoints"].as_array().unwrap()).collect();
            assert!(points.len() <= MOST_POINTS);
            values.extend(points.iter().map(|point| point["asDouble"].as_f64().unwrap()));
        }
        assert_eq!(values, [many, vec![0.5]].concat());
    }

    #[test]
    fn what_a_collector_refuses_is_told_however_it_writes_the_number() {
        let refused = |text: &str| refused_points(text.as_bytes());
        let of = |count: &str| {
            format!(r#"{{"partialSuccess": {{"rejectedDataPoints": {count}, "errorMessage": "too old"}}}}"#)
        };
        assert_eq!(refused(&of("\"3\"")), Some((3, "too old".to_owned())));
        assert_eq!(refused(&of("3")), Some((3, "too old".to_owned())));
        for taken in ["", "{}", "ok", "[]", r#"{"partialSuccess": {}}"#, &of("0"), &of("\"0\""), &of("-1")] {
            assert_eq!(refused(taken), None, "{taken}");
        }
    }
}
