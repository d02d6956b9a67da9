//! The findings as JSON.

use serde::Serialize;
use stacklab_model::Findings;

/// Version of the JSON report's shape, its field `format`: raised when a field changes its meaning or goes.
pub const FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a> {
    format: u32,
    #[serde(flatten)]
    findings: &'a Findings,
}

/// Pretty-printed, one newline at the end.
pub fn render(findings: &Findings) -> String {
    let versioned = Versioned { format: FORMAT_VERSION, findings };
    serde_json::to_string_pretty(&versioned).expect("findings have no maps and no failing parts") + "\n"
}

#[cfg(test)]
mod tests {
    use crate::tests::fixtures::findings;

    #[test]
    fn json_reads_back_as_the_findings() {
        let findings = findings();
        let text = super::render(&findings);
        assert!(text.starts_with("{\n  \"format\": 1,\n  \"title\": "), "{text}");
        assert_eq!(serde_json::from_str::<stacklab_model::Findings>(&text).unwrap(), findings);
    }
}
