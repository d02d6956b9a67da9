//! Fuzz targets: each gives any bytes to something that reads what others write, and panics where a promise is broken.
//!
//! `cargo test` gives each target its corpus (`fuzz/corpus/TARGET`), once. `make fuzz` searches for more. The parsers
//! are those of the crates' `fuzzing` modules, where they are not public anyway.

mod eyeballs;
mod guests;
mod local;
mod outputs;
mod peers;
mod records;
mod stamp;
mod studies;
#[cfg(feature = "fuzzer")]
mod sys;
mod tools;

pub use eyeballs::client_packet;
pub use guests::{
    captured_frame, console, exact_counts, guest_message, mux, package_file, radio_frame, service_answer,
};
pub use local::{page_request, proc, words};
pub use peers::{
    agent_answer, agent_request, arrivals, fleet_message, greeting, host_reports, message_header,
};
pub use records::{record, records, report, reports};
pub use stamp::stamp;
pub use studies::study;
#[cfg(feature = "fuzzer")]
pub use sys::{prepare, run_within_limit};
pub use tools::{generator_output, import, iperf3, path_answer};

/// A target, and the function that it is.
pub type FuzzTarget = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [FuzzTarget; 27] = [
    ("agent_request", agent_request),
    ("agent_answer", agent_answer),
    ("host_reports", host_reports),
    ("greeting", greeting),
    ("message_header", message_header),
    ("arrivals", arrivals),
    ("fleet_message", fleet_message),
    ("stamp", stamp),
    ("study", study),
    // Their fuzzers change small records only, and make one report for each input.
    ("record", records),
    ("report", reports),
    ("mux", mux),
    ("guest_message", guest_message),
    ("service_answer", service_answer),
    ("proc", proc),
    ("captured_frame", captured_frame),
    ("radio_frame", radio_frame),
    ("page_request", page_request),
    ("words", words),
    ("console", console),
    ("exact_counts", exact_counts),
    ("package_file", package_file),
    ("import", import),
    ("generator_output", generator_output),
    ("iperf3", iperf3),
    ("path_answer", path_answer),
    ("client_packet", client_packet),
];

/// The numbers and texts that a target takes from its bytes, from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The next bytes, fewer at the end.
    fn some(&mut self, count: usize) -> &'a [u8] {
        let (some, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        some
    }

    /// The next big-endian number of so many bytes; bytes that are missing are not zeros in front.
    fn number(&mut self, bytes: usize) -> u64 {
        self.some(bytes).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Whether nothing is left.
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a text changes nothing of a terminal: its only control characters are ends of lines.
fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && c != '\n')
}
