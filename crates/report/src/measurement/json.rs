//! A single run as JSON.

use serde::Serialize;
use stacklab_model::{HostFacts, RunRecord};

/// Version of the JSON of a single run.
pub const MEASUREMENT_FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    #[serde(flatten)]
    run: &'a RunRecord,
    /// The hosts' facts, sender first.
    hosts: [&'a HostFacts; 2],
}

/// Renders one run whole, unrounded, with the version of this format as `format`, and with what the hosts are, sender
/// first, as `hosts`.
pub fn measurement_json(run: &RunRecord, hosts: [&HostFacts; 2]) -> String {
    let document = Document { format: MEASUREMENT_FORMAT_VERSION, run, hosts };
    serde_json::to_string_pretty(&document).expect("a run has only text for keys, and no endless figure")
        + "\n"
}
