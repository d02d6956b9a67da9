//! The findings as JSON.

use crate::rendering::json::versioned_json;
use stacklab_model::Findings;

/// Version of the JSON report's shape, its field `format`: raised when a field changes its meaning or goes.
pub const FORMAT_VERSION: u32 = 1;

/// Pretty-printed, one newline at the end.
pub(crate) fn render(findings: &Findings) -> String {
    versioned_json(FORMAT_VERSION, findings)
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
