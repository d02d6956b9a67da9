//! Fields of JSON objects as iperf3 writes them: any number may be missing, have a fraction or be negative.

use serde_json::{Map, Value};

/// Larger counts are nobody's: sums of them would overflow.
const LARGEST: f64 = 1e18;
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
            Some(number) if number.abs() <= LARGEST => Ok(Some(number)),
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
