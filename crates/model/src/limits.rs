//! Limits on what others wrote: whole numbers, text, and the trials that a coordinator requests.

use crate::{HEADER_BYTES, Length, MAX_CLIENTS, MAX_ROUTES, Metric, Pacing, Transport, TrialSpec};

const MAX_MESSAGE_LENGTH: u32 = 16 << 20;
/// Longest datagram, bytes: what the length fields of UDP and IP leave.
const MAX_DATAGRAM_LENGTH: u32 = 65_535;
/// Maximum number of flows, and of bytes of one message of each.
const MAX_FLOWS: u32 = 10_000;
const MAX_FLOW_BYTES: u64 = 2 << 30;
/// Messages per second that a trial may have.
pub const POSSIBLE_RATES: std::ops::RangeInclusive<f64> = 0.001..=1e9;
/// Longest measured part and warm-up, and the most messages of a trial.
const MAX_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;
const MAX_WARMUP_NS: u64 = 3600 * 1_000_000_000;
const MAX_MESSAGES: u64 = 1_000_000_000_000;
/// The longest measured part whose messages short headers can number: with 12 million messages per second.
const MAX_SHORT_HEADERS_NS: u64 = 24 * 3600 * 1_000_000_000;
const MAX_POLL_NS: u64 = 1_000_000_000;
const SLICES_NS: std::ops::RangeInclusive<u64> = 100_000..=60_000_000_000;
/// How far clocks may be apart: a century.
const MAX_OFFSET_NS: u64 = 100 * 366 * 24 * 3600 * 1_000_000_000;

impl TrialSpec {
    /// Checks that a trial can be run, and needs no more than bounded memory, time and threads of an agent.
    pub fn check(&self) -> Result<(), String> {
        let TrialSpec {
            transport,
            message_bytes,
            flows,
            poll_ns,
            clock_offset_ns,
            schedule,
            ref uplinks,
            destinations,
            ref probe,
            ..
        } = *self;
        let longest = if transport == Transport::Udp { MAX_DATAGRAM_LENGTH } else { MAX_MESSAGE_LENGTH };
        let least = TrialSpec::min_message_bytes(probe.probe, transport);
        bounds("message_bytes", u64::from(message_bytes), u64::from(least)..=u64::from(longest))?;
        bounds("flows", u64::from(flows), 1..=u64::from(MAX_FLOWS))?;
        bounds("flows x message_bytes", u64::from(flows) * u64::from(message_bytes), 0..=MAX_FLOW_BYTES)?;
        bounds("uplinks", uplinks.len() as u64, 0..=u64::from(MAX_CLIENTS.min(flows)))?;
        let can_spread =
            transport == Transport::Udp && flows == 1 && probe.probe.spreads() && self.io != crate::Io::Gso;
        let most = if can_spread { MAX_ROUTES } else { 1 };
        bounds("destinations", destinations.into(), 1..=u64::from(most))?;
        bounds("poll_ns", poll_ns, 0..=MAX_POLL_NS)?;
        bounds("clock_offset_ns", clock_offset_ns.unsigned_abs(), 0..=MAX_OFFSET_NS)?;
        bounds("warmup_ns", probe.warmup_ns, 0..=MAX_WARMUP_NS)?;
        bounds("metrics", probe.metrics.len() as u64, 0..=Metric::ALL.len() as u64)?;
        let has_short_header = message_bytes < HEADER_BYTES;
        match probe.length {
            Length::Time(ns) if has_short_header => {
                bounds("length, nanoseconds", ns, 1..=MAX_SHORT_HEADERS_NS)?
            }
            Length::Time(ns) => bounds("length, nanoseconds", ns, 1..=MAX_NS)?,
            Length::Packets(messages) => bounds("length, messages", messages, 1..=MAX_MESSAGES)?,
        }
        bounds("interval_ns", probe.interval_ns, 1..=MAX_NS)?;
        match probe.pacing {
            Pacing::Flood | Pacing::Lockstep => {}
            Pacing::Schedule(per_second) | Pacing::Shifted(per_second)
                if POSSIBLE_RATES.contains(&per_second) => {}
            Pacing::Stepped(step)
                if [step.first, step.second].iter().all(|load| POSSIBLE_RATES.contains(load)) => {}
            Pacing::Share(share) if share > 0.0 && share <= 1.0 => {}
            Pacing::Schedule(_)
            | Pacing::Shifted(_)
            | Pacing::Stepped(_)
            | Pacing::Share(_)
            | Pacing::Link
            | Pacing::Search(_)
            | Pacing::Searched => {
                return Err(format!("refused a trial with pacing at {}", probe.pacing));
            }
        }
        if let Some(slice_ns) = schedule.slice_ns() {
            bounds("slice_ns", slice_ns, SLICES_NS)?;
        }
        Ok(())
    }
}

