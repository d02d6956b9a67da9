//! The messages of a fleet's peers, public for the fuzz targets (`fuzz/`) only.

use crate::message::{Answer, Request};
use crate::wire::nats_stream::piece;
use bytes::Bytes;

/// What an agent understands of a request, as it is written. The study of an order is checked as before it is measured.
pub fn request(line: &str) -> Option<String> {
    let request = Request::read(line).ok()?;
    if let Request::Measure(order) = &request
        && let Ok((study, plan)) = order.study.check()
    {
        plan.active(&study, plan.block(order.key.block), &[], &study.questions());
    }
    Some(format_json(&request))
}

/// What a coordinator understands of an answer, as it is written, and why it does not use an agent that gives it.
pub fn answer(line: &str) -> Option<(String, String)> {
    let answer = Answer::read(line).ok()?;
    let reason = match &answer {
        Answer::Presence(presence) => presence.unusable(0).unwrap_or_default(),
        _ => String::new(),
    };
    Some((format_json(&answer), reason))
}

/// What is read of the messages of a stream, until one is lost, repeated or the last.
pub fn stream(messages: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let pieces = messages.into_iter().zip(0..).map_while(|(message, number)| {
        piece(&Bytes::from(message), number).ok().filter(|data| !data.is_empty())
    });
    pieces.flatten().collect()
}

fn format_json(message: &impl serde::Serialize) -> String {
    serde_json::to_string(message).expect("a message is JSON")
}
