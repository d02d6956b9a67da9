//! Results of iperf3, as JSON and as text.

mod json;
mod text;

pub(super) use json::read as read_json;
pub(super) use text::{is_text, read as read_text};
