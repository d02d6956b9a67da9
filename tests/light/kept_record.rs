//! A record measured by an earlier stacklab opens, and its reports are identical to the byte.

use crate::support::program::{Program, code};
use std::fs;
use std::path::Path;

/// A record of the study in the same folder.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/kept.stacklab");

#[test]
fn the_reports_of_a_kept_record_do_not_change() {
    let program = Program::new();
    // The program may need to write a journal in the same folder.
    fs::copy(RECORD, program.work().join("kept.stacklab")).unwrap();
    for (format, file) in [("text", "kept.txt"), ("csv", "kept.csv")] {
        let expected = fs::read_to_string(Path::new(RECORD).with_file_name(file)).unwrap();
        let printed = program.run(&["report", "kept.stacklab", "--format", format]).expect(code::DONE).stdout;
        assert!(printed == expected, "{file} is not what was printed:\n{printed}");
    }
}

#[test]
fn a_kept_study_is_still_the_same_plan() {
    let program = Program::new();
    fs::copy(RECORD, program.work().join("kept.stacklab")).unwrap();
    // Nothing remains to be measured: every run of the plan is in the record.
    let resumed = program.run(&["run", "--resume", "--out", "kept.stacklab"]).expect(code::DONE);
    assert!(resumed.stdout.contains("16 valid runs in 2 blocks, 0 invalid"), "{}", resumed.stdout);
}
