//! Output for viewing, from a real campaign: figures for papers, runs as rows, and error messages. The page itself is
//! tested in a browser (web/e2e).

use crate::support;
use crate::support::studies::families;

use std::collections::BTreeMap;
use support::program::{Program, code, require_root};
use support::records::runs;

const STUDY: &str = concat!(
    r#"title = "a small study"
[testbed]
rate = "100 Mbit/s"
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [128, 512]
[probe.stream]
metrics = ["throughput", "loss"]
length = { time = "50ms" }
"#,
    families!("sequential", 3)
);

#[test]
fn a_campaign_is_had_as_figures_and_as_rows() {
    require_root();
    let program = Program::new();
    program.write("study.toml", STUDY);
    program.run(&["run", "study.toml", "--out", "a.stacklab", "--seed", "1"]).expect(code::DONE);

    let list = program.run(&["report", "a.stacklab", "--figure", "list"]).expect(code::DONE).stdout;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        [
            "throughput-udp-payload",
            "throughput-udp-payload-difference",
            "loss-udp-payload",
            "loss-udp-payload-difference"
        ]
    );
    for (format, begins) in [("svg", &b"<?xml"[..]), ("pdf", b"%PDF")] {
        for name in &names {
            let file = format!("{name}.{format}");
            let figure = ["report", "a.stacklab", "--figure", name, "--format", format, "--out", &file];
            program.run(&figure).expect(code::DONE);
            let bytes = std::fs::read(program.work().join(&file)).unwrap();
            assert!(bytes.starts_with(begins) && bytes.len() > 2000, "{file}: {} bytes", bytes.len());
        }
    }
    let wrong = |args: &[&str], says: &str| {
        program.run(&[&["report", "a.stacklab"], args].concat()).expect(code::REQUEST).says(&[says]);
    };
    wrong(
        &["--figure", "throughput-udp-segmnt", "--format", "svg"],
        "did you mean `throughput-udp-payload`?",
    );
    let name = "throughput-udp-payload";
    let format = "--format";
    wrong(&["--figure", name, format, "text"], "there is no format `text`: expected one of svg, pdf");
    wrong(&[format, "docx"], "html");
    // Without a format: by the file's ending, or an svg.
    let figure = program.run(&["report", "a.stacklab", "--figure", name]).expect(code::DONE).stdout;
    assert!(figure.starts_with("<?xml"), "{figure}");
    program.run(&["report", "a.stacklab", "--figure", name, "--out", "by-ending.pdf"]).expect(code::DONE);
    assert!(std::fs::read(program.work().join("by-ending.pdf")).unwrap().starts_with(b"%PDF"));
    wrong(
        &["--figure", name, "--out", "by-ending.png"],
        "there is no format `png`: expected one of svg, pdf",
    );
    wrong(
        &["--format", "html", "--difference", "lower"],
        "there is no format `html`: expected one of text, markdown, latex, csv",
    );

    let own = ["report", "a.stacklab", "--format", "html", "--out", "./a.stacklab"];
    program.run(&own).expect(code::REQUEST).says(&["--out names the record itself"]);
    program.run(&["report", "a.stacklab", "--figure", "list", "--out", "list.txt"]).expect(code::DONE);
    assert_eq!(std::fs::read_to_string(program.work().join("list.txt")).unwrap(), list);

    let measured = runs(&program.work().join("a.stacklab"));
    let rows = program.run(&["export", "a.stacklab"]).expect(code::DONE).stdout;
    let mut lines = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at =
        |row: &Vec<&str>, name: &str| row[header.iter().position(|known| *known == name).unwrap()].to_owned();
    let found: BTreeMap<_, _> = lines
        .map(|row| ((at(&row, "block"), at(&row, "position"), at(&row, "metric")), at(&row, "number")))
        .collect();
    let expected: BTreeMap<_, _> = measured
        .iter()
        .flat_map(|run| {
            let key = |metric: &str| {
                (run.trial.block.to_string(), run.trial.position.to_string(), metric.to_owned())
            };
            let figure =
                |value: &stacklab_model::Value| value.measured().map_or_else(String::new, |f| f.to_string());
            run.values.iter().map(move |(metric, value)| (key(metric.name()), figure(value)))
        })
        .collect();
    assert_eq!(found, expected);
    program.run(&["export", "a.stacklab", "--format", "parquet", "--out", "a.parquet"]).expect(code::DONE);
    let bytes = std::fs::read(program.work().join("a.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    program.run(&["export", "a.stacklab", "--format", "xls"]).expect(code::REQUEST);
    program.run(&["serve", "nowhere"]).expect(code::REQUEST).says(&["the folder nowhere cannot be read"]);
}
