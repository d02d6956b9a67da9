//! Names of before the first release.

use super::*;
use stacklab_model::{RENAMED_KEYS, renamed_names};

/// What is said of a study of one line.
fn describe_errors(line: &str) -> String {
    parse(&Input::file("study.toml", line)).unwrap_err().to_string()
}

#[test]
fn old_keys_fail_with_place_and_new_name() {
    let mut keys = RENAMED_KEYS.to_vec();
    for table in ["factors", "include"] {
        let factors = renamed_names().filter(|(set, ..)| *set == "factor");
        keys.extend(factors.map(|(_, old, new)| (table, old, new)));
    }
    for (table, old, new) in keys {
        let table = table.replace('*', "stream");
        let path = if table.is_empty() { old.to_owned() } else { format!("{table}.{old}") };
        for path in [path.clone(), format!("scale.quick.{path}")] {
            let is_list = table == "include";
            let line = match path.rsplit_once('.') {
                Some((list, _)) if is_list => format!("{list} = [{{ {old} = 1 }}]"),
                _ => format!("{path} = 1"),
            };
            let text = describe_errors(&line);
            let column = 1 + line.find(&format!("{old} =")).unwrap();
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
            "I/O path" => "factors.io = [",
            "system" => "factors.os = [",
            "size_of" => "factors.size_of = [",
            "factor" => "comparison = [{ factor = ",
            "schedule" => "blocks.schedule = ",
            // A key, not a value.
            "probe" => continue,
            _ => panic!("{set}"),
        };
        let after = if before.contains('{') {
            " }]"
        } else if before.contains('[') {
            "]"
        } else {
            ""
        };
        let text = describe_errors(&format!("{before}\"{old}\"{after}"));
        assert!(text.contains(&format!("{set} `{old}` was renamed to `{new}`")), "{text}");
        assert!(text.contains(&format!("study.toml:1:{}\n", before.len() + 1)), "{text}");
    }
}
