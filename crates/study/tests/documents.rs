//! The examples of study files in docs/ and README.md are studies, or pieces of one.

use stacklab_study::{Input, parse};
use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// Tables by which an example of a study file is known.
const TABLES: [&str; 7] = ["factors", "testbed", "blocks", "comparison", "probe", "host", "include"];

/// The blocks of indented or fenced lines of a page.
fn find_blocks(page: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut is_fenced = false;
    for line in page.lines() {
        let code = if is_fenced { Some(line) } else { line.strip_prefix("    ") };
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            blocks.push(String::new());
        } else if let Some(code) = code {
            blocks.last_mut().unwrap().extend([code, "\n"]);
        } else if !line.is_empty() {
            blocks.push(String::new());
        }
    }
    blocks
}

fn is_study(block: &str) -> bool {
    block.lines().any(|line| {
        let name = line.trim_start_matches('[').split([']', '.']).next().unwrap_or_default();
        line.starts_with('[') && TABLES.contains(&name)
    })
}

/// Adds the tables and keys that an example leaves out.
fn complete(study: &mut Table, rest: &Table) {
    for (key, value) in rest {
        match (study.get_mut(key), value) {
            (None, _) => {
                study.insert(key.clone(), value.clone());
            }
            (Some(Value::Table(inner)), Value::Table(rest)) => complete(inner, rest),
            _ => {}
        }
    }
}

#[test]
fn documented_examples_of_studies_are_accepted() {
    let rest: Table = r#"
        title = "an example"
        [factors]
        family = ["ipv4", "ipv6"]
        transport = ["udp"]
        size = [1024]
        [probe.stream]
        length = { time = "1s" }
        metrics = ["throughput"]
        [blocks]
        min = 2
        max = 4
    "#
    .parse()
    .unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|file| file.unwrap().path());
    let pages = docs.filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let mut wrong = Vec::new();
    let mut examples = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for block in find_blocks(&text).iter().filter(|block| is_study(block)) {
            examples += 1;
            let study = block.parse::<Table>().map(|mut study| {
                // An example with programs is a whole study: it has other factors, and another probe.
                let title = Table::from_iter([("title".to_owned(), "an example".into())]);
                let is_whole = study.contains_key("program");
                complete(&mut study, if is_whole { &title } else { &rest });
                toml::to_string(&study).unwrap()
            });
            let refused = match &study {
                Err(error) => Some(error.to_string()),
                Ok(text) => parse(&Input { name: "an example", text, scale: None, settings: &[] })
                    .err()
                    .map(|errors| errors.to_string()),
            };
            wrong.extend(refused.map(|why| format!("{}:\n{block}\n{why}", page.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(examples > 6, "{examples} examples in docs/ and README.md");
}
