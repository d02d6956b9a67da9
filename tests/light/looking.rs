//! Output for viewing, from a real campaign: figures for papers, runs as rows, and error messages. The page itself is
//! tested in a browser (web/e2e).

use crate::support;
use crate::support::studies::TestStudy;

use std::collections::BTreeMap;
use support::program::{Program, code, require_root};
use support::records::runs;

fn study() -> TestStudy {
    TestStudy::new("a small study")
        .rate("100 Mbit/s")
        .families()
        .transports(&["udp"])
        .sizes(&[128, 512])
        .stream(&["throughput", "loss"])
        .time("50ms")
        .schedule("sequential")
        .blocks(3)
        .compare_families()
}

#[test]
fn a_campaign_is_had_as_figures_and_as_rows() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    program.run(&["run", "study.toml", "--out", "a.stacklab", "--seed", "1"]).expect(code::DONE);
    check_figures(&program);
    check_format_of_a_figure(&program);
    check_requests(&program);
    check_rows(&program);
    check_parquet(&program);
}

const FIGURE: &str = "throughput-udp-payload";

/// Each figure that the list names is drawn in each format.
fn check_figures(program: &Program) {
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
    program.run(&["report", "a.stacklab", "--figure", "list", "--out", "list.txt"]).expect(code::DONE);
    assert_eq!(std::fs::read_to_string(program.work().join("list.txt")).unwrap(), list);
}

/// Without a format: by the file's ending, or an svg.
fn check_format_of_a_figure(program: &Program) {
    let figure = program.run(&["report", "a.stacklab", "--figure", FIGURE]).expect(code::DONE).stdout;
    assert!(figure.starts_with("<?xml"), "{figure}");
    program.run(&["report", "a.stacklab", "--figure", FIGURE, "--out", "by-ending.pdf"]).expect(code::DONE);
    assert!(std::fs::read(program.work().join("by-ending.pdf")).unwrap().starts_with(b"%PDF"));
}

/// A request that cannot be met says what could.
fn check_requests(program: &Program) {
    for (args, says) in [
        (
            &["--figure", "throughput-udp-segmnt", "--format", "svg"][..],
            "did you mean `throughput-udp-payload`?",
        ),
        (&["--figure", FIGURE, "--format", "text"], "there is no format `text`: expected one of svg, pdf"),
        (&["--format", "docx"], "html"),
        (
            &["--figure", FIGURE, "--out", "by-ending.png"],
            "there is no format `png`: expected one of svg, pdf",
        ),
        (
            &["--format", "html", "--difference", "lower"],
            "there is no format `html`: expected one of text, markdown, latex, csv",
        ),
        (&["--format", "html", "--out", "./a.stacklab"], "--out names the record itself"),
    ] {
        program.run(&[&["report", "a.stacklab"], args].concat()).expect(code::REQUEST).says(&[says]);
    }
    program.run(&["export", "a.stacklab", "--format", "xls"]).expect(code::REQUEST);
    program.run(&["serve", "nowhere"]).expect(code::REQUEST).says(&["the folder nowhere cannot be read"]);
}

/// The rows of an export have the figures of the runs.
fn check_rows(program: &Program) {
    let measured = runs(&program.work().join("a.stacklab"));
    let rows = program.run(&["export", "a.stacklab"]).expect(code::DONE).stdout;
    let mut lines = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let columns = ["block", "position", "metric", "number"]
        .map(|name| header.iter().position(|known| *known == name).unwrap());
    let mut found = BTreeMap::new();
    for row in lines {
        let [block, position, metric, number] = columns.map(|column| row[column].to_owned());
        found.insert([block, position, metric], number);
    }
    let mut expected = BTreeMap::new();
    for run in &measured {
        for (metric, value) in run.values.iter() {
            let key = [run.trial.block.to_string(), run.trial.position.to_string(), metric.name().to_owned()];
            expected.insert(key, value.measured().map_or_else(String::new, |figure| figure.to_string()));
        }
    }
    assert_eq!(found, expected);
}

fn check_parquet(program: &Program) {
    program.run(&["export", "a.stacklab", "--format", "parquet", "--out", "a.parquet"]).expect(code::DONE);
    let bytes = std::fs::read(program.work().join("a.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn a_record_whose_study_cannot_be_read_is_named() {
    let program = super::bad_input::measured();
    let path = program.work().join("small.stacklab");
    let changed = rusqlite::Connection::open(&path)
        .unwrap()
        .execute("UPDATE campaign SET study_text = replace(study_text, 'transport', 'carrier')", []);
    assert_eq!(changed.unwrap(), 1);
    for args in [&["report"][..], &["report", "--format", "html"], &["report", "--figure", "list"]] {
        program.run(&[args, &["small.stacklab"]].concat()).expect(code::RECORD).says(&[
            "small.stacklab: this version of stacklab cannot read the study that the record holds",
            "carrier",
        ]);
    }
}