fn bounds(what: &str, found: u64, allowed: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    if allowed.contains(&found) {
        return Ok(());
    }
    let (least, most) = allowed.into_inner();
    Err(format!("refused a trial with {what} = {found}: {least} to {most} are possible"))
}

/// The largest whole number of an answer or a record: 31 years of nanoseconds. Sums and differences of several such
/// numbers do not overflow 64 bits.
pub const MAX_NUMBER: u64 = 999_999_999_999_999_999;

/// Whether a figure is a number below 10^18 and above -10^18: not NaN, nor infinite.
pub fn is_in_bounds(figure: f64) -> bool {
    figure.abs() < MAX_NUMBER as f64
}

/// The first number in JSON text that is larger than [`MAX_NUMBER`], or as far below zero, without its sign. Digits
/// in strings do not count.
pub fn too_large(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let mut at = 0;
    let mut in_string = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'0'..=b'9' if !in_string => {
                let number = &json[at..];
                let end = number.find(|c: char| !is_of_number(c)).unwrap_or(number.len());
                let number = &number[..end];
                let is_float = number.contains(['.', 'e', 'E']);
                let is_small = match is_float {
                    true => number.parse().is_ok_and(is_in_bounds),
                    false => number.parse().is_ok_and(|number: u64| number <= MAX_NUMBER),
                };
                if !is_small {
                    return Some(number);
                }
                at += number.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-')
}

/// The sum of counts that somebody else says: the largest number, if it is larger than that.
pub fn add_up(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Whether a character commands a terminal, ends a line or a paragraph, or changes the direction of the text around it
/// (Unicode's property Bidi_Control): a name or a reason that has it is shown as another one than it is.
pub fn is_control(c: char) -> bool {
    let changes_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || changes_direction || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text with U+FFFD for control characters ([`is_control`]).
pub fn printable_text(text: &str) -> String {
    text.replace(is_control, "\u{fffd}")
}

/// The same, but for the ends of lines.
pub fn printable_lines(text: &str) -> String {
    text.replace(|c: char| is_control(c) && c != '\n', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArmSchedule, Cell, Family, Probe, ProbeSpec, SizeOf};

    fn spec(transport: Transport) -> TrialSpec {
        let probe = ProbeSpec {
            probe: Probe::Stream,
            pacing: Pacing::Flood,
            length: Length::Time(1_000_000_000),
            warmup_ns: 0,
            interval_ns: 1_000_000,
            metrics: vec![Metric::Throughput],
        };
        TrialSpec::new(1, &Cell::new(Family::Ipv4, transport, SizeOf::Payload, 128), probe)
    }

    /// Checks that a change of either transport's specification is refused, with this part of the reason.
    fn check_refusal(change: impl Fn(&mut TrialSpec), part: &str) {
        for transport in [Transport::Udp, Transport::Tcp] {
            let mut spec = spec(transport);
            change(&mut spec);
            let reason = spec.check().unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn spec_that_exhausts_an_agent_is_refused_with_bounds() {
        assert_eq!(spec(Transport::Udp).check(), Ok(()));
        assert_eq!(spec(Transport::Tcp).check(), Ok(()));
        check_refusal(|spec| spec.message_bytes = 50_000_000, "message_bytes = 50000000: ");
        check_refusal(|spec| spec.message_bytes = 0, "message_bytes = 0");
        check_refusal(|spec| spec.message_bytes = 17, "message_bytes = 17");
        let small = TrialSpec { message_bytes: 31, ..spec(Transport::Tcp) };
        assert!(small.check().unwrap_err().contains("message_bytes = 31: 32 to"));
        check_refusal(|spec| spec.flows = 0, "flows = 0: 1 to 10000");
        check_refusal(|spec| spec.flows = 400_000, "flows = 400000");
        check_refusal(|spec| spec.flows = u32::MAX, "flows = 4294967295");
        check_refusal(|spec| spec.poll_ns = 1 << 63, "poll_ns");
        check_refusal(|spec| spec.clock_offset_ns = i64::MIN, "clock_offset_ns");
        check_refusal(|spec| spec.probe.warmup_ns = u64::MAX, "warmup_ns");
        check_refusal(|spec| spec.probe.length = Length::Time(u64::MAX), "length");
        check_refusal(|spec| spec.probe.length = Length::Packets(u64::MAX), "length");
        check_refusal(|spec| spec.probe.interval_ns = 0, "interval_ns = 0");
        check_refusal(|spec| spec.probe.metrics = vec![Metric::Loss; 1000], "metrics = 1000");
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            check_refusal(|spec| spec.probe.pacing = Pacing::Schedule(rate), "pacing at");
        }
        check_refusal(|spec| spec.probe.pacing = Pacing::Share(2.0), "pacing at 200 %");
        let mut wide = spec(Transport::Tcp);
        (wide.flows, wide.message_bytes) = (10_000, 1 << 20);
        assert!(wide.check().unwrap_err().contains("flows x message_bytes = 10485760000"));
        wide.message_bytes = 128 << 10;
        assert_eq!(wide.check(), Ok(()), "what `measure tcp -P 10000` asks for");
        check_refusal(|spec| spec.schedule = ArmSchedule::TokenPassing(Some(1)), "slice_ns = 1");
    }

    #[test]
    fn small_datagrams_are_of_one_direction() {
        let small = TrialSpec { message_bytes: 18, ..spec(Transport::Udp) };
        assert_eq!(small.check(), Ok(()));
        let mut echo = small.clone();
        echo.probe.probe = Probe::Echo;
        assert!(echo.check().unwrap_err().contains("message_bytes = 18: 32 to"));
        let mut long = small;
        long.probe.length = Length::Time(MAX_SHORT_HEADERS_NS + 1);
        assert!(long.check().unwrap_err().contains("length, nanoseconds"));
        long.message_bytes = HEADER_BYTES;
        assert_eq!(long.check(), Ok(()));
    }

    #[test]
    fn numbers_are_bounded_and_nothing_else_is() {
        let most = u64::MAX.to_string();
        for (json, found) in [
            (r#"{"a":999999999999999999,"b":[-999999999999999999,0]}"#.to_owned(), None),
            (r#"{"a":1000000000000000000}"#.to_owned(), Some("1000000000000000000")),
            (format!("[1,[2,{most}]]"), Some(most.as_str())),
            ("-9223372036854775808".to_owned(), Some("9223372036854775808")),
            ("1".repeat(100), Some(&*"1".repeat(100))),
            (format!(r#"{{"{most}":"\"{most}\\","b":1}}"#), None),
            (format!("[0.{most},-0.5,1.5e-400,9.9e17,-9.9E+17,1e-7,0e9]"), None),
            (format!("[{most}.5]"), Some(&*format!("{most}.5"))),
            (r#"{"mean_ns":1e308}"#.to_owned(), Some("1e308")),
            ("[-1e18]".to_owned(), Some("1e18")),
            ("[1E+400]".to_owned(), Some("1E+400")),
            (String::new(), None),
        ] {
            assert_eq!(too_large(&json), found, "{json}");
        }
    }

    #[test]
    fn control_characters_are_replaced_also_of_direction() {
        for c in
            ['\u{1b}', '\r', '\u{9b}', '\u{61c}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            let text = format!("a{c}b\n");
            assert_eq!(printable_lines(&text), "a\u{fffd}b\n", "{c:?}");
            assert_eq!(printable_text(&text), "a\u{fffd}b\u{fffd}", "{c:?}");
        }
        let words = "größe, \u{5e9}\u{5dc}\u{5d5}\u{5dd}, 1\u{2009}ms \u{2013} \u{1f600}";
        assert_eq!(printable_text(words), words);
    }

    #[test]
    fn a_figure_is_a_number_within_bounds() {
        assert!([0.0, -0.5, 9.9e17, -9.9e17].into_iter().all(is_in_bounds));
        for figure in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e18, -1e18, 1e308] {
            assert!(!is_in_bounds(figure), "{figure}");
        }
    }

    #[test]
    fn control_characters_and_stray_newlines_are_replaced() {
        let text = "a\u{1b}]0;b\u{9b}\r\nc";
        assert_eq!(printable_text(text), "a\u{fffd}]0;b\u{fffd}\u{fffd}\u{fffd}c");
        assert_eq!(printable_lines(text), "a\u{fffd}]0;b\u{fffd}\u{fffd}\nc");
    }
}
