//! Bounds of whole numbers that others wrote: agents' answers, and records.

/// The largest whole number that an answer or a record may have. As nanoseconds it is 31 years. Sums and differences of
/// several such numbers do not overflow 64 bits.
pub const LARGEST_NUMBER: u64 = 999_999_999_999_999_999;

/// The first whole number in JSON text that is larger than [`LARGEST_NUMBER`], or as far below zero. Digits in strings
/// and after a decimal point do not count, nor does a number with a decimal point or an exponent: it is read as a
/// float.
pub fn too_large(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'0'..=b'9' if !in_string => {
                let number = &json[at..];
                let digits = &number[..number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len())];
                let is_float = number[digits.len()..].starts_with(['.', 'e', 'E'])
                    || at > 0 && matches!(bytes[at - 1], b'.' | b'e' | b'E' | b'+');
                if !is_float && !digits.parse().is_ok_and(|number: u64| number <= LARGEST_NUMBER) {
                    return Some(digits);
                }
                at += digits.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_bounded_and_nothing_else_is() {
        let most = u64::MAX.to_string();
        for (json, found) in [
            (r#"{"a":999999999999999999,"b":[-999999999999999999,0]}"#.to_owned(), None),
            (r#"{"a":1000000000000000000}"#.to_owned(), Some("1000000000000000000")),
            (format!("[1,[2,{most}]]"), Some(most.as_str())),
            ("-9223372036854775808".to_owned(), Some("9223372036854775808")),
            ("1".repeat(100), Some(&*"1".repeat(100))),
            (format!(r#"{{"{most}":"\"{most}\\","b":1}}"#), None),
            (format!("[0.{most},{most}.5,1e{most},1E+{most},{most}e3]"), None),
            (String::new(), None),
        ] {
            assert_eq!(too_large(&json), found, "{json}");
        }
    }
}
