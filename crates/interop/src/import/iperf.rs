//! Results of iperf 2.

mod csv;
mod text;

pub use csv::{is_csv_time, read_csv};
pub use text::read_text;
