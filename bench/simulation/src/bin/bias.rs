//! Prints, from the JSON reports of campaigns, how large the method's own bias can be: `bench/bias` runs it.
//!
//! It is a bound to read results by. No verdict depends on it.

use stacklab_model::Findings;
use stacklab_simulation::bias::lines;

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        refuse("give the JSON reports of campaigns");
    }
    let reports: Vec<Findings> = paths.iter().map(|path| read(path)).collect();
    let lines = lines(&reports);
    if lines.is_empty() {
        refuse("no report has two arms of one cell");
    }
    let runs: usize = reports.iter().map(|report| report.valid_runs).sum();
    println!("{} reports, {runs} valid runs; each bound holds with 95 % confidence", reports.len());
    for line in lines {
        println!("{line}");
    }
}

fn read(path: &str) -> Findings {
    let text = std::fs::read_to_string(path).unwrap_or_else(|reason| refuse(&format!("{path}: {reason}")));
    serde_json::from_str(&text)
        .unwrap_or_else(|reason| refuse(&format!("{path}: not a JSON report: {reason}")))
}

fn refuse(reason: &str) -> ! {
    stacklab_model::say!("bias: {reason}");
    std::process::exit(2);
}
