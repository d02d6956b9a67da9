//! Results of iperf 2.

mod csv;
mod text;

pub(crate) use csv::{is_csv_time, read_csv};
pub(crate) use text::read_text;
