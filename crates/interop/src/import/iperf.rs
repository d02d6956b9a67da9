//! Results of iperf 2.

mod csv;
mod text;

pub(super) use csv::{is_csv_time, read_csv};
pub(super) use text::read_text;
