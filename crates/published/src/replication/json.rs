//! A replication as JSON.

use crate::replication::Replication;
use serde::Serialize;
use stacklab_report::versioned_json;

/// Format version (the field `format`): raised when a field is removed or changes its meaning.
pub(crate) const FORMAT_VERSION: u32 = 2;

#[derive(Serialize)]
struct Missing<'a> {
    original: &'a str,
    stand_in: &'a str,
    needs: &'a str,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    replication: &'a Replication,
    limits: Vec<Missing<'a>>,
}

/// Pretty-printed, with one newline at the end.
pub fn render(replication: &Replication) -> String {
    let limits = replication.limits.iter();
    let limits = limits
        .map(|limit| Missing { original: &limit.original, stand_in: &limit.stand_in, needs: &limit.needs })
        .collect();
    versioned_json(FORMAT_VERSION, &Document { replication, limits })
}
