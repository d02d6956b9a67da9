//! Names of before the first release.

use super::*;
use stacklab_model::{RENAMED_KEYS, renamed_names};

/// What is said of a study of one line.
fn said(line: &str) -> String {
    parse(&Input::file("study.toml", line)).unwrap_err().to_string()
}

#[test]
fn old_keys_fail_with_place_and_new_name() {
    for (table, old, new) in RENAMED_KEYS {
        let table = table.replace('*', "stream");
        let path = if table.is_empty() { (*old).to_owned() } else { format!("{table}.{old}") };
        for path in [path.clone(), format!("scale.quick.{path}")] {
            let text = said(&format!("{path} = 1"));
            let column = 1 + path.len() - old.len();
            assert!(text.contains(&format!("`{path}` was renamed to `{new}`")), "{text}");
            assert!(text.contains(&format!("study.toml:1:{column}\n")), "{text}");
        }
    }
}

#[test]
fn old_values_fail_with_place_and_new_name() {
    for (set, old, new) in renamed_names() {
        let before = match set {
            "metric" => "probe.stream.metrics = [",
            "schedule" => "blocks.schedule = ",
            // A key, not a value.
            "probe" => continue,
            _ => panic!("{set}"),
        };
        let after = if before.ends_with('[') { "]" } else { "" };
        let text = said(&format!("{before}\"{old}\"{after}"));
        assert!(text.contains(&format!("{set} `{old}` was renamed to `{new}`")), "{text}");
        assert!(text.contains(&format!("study.toml:1:{}\n", before.len() + 1)), "{text}");
    }
}
