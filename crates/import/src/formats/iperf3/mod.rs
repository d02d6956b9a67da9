//! Results of iperf3, as JSON and as text.

mod json;
mod text;

pub(crate) use json::read as read_json;
pub(crate) use text::{is_text, read as read_text};
