//! The text format of Prometheus, version 0.0.4.

use crate::metrics::gauge::Gauge;
use std::fmt::Write;

/// Its content type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Gauges as text. Those without samples are left out.
pub fn exposition(gauges: &[Gauge]) -> String {
    let mut text = String::new();
    for Gauge { name, help, samples } in gauges.iter().filter(|gauge| !gauge.samples.is_empty()) {
        let _ = writeln!(text, "# HELP {name} {}", help.replace('\\', "\\\\").replace('\n', "\\n"));
        let _ = writeln!(text, "# TYPE {name} gauge");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let _ = writeln!(text, "{name}{{{}}} {}", labels.join(","), number(*value));
        }
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value if value.is_nan() => "NaN".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_empty_gauges_left_out() {
        let gauge = |name, samples| Gauge { name, help: "A help.", samples };
        let odd = vec![("target", "a\"b\\c\nd".to_owned()), ("family", "ipv6".to_owned())];
        let text = exposition(&[
            gauge("stacklab_none", Vec::new()),
            gauge("stacklab_x", vec![(odd, 1.5), (Vec::new(), f64::INFINITY)]),
        ]);
        let expected = "# HELP stacklab_x A help.\n# TYPE stacklab_x gauge\n\
            stacklab_x{target=\"a\\\"b\\\\c\\nd\",family=\"ipv6\"} 1.5\nstacklab_x{} +Inf\n";
        assert_eq!(text, expected);
    }
}
