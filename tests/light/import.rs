//! `stacklab import`: files that real tools write here, rows of an export, and files that are damaged.

use crate::support;

use serde_json::Value;
use stacklab_model::{Family, Metric, Probe, RunRecord, Transport};
use stacklab_store::{Origin, Record};
use std::path::{Path, PathBuf};
use support::program::{Outcome, Program, code, require_root, require_tool};
use support::studies::TestStudy;

/// The exit code for files that cannot be read.
const IMPORT: i32 = 11;

/// Tests of each tool over each family, in a namespace of their own. Servers end with it.
const MEASURE: &str = "ip link set lo up
iperf3 -s >/dev/null & iperf -s >/dev/null & iperf -s -V -p 5101 >/dev/null & iperf -s -u -e -p 5102 >udp.txt &
ITGRecv >/dev/null 2>&1 & \"$IRTT\" server >/dev/null 2>&1 &
for port in :5201 :5001 :5101 :5102 :9000 :2112; do
    until ss -lntu | grep -q \"$port \"; do sleep 0.05; done
done
# For a moment after a test iperf3's server is busy, and the client's exit code does not say so.
client() {
    out=$1
    shift
    for try in 1 2 3 4 5 6 7 8 9; do
        iperf3 \"$@\" -J >$out && ! grep -q '\"error\"' $out && return
        sleep 0.3
    done
    exit 1
}
for i in 1 2 3; do
    client v4-$i.json -c 127.0.0.1 -n 20M
    client v6-$i.json -c ::1 -n 20M
done
client udp.json -c ::1 -u -b 20M -l 1200 -n 1M
client both.json -c 127.0.0.1 -t 1 --bidir -P 2
iperf -c 127.0.0.1 -n 20M -y C >v4.csv
iperf -V -c ::1 -p 5101 -n 20M -e >v6.txt
iperf -c 127.0.0.1 -p 5102 -u -b 10M -n 500K -e >v4-udp.txt
for end in 127.0.0.1 ::1; do
    ITGSend -a $end -T UDP -C 500 -c 512 -t 500 -x $PWD/log-$end >/dev/null && ITGDec log-$end >itg-$end.txt
done
PATH=\"$PATH:${IRTT%/*}\" python3 \"$FLENT\" ping -H 127.0.0.1 -l 2 -s 0.2 >flent.log 2>&1
kill $(jobs -p)
ls";

fn tool(path: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools").join(path);
    file.canonicalize()
        .unwrap_or_else(|_| panic!("this test needs {}: scripts/setup test-all", file.display()))
}

fn measured() -> Program {
    require_root();
    for (name, package) in
        [("iperf3", "iperf3"), ("iperf", "iperf"), ("ITGSend", "d-itg"), ("ping", "iputils-ping")]
    {
        require_tool(name, package);
    }
    let program = Program::new();
    let mut measure =
        program.script(&["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c"], MEASURE);
    measure.env("IRTT", tool("flent/usr/bin/irtt")).env("FLENT", tool("flent/usr/share/flent/run"));
    Outcome::of(measure).expect(0);
    program
}

fn read(program: &Program, name: &str) -> (Vec<RunRecord>, Vec<Origin>) {
    let record = Record::read(&program.work().join(name)).unwrap_or_else(|error| panic!("{error}"));
    (record.runs().unwrap(), record.origins().unwrap())
}

