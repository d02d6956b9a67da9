//! Delay figures.

use stacklab_model::{Delays, Value};

/// Converts nanoseconds to milliseconds.
pub(super) fn milliseconds(nanoseconds: Option<f64>) -> Value {
    match nanoseconds {
        Some(nanoseconds) => Value::finite(nanoseconds / 1e6, "no delay was measured"),
        None => Value::Missing("too few messages arrived".to_owned()),
    }
}

/// Packet delay variation: 99.9th percentile minus minimum (RFC 5481), if there are enough messages for the percentile.
pub(super) fn variation(delays: &Option<Delays>) -> Value {
    let least = delays.as_ref().and_then(|delays| delays.buckets.percentile(0.0)).unwrap_or(0);
    match percentile(delays, 0.999) {
        Value::Measured(high) => Value::Measured(high - least as f64 / 1e6),
        missing => missing,
    }
}

/// A percentile of round trips. One whose answer never came counts as infinite (RFC 2681).
pub(super) fn of_answers(delays: &Option<Delays>, unanswered: u64, p: f64) -> Value {
    let Some(delays) = delays else { return milliseconds(None) };
    let answered = delays.buckets.count();
    let all = answered.saturating_add(unanswered);
    let rank = (p * all as f64).ceil().max(1.0);
    if let Some(few) = too_few(all, p) {
        return few;
    }
    if rank > answered as f64 {
        let percent = 100.0 * p;
        return Value::Missing(format!(
            "{unanswered} of {all} messages had no answer: percentile {percent} is infinite"
        ));
    }
    // Half a rank keeps rounding on this side.
    let of_answered = (rank - 0.5) / answered as f64;
    milliseconds(delays.buckets.percentile(of_answered).map(|nanoseconds| nanoseconds as f64))
}

/// A percentile of messages that all arrived.
pub(super) fn percentile(delays: &Option<Delays>, p: f64) -> Value {
    of_answers(delays, 0, p)
}

/// Too few messages for a percentile: at least one must lie above it.
fn too_few(messages: u64, p: f64) -> Option<Value> {
    let needed = (1.0 / (1.0 - p)).round() as u64;
    (messages < needed)
        .then(|| Value::Missing(format!("this percentile needs {needed} messages, {messages} arrived")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Buckets;

    fn delays(buckets: &[(u64, u64)]) -> Option<Delays> {
        let buckets = Buckets(buckets.to_vec());
        Some(Delays { buckets, mean_ns: 0.0, jitter_ns: None, jitter_rfc3550_ns: None })
    }

    #[test]
    fn a_message_without_an_answer_took_for_ever() {
        let some = delays(&[(1_000_000, 60), (2_000_000, 30)]);
        let median = |unanswered| of_answers(&some, unanswered, 0.5);
        assert_eq!(median(0), Value::Measured(1.0));
        // 45 of 90, 60 of 120, and 61 of 121.
        assert_eq!(median(30), Value::Measured(1.0));
        assert_eq!(median(31), Value::Measured(2.0));
        assert_eq!(median(90), Value::Measured(2.0));
        let infinite = median(91);
        assert!(matches!(&infinite, Value::Missing(reason) if reason.contains("91 of 181")), "{infinite:?}");
    }

    #[test]
    fn a_variation_needs_enough_messages_for_its_percentile() {
        assert!(matches!(variation(&delays(&[(1_000_000, 999)])), Value::Missing(_)));
        let enough = delays(&[(1_000_000, 998), (3_000_000, 2)]);
        assert_eq!(variation(&enough), Value::Measured(2.0));
    }
}
