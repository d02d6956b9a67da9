//! JSON objects as iperf3 writes them, and the results of one side, which both send when a test has ended.
//!
//! Any number may be missing, have a fraction or be negative.

use crate::iperf3::{MAX_STREAMS, stream_id};
use serde_json::{Map, Value, json};

/// Larger counts are nobody's: sums of them would overflow.
const MAX_COUNT: f64 = 1e18;
/// -1 as a number of 64 bits without a sign.
const UNSIGNED_MINUS_ONE: f64 = u64::MAX as f64;

/// An object, or the reason why it is none.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// A count; `None` if it is missing or negative, as iperf3 writes what it does not know: -1, or that without a sign.
pub(super) fn count(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    if fields.get(name).and_then(Value::as_f64) == Some(UNSIGNED_MINUS_ONE) {
        return Ok(None);
    }
    Ok(number(fields, name)?.filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// A count of at most 32 bits.
pub(super) fn small(fields: &Map<String, Value>, name: &str) -> Result<Option<u32>, String> {
    let Some(count) = count(fields, name)? else { return Ok(None) };
    u32::try_from(count).map(Some).map_err(|_| format!("{name} is {count}, which is too large"))
}

pub(super) fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(number) if number.abs() <= MAX_COUNT => Ok(Some(number)),
            _ => Err(format!("{name} is {number}, which is too large")),
        },
        Some(Value::Bool(on)) => Ok(Some(f64::from(u8::from(*on)))),
        Some(_) => Err(format!("{name} is not a number")),
    }
}

/// Whether a field is set: true, or a number that is not 0.
pub(super) fn is_set(fields: &Map<String, Value>, name: &str) -> Result<bool, String> {
    Ok(number(fields, name)?.is_some_and(|number| number != 0.0))
}

pub(super) fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// What one side counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    pub(crate) congestion_used: Option<String>,
    pub(crate) server_output: Option<String>,
    /// In the order of their numbers.
    pub(crate) streams: Vec<StreamResult>,
}

/// What one side counted of one stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StreamResult {
    /// [`stream_id`]
    pub id: u64,
    /// Sent or received, without the omitted part.
    pub bytes: u64,
    /// If it sent and knows.
    pub retransmits: Option<u64>,
    /// RFC 3550
    pub jitter_s: f64,
    /// Datagrams that it takes for lost, with the omitted part.
    pub errors: u64,
    /// Those of the omitted part.
    pub omitted_errors: u64,
    /// The highest number of a datagram, with the omitted part.
    pub packets: u64,
    /// The same at the end of the omitted part.
    pub omitted_packets: u64,
    /// Seconds in which it counted.
    pub seconds: f64,
}

impl StreamResult {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(json!(-1), |number| json!(number)),
            "jitter": self.jitter_s,
            "errors": self.errors,
            "omitted_errors": self.omitted_errors,
            "packets": self.packets,
            "omitted_packets": self.omitted_packets,
            "start_time": 0,
            "end_time": self.seconds,
        })
    }
}

impl Results {
    /// Reads results.
    pub fn parse(json: &str) -> Result<Self, String> {
        let fields = object(json)?;
        let Some(Value::Array(items)) = fields.get("streams") else {
            return Err("it has no streams".to_owned());
        };
        if items.len() > 2 * MAX_STREAMS as usize {
            return Err(format!("it has {} streams", items.len()));
        }
        let mut streams = Vec::new();
        for item in items {
            let Value::Object(stream) = item else { return Err("a stream is not a JSON object".to_owned()) };
            let id = count(stream, "id")?.ok_or_else(|| "a stream has no number".to_owned())?;
            let bytes = count(stream, "bytes")?.ok_or_else(|| format!("stream {id} has no bytes"))?;
            streams.push(StreamResult {
                id,
                bytes,
                retransmits: count(stream, "retransmits")?,
                jitter_s: number(stream, "jitter")?.unwrap_or(0.0).max(0.0),
                errors: count(stream, "errors")?.unwrap_or(0),
                omitted_errors: count(stream, "omitted_errors")?.unwrap_or(0),
                packets: count(stream, "packets")?.unwrap_or(0),
                omitted_packets: count(stream, "omitted_packets")?.unwrap_or(0),
                seconds: (number(stream, "end_time")?.unwrap_or(0.0)
                    - number(stream, "start_time")?.unwrap_or(0.0))
                .max(0.0),
            });
        }
        Ok(Results {
            congestion_used: text(&fields, "congestion_used"),
            server_output: text(&fields, "server_output_text"),
            streams,
        })
    }

    /// The result of the stream at a place of the test, if there is one.
    pub(crate) fn of_place(&self, place: usize) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == stream_id(place))
    }

    /// As both sides send them.
    pub fn to_json(&self) -> String {
        let streams: Vec<Value> = self.streams.iter().map(StreamResult::to_json).collect();
        let retransmits = self.streams.iter().any(|stream| stream.retransmits.is_some());
        let mut fields = json!({
            // Clients want these.
            "cpu_util_total": 0,
            "cpu_util_user": 0,
            "cpu_util_system": 0,
            "sender_has_retransmits": if retransmits { 1 } else { -1 },
            "streams": streams,
        });
        if let Some(name) = &self.congestion_used {
            fields["congestion_used"] = name.clone().into();
        }
        if let Some(output) = &self.server_output {
            fields["server_output_text"] = output.clone().into();
        }
        fields.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_sends_is_read() {
        // By iperf 3.12, a server that received two streams of UDP.
        let text = r#"{"cpu_util_total":1.5,"cpu_util_user":0.5,"cpu_util_system":1,"sender_has_retransmits":-1,
            "streams":[{"id":1,"bytes":1249000,"retransmits":-1,"jitter":3.4e-06,"errors":1,"omitted_errors":0,
            "packets":1250,"omitted_packets":0,"start_time":0,"end_time":1.000235},
            {"id":3,"bytes":1250000,"retransmits":18446744073709551615,"jitter":1e-06,"errors":0,"packets":1250,
            "start_time":0,"end_time":1.000235}]}"#;
        let read = Results::parse(text).unwrap();
        let first = read.of_place(0).unwrap();
        assert_eq!((first.bytes, first.retransmits, first.errors, first.packets), (1_249_000, None, 1, 1250));
        assert_eq!((first.jitter_s, first.seconds), (3.4e-6, 1.000_235));
        let second = read.of_place(1).unwrap();
        assert_eq!((second.bytes, second.retransmits), (1_250_000, None));
        assert_eq!(read.of_place(2), None);
        assert_eq!(Results::parse(&read.to_json()), Ok(read));
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for (text, word) in [
            ("{}", "streams"),
            (r#"{"streams":[1]}"#, "object"),
            (r#"{"streams":[{"bytes":1}]}"#, "number"),
            (r#"{"streams":[{"id":1}]}"#, "bytes"),
            (r#"{"streams":[{"id":1,"bytes":1e19}]}"#, "too large"),
            (r#"{"streams":[{"id":1,"bytes":"many"}]}"#, "not a number"),
        ] {
            let refused = Results::parse(text).unwrap_err();
            assert!(refused.contains(word), "{text}: {refused}");
        }
        let many = vec![json!({"id": 1, "bytes": 1}); 257];
        assert!(Results::parse(&json!({ "streams": many }).to_string()).is_err());
    }
}
