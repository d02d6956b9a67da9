//! The language as a reference page, in Markdown.

use crate::language::check::join;
use crate::language::leaf::metrics_of;
use crate::language::table::{MESSAGE_RATES, STUDY};
use crate::language::{KeyDef, Kind, Presence};
use stacklab_model::{Better, Metric, Probe};
use std::fmt::{Display, Write};

const INTRODUCTION: &str = "\
# Study files

This page is generated from the table that checks studies (`make schema`). [study.schema.json](study.schema.json) is the same for
editors, and [method.md](method.md) defines metrics and verdicts.

    stacklab study list                  the built-in studies
    stacklab study show quickstart       one of them, with comments
    stacklab study new my.toml           a file to change
    stacklab plan my.toml                checks it, and prints its runs
    stacklab run my.toml

A study is a TOML file. `--set testbed.mtu=9000` changes a key of any table for one campaign. A factor's levels are a list.
";

/// The reference of study files: every key with its values, default and meaning, and every metric.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    tables(&mut text, "", STUDY);
    text += "\n## Metrics\n\n| metric | unit | better | probe | is |\n|---|---|---|---|---|\n";
    for metric in Metric::ALL {
        let better = if metric.better() == Better::Higher { "higher" } else { "lower" };
        let probes = Probe::ALL.iter().filter(|probe| metric.is_of(**probe));
        let probes: Vec<String> = probes.map(|probe| format!("`{probe}`")).collect();
        let _ = writeln!(
            text,
            "| `{metric}` | {} | {better} | {} | {} |",
            metric.unit().symbol(),
            probes.join(", "),
            cell(metric.definition())
        );
    }
    text
}

/// The table of these keys, and those of the tables in it.
fn tables(text: &mut String, path: &str, keys: &[KeyDef]) {
    let known: Vec<&KeyDef> = keys.iter().filter(|key| !key.is_out_of_place()).collect();
    text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in &known {
        let default = match key.presence {
            Presence::Required => "required".to_owned(),
            Presence::Optional | Presence::Default("{}") => String::new(),
            Presence::Default(value) => format!("`{value}`"),
        };
        let value = cell(&value(&key.kind));
        let meaning = cell(&key.description());
        let _ = writeln!(text, "| `{}` | {value} | {default} | {meaning} |", key.name);
    }
    for key in known {
        // `include` has the levels again, of which none is required.
        let Some(keys) = key.kind.keys().filter(|_| key.name != "include") else { continue };
        let path = join(path, key.name);
        let heading =
            if let Kind::Tables(_) = key.kind { format!("[[{path}]]") } else { format!("[{path}]") };
        let _ = write!(text, "\n## `{heading}`\n");
        tables(text, &path, keys);
    }
}

fn value(kind: &Kind) -> String {
    fn code<T: Display>(names: &[T]) -> String {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Boolean => "`true`, `false`".to_owned(),
        Kind::Integer { least, most } => format!("{least} to {most}"),
        Kind::OneOfNumbers(numbers) => code(numbers),
        Kind::Number { least, most } => format!("{least} to {most}"),
        Kind::CountOr { most, name } => format!("0 to {most}, or `\"{name}\"`"),
        Kind::MessageRate => format!("{} to {}, or `\"link\"`", MESSAGE_RATES.0, MESSAGE_RATES.1),
        Kind::PacedRate => {
            format!("{} to {}, `\"link\"`, `\"search\"`, or `\"50 %\"`", MESSAGE_RATES.0, MESSAGE_RATES.1)
        }
        Kind::Rate => "rate: `\"100 Mbit/s\"`".to_owned(),
        Kind::Duration { least, most } => format!("duration: {least} to {most}"),
        Kind::Share => "share: `\"2 %\"` or `0.02`".to_owned(),
        Kind::Name { names, .. } => code(names),
        Kind::Metric(None) => "any metric".to_owned(),
        Kind::Metric(probe) => code(&metrics_of(*probe)),
        Kind::System => "system: `\"namespace\"`".to_owned(),
        Kind::Services => "services: `\"dns+dhcp\"`".to_owned(),
        Kind::Address(family) => format!("{family} address"),
        Kind::Level => "a level of the factor".to_owned(),
        Kind::List(of) => format!("list of: {}", value(of)),
        Kind::Table(_) => "table".to_owned(),
        Kind::SomeOf(_) => "table with at least one key".to_owned(),
        Kind::OneOf(_) => "table with one key".to_owned(),
        Kind::Tables(_) => "tables".to_owned(),
        Kind::Part => "a part of a study".to_owned(),
        Kind::Refused(_) => String::new(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_every_metric_is_in_the_reference() {
        fn visit(keys: &[KeyDef], text: &str) {
            for key in keys.iter().filter(|key| !key.is_out_of_place()) {
                assert!(
                    text.contains(&format!("| `{}` |", key.name)) && text.contains(&cell(&key.description())),
                    "{}",
                    key.name
                );
                if let Some(keys) = key.kind.keys() {
                    visit(keys, text);
                }
            }
        }
        let text = reference();
        visit(STUDY, &text);
        for metric in Metric::ALL {
            assert!(text.contains(&format!("| `{metric}` | ")), "{metric}");
        }
    }

    #[test]
    fn the_committed_reference_is_the_programs_own() {
        let committed = include_str!("../../../../docs/study.md");
        assert!(committed == reference(), "docs/study.md is out of date: make schema");
    }
}