fn json(program: &Program, name: &str) -> Value {
    let text = std::fs::read_to_string(program.work().join(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn report(program: &Program, record: &str) -> Value {
    let outcome = program.run(&["report", record, "--format", "json"]).expect(code::DONE);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// One test, because measuring with all tools takes longer than reading their files.
#[test]
fn files_of_real_tools_become_a_record() {
    let program = measured();
    check_iperf3(&program);
    check_unpaired_runs(&program);
    check_import_is_final(&program);
    check_contradictions(&program);
    check_other_tools(&program);
    check_flent(&program);
    check_half_of_a_file(&program);
}

fn figure(run: &RunRecord, metric: Metric) -> f64 {
    run.values[&metric].measured().unwrap_or_else(|| panic!("{:?}", run.values))
}

/// The files of three tests of iperf3 over each family.
fn iperf3_files() -> Vec<String> {
    [4, 6].iter().flat_map(|v| (1..4).map(move |i| format!("v{v}-{i}.json"))).collect()
}

/// Imports them into a.stacklab.
fn import_iperf3(program: &Program) -> Outcome {
    let names = iperf3_files();
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    program.run(&[&["import"], &files[..], &["--out", "a.stacklab"]].concat())
}

/// Each figure of iperf3 is that of the file.
fn check_iperf3(program: &Program) {
    let outcome = import_iperf3(program).expect(code::DONE);
    assert!(outcome.stdout.contains("6 runs of 6 files in a.stacklab"), "{outcome}");
    let (runs, origins) = read(program, "a.stacklab");
    for ((name, run), origin) in iperf3_files().iter().zip(&runs).zip(&origins) {
        let sum = &json(program, name)["end"]["sum_received"];
        let rate = sum["bytes"].as_f64().unwrap() * 8.0 / 1e6 / sum["end"].as_f64().unwrap();
        assert!((figure(run, Metric::Throughput) / rate - 1.0).abs() < 1e-9, "{name}: {rate}");
        let family = if name.starts_with("v4") { Family::Ipv4 } else { Family::Ipv6 };
        assert_eq!((run.trial.cell.family, run.trial.cell.transport), (family, Transport::Tcp));
        assert_eq!((origin.tool.as_str(), &origin.file, origin.sha256.len()), ("iperf3", name, 64));
        let version = json(program, name)["start"]["version"].as_str().unwrap().replace("iperf ", "");
        assert_eq!(origin.version.as_deref(), Some(version.as_str()));
    }
}

/// There is no verdict on what is not paired, and the difference is told all the same.
fn check_unpaired_runs(program: &Program) {
    let found = report(program, "a.stacklab");
    let throughput =
        found["comparisons"].as_array().unwrap().iter().find(|c| c["metric"] == "throughput").unwrap();
    let verdict = throughput["verdict"]["nothing"].as_str().unwrap_or_else(|| panic!("{throughput}"));
    assert!(verdict.contains("no block has a figure of both arms"), "{verdict}");
    assert!(verdict.contains("unpaired, ipv6 is ") && verdict.contains("3 and 3 runs"), "{verdict}");
    assert!(found["testbed"].as_str().unwrap().starts_with("imported, not measured by this program: iperf3"));
    for args in [
        &["report", "a.stacklab"][..],
        &["report", "a.stacklab", "--format", "csv"],
        &["export", "a.stacklab"],
        &["compare", "a.stacklab", "a.stacklab"],
        &["report", "a.stacklab", "--figure", "list"],
    ] {
        program.run(args).expect(code::DONE);
    }
}

/// Nothing is measured into an imported record, and it is not replaced.
fn check_import_is_final(program: &Program) {
    let resume = ["run", "--resume", "--out", "a.stacklab"];
    let outcome = program.run(&resume).expect(code::REQUEST);
    assert!(outcome.stderr.contains("was imported"), "{outcome}");
    import_iperf3(program).expect(code::RECORD);
}

/// What a file does not tell is said by options, which must not contradict it.
fn check_contradictions(program: &Program) {
    let lacking = program.run(&["import", "v4.csv", "--out", "b.stacklab"]).expect(code::REQUEST);
    assert!(
        lacking.stderr.contains("v4.csv, test 1: ") && lacking.stderr.contains("--transport and --size"),
        "{lacking}"
    );
    let otherwise =
        program.run(&["import", "v6.txt", "--family", "ipv4", "--out", "b.stacklab"]).expect(code::REQUEST);
    assert!(otherwise.stderr.contains("v6.txt contradicts --family"), "{otherwise}");
}

/// Other traffic and other tools, with what they do not tell said by options.
fn check_other_tools(program: &Program) {
    use Family::{Ipv4, Ipv6};
    use Transport::{Tcp, Udp};
    for (file, options, family, transport, size, flows) in [
        ("udp.json", &[][..], Ipv6, Udp, 1200, 1),
        ("both.json", &[], Ipv4, Tcp, 131_072, 2),
        ("v4.csv", &["--transport", "tcp", "--size", "128K"], Ipv4, Tcp, 131_072, 1),
        ("v6.txt", &[], Ipv6, Tcp, 131_072, 1),
        ("v4-udp.txt", &[], Ipv4, Udp, 1470, 1),
        ("udp.txt", &["--size", "1470"], Ipv4, Udp, 1470, 1),
        ("itg-127.0.0.1.txt", &["--transport", "udp"], Ipv4, Udp, 512, 1),
        ("itg-::1.txt", &["--transport", "udp"], Ipv6, Udp, 512, 1),
    ] {
        let record = format!("{file}.stacklab");
        program.run(&[&["import", file, "--out", &record], options].concat()).expect(code::DONE);
        let (runs, origins) = read(program, &record);
        let run = &runs[0];
        let cell = &run.trial.cell;
        let found = (cell.family, cell.transport, cell.size, cell.settings.flows.unwrap_or(1));
        assert_eq!(found, (family, transport, size, flows), "{file}");
        assert_eq!(origins[0].overrides.is_empty(), options.is_empty(), "{file}");
        let rate = run.values[&Metric::Throughput].measured();
        assert!(rate.is_some_and(|rate| rate > 0.1), "{file}: {:?}", run.values);
        if transport == Udp {
            assert!((0.0..=1.0).contains(&figure(run, Metric::Loss)), "{file}");
        }
    }
}

fn check_flent(program: &Program) {
    let flent = program.files().into_iter().find(|name| name.ends_with(".flent.gz"));
    let flent = flent
        .unwrap_or_else(|| panic!("{}", std::fs::read_to_string(program.work().join("flent.log")).unwrap()));
    let outcome = program.run(&["import", &flent, "--size", "60", "--out", "f.stacklab"]).expect(code::DONE);
    assert!(outcome.stdout.contains("Ping (ms) ICMP: stacklab has no such transport"), "{outcome}");
    let (runs, _) = read(program, "f.stacklab");
    assert_eq!(
        (runs.len(), runs[0].trial.probe, runs[0].trial.cell.family),
        (1, Probe::EchoOpenLoop, Family::Ipv4)
    );
    assert!((0.001..100.0).contains(&figure(&runs[0], Metric::RttOpen)));
}

/// Half of a file is none: nothing is written of it, nor of those that came before.
fn check_half_of_a_file(program: &Program) {
    let whole = std::fs::read(program.work().join("v6-1.json")).unwrap();
    program.write("half.json", &whole[..whole.len() / 2]);
    let half = program.run(&["import", "v4-1.json", "half.json", "--out", "h.stacklab"]).expect(IMPORT);
    assert!(
        half.stderr.contains("could not import half.json: line ")
            && half.stderr.contains("nothing was written"),
        "{half}"
    );
    assert!(!program.work().join("h.stacklab").exists());
}

#[test]
fn each_warning_of_a_record_is_printed_once() {
    require_root();
    let program = Program::new();
    // CSV of iperf 2 says neither the direction nor --bounceback; its text has three digits.
    program.write("a.csv", "20261129005912,127.0.0.1,50144,127.0.0.1,5005,1,0.0-2.0,4000,15936\n");
    program.write("b.csv", "20261129005915,127.0.0.1,50146,127.0.0.1,5005,1,0.0-2.0,4000,15936\n");
    let import = ["import", "a.csv", "b.csv", "--transport", "tcp", "--size", "128K", "--out", "i.stacklab"];
    let outcome = program.run(&import).expect(code::DONE);
    let warnings: Vec<&str> =
        outcome.stdout.lines().filter(|line| line.starts_with("warning `tool_side`: ")).collect();
    assert_eq!(warnings.len(), 1, "{outcome}");
    assert!(warnings[0].contains("the direction (-R), or --bounceback (2 runs); use "), "{outcome}");
    let report = program.run(&["report", "i.stacklab"]).expect(code::DONE).stdout;
    assert!(report.contains("warning `tool_side`"), "{report}");
}

#[test]
fn rows_of_an_export_give_the_same_verdicts() {
    require_root();
    let program = Program::new();
    let study = TestStudy::new("a small study")
        .rate("100 Mbit/s")
        .families()
        .transports(&["udp"])
        .sizes(&[64, 512])
        .stream(&["throughput", "message_rate"])
        .time("60ms")
        .warmup("20ms")
        .blocks(6)
        .compare_families();
    program.write("study.toml", study.text());
    program.run(&["run", "study.toml", "--out", "a.stacklab", "--seed", "1"]).expect(code::DONE);
    program.run(&["export", "a.stacklab", "--out", "a.csv"]).expect(code::DONE);
    // The metrics that the study names are compared, and not all that the rows have.
    program.run(&["import", "a.csv", "--out", "b.stacklab"]).expect(code::DONE);
    let [a, b] = ["a.stacklab", "b.stacklab"].map(|record| report(&program, record));
    let [a_found, b_found] = [&a, &b].map(sort_comparisons);
    assert_eq!(a_found.len(), 4);
    assert!(a_found.iter().all(|[.., effect]| !effect.is_null()), "{a}");
    assert_eq!(a_found, b_found);
    // The imported record has the same rows again, but for what no export tells.
    program.run(&["export", "b.stacklab", "--out", "b.csv"]).expect(code::DONE);
    let [a, b] = ["a.csv", "b.csv"].map(|name| {
        let text = std::fs::read_to_string(program.work().join(name)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert_eq!(a, b);
}

/// The size, metric, verdict and effect of each comparison of a report.
fn sort_comparisons(report: &Value) -> Vec<[Value; 4]> {
    let mut all = Vec::new();
    for comparison in report["comparisons"].as_array().unwrap() {
        let size = &comparison["baseline"]["size"];
        let [metric, verdict, effect] = ["metric", "verdict", "effect"].map(|key| comparison[key].clone());
        all.push([size.clone(), metric, verdict, effect]);
    }
    all.sort_by_key(|[size, metric, ..]| format!("{size:>5} {metric}"));
    all
}
