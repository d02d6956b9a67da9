//! A single run as JSON.

use crate::rendering::json::versioned_json;
use serde::Serialize;
use stacklab_model::{HostFacts, RunRecord};

/// Version of the JSON of a single run.
pub const MEASUREMENT_FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    run: &'a RunRecord,
    /// The hosts' facts, sender first; of a host that tells none, nothing.
    hosts: &'a [&'a HostFacts],
}

/// Renders one run with all of its fields, and the hosts' facts as `hosts`.
pub fn measurement_json(run: &RunRecord, hosts: &[&HostFacts]) -> String {
    versioned_json(MEASUREMENT_FORMAT_VERSION, &Document { run, hosts })
}
