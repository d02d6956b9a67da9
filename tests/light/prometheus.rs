//! A real Prometheus reads `stacklab serve --metrics`, and every query of the Grafana dashboard has an answer.

use crate::support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::program::{Program, code};

const LIMIT: Duration = Duration::from_secs(30);
const TOKEN: &str = "0123456789abcdef";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Prometheus, which ends with this.
struct Prometheus {
    child: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Begins to read what answers there, once a second.
    fn start(folder: &Path, target: &str) -> Self {
        let unpacked = Path::new(ROOT).join("target/tools/prometheus/usr/bin/prometheus");
        let found = [PathBuf::from("/usr/bin/prometheus"), unpacked].into_iter().find(|path| path.exists());
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- job_name: stacklab\n  \
             authorization: {{credentials: {TOKEN}}}\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let log = folder.join("prometheus.log");
        let child = Command::new(found.expect("this test needs Prometheus: scripts/setup test-all"))
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut started = Prometheus { child, address: String::new() };
        let begun = Instant::now();
        while started.address.is_empty() {
            let said = std::fs::read_to_string(&log).unwrap();
            let line = said.lines().find(|line| line.contains("msg=\"Listening on\""));
            let address = line.and_then(|line| line.split_once("address=")).map(|(_, rest)| rest);
            started.address =
                address.and_then(|rest| rest.split_whitespace().next()).unwrap_or("").to_owned();
            assert!(begun.elapsed() < LIMIT, "{said}");
            sleep(Duration::from_millis(50));
        }
        // It listens before it can answer queries.
        while !started.get("/-/ready").contains(" 200 ") {
            assert!(begun.elapsed() < LIMIT, "Prometheus is not ready");
            sleep(Duration::from_millis(50));
        }
        started
    }

    /// The whole answer to a request.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// What a query gives: labels and values.
    fn query(&self, query: &str) -> Vec<Value> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={query}"));
        let body = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}")).1;
        let json: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(json["status"], "success", "{answer}");
        json["data"]["result"].as_array().unwrap().clone()
    }
}

fn number(sample: &Value) -> f64 {
    sample["value"][1].as_str().unwrap().parse().unwrap()
}

/// Every query of a dashboard, with its variables at any value.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    queries.map(|query| query.replace("$record", ".*").replace("$metric", ".*")).collect()
}

#[test]
fn prometheus_reads_verdicts_the_dashboard_asks_for() {
    let program = Program::new();
    let name = "kept.stacklab";
    std::fs::copy(Path::new(ROOT).join("tests/records").join(name), program.work().join(name)).unwrap();
    let report = program.run(&["report", name, "--format", "json"]).expect(code::DONE).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let mut serving = program.start(&["serve", ".", "--listen", ":0", "--metrics", "--token", TOKEN]);
    serving.wait_for("http://", LIMIT);
    let said = serving.stderr();
    let (target, _) = said.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).unwrap();
    let prometheus = Prometheus::start(&program.work(), target);
    let begun = Instant::now();
    while prometheus.query("stacklab_runs").is_empty() {
        assert!(begun.elapsed() < LIMIT, "nothing was read: {:?}", prometheus.query("up"));
        sleep(Duration::from_millis(100));
    }
    let valid = prometheus.query("stacklab_runs{status=\"valid\"}");
    assert_eq!(number(&valid[0]), report["valid_runs"].as_f64().unwrap());
    // One verdict holds of each comparison, and it is the report's.
    let comparisons = report["comparisons"].as_array().unwrap();
    let holding = prometheus.query("stacklab_verdict == 1");
    assert_eq!(holding.len(), comparisons.len());
    for kind in ["better", "equivalent", "inconclusive", "none_seen", "nothing"] {
        let of_report =
            comparisons.iter().filter(|one| one["verdict"] == kind || one["verdict"].get(kind).is_some());
        let found = holding.iter().filter(|sample| sample["metric"]["verdict"] == kind).count();
        assert_eq!(found, of_report.count(), "{kind}");
    }
    let estimates = prometheus.query("stacklab_effect{bound=\"estimate\"}");
    let mut found: Vec<f64> = estimates.iter().map(number).collect();
    found.sort_by(f64::total_cmp);
    let mut expected: Vec<f64> =
        comparisons.iter().filter_map(|one| one["effect"]["estimate"].as_f64()).collect();
    expected.sort_by(f64::total_cmp);
    assert_eq!(found, expected);

    let dashboard = std::fs::read_to_string(Path::new(ROOT).join("contrib/grafana/stacklab.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let asked = queries(&dashboard);
    assert!(asked.len() >= 5, "{asked:?}");
    for query in asked.iter().filter(|query| !query.contains("stacklab_path")) {
        assert!(!prometheus.query(query).is_empty(), "{query} has no answer");
    }
    // Those of paths are of another program, and are valid.
    asked
        .iter()
        .filter(|query| query.contains("stacklab_path"))
        .for_each(|query| drop(prometheus.query(query)));
}

#[test]
fn figures_need_the_metrics_option_and_the_token() {
    let program = Program::new();
    let name = "kept.stacklab";
    std::fs::copy(Path::new(ROOT).join("tests/records").join(name), program.work().join(name)).unwrap();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let without = ask_for_metrics(&program, &[], &bearer);
    assert!(without.starts_with("HTTP/1.1 404") && without.contains("--metrics"), "{without}");
    assert!(ask_for_metrics(&program, &["--metrics"], "").starts_with("HTTP/1.1 403"));
    assert!(ask_for_metrics(&program, &["--metrics"], &bearer).starts_with("HTTP/1.1 200"));
}

/// The answer of a page that is served with these options.
fn ask_for_metrics(program: &Program, options: &[&str], header: &str) -> String {
    let serve = ["serve", ".", "--listen", ":0", "--token", TOKEN];
    let mut serving = program.start(&[&serve, options].concat());
    serving.wait_for("http://", LIMIT);
    let said = serving.stderr();
    let (address, _) = said.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    write!(stream, "{request}{header}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
