//! Explanations in a record: read back unchanged, absent from older records, and refused where they are out of bounds.

use crate::made;
use rusqlite::Connection;
use stacklab_model::*;
use stacklab_store::{Campaign, Record};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn campaign() -> Campaign {
    Campaign { sample_period_ns: Some(200_000), ..made::campaign() }
}

fn explanations() -> Vec<Explanation> {
    let costs = StageCosts {
        cell: "stream udp 128 B payload".into(),
        arms: ["ipv4".into(), "ipv6".into()],
        stages: vec![
            make_cost("route lookup", [300.0, 400.0], Some(0.001)),
            make_cost("copy", [0.1 + 0.2, 0.0], Some(1.0)),
        ],
        unmapped: make_cost("unmapped", [0.0, 0.0], None),
        not_sampled: make_cost("not sampled", [9.0, 8.0], None),
        threads: make_cost("threads", [290.0, 380.0], None),
        outside: make_cost("outside them", [20.0, 28.0], None),
        busy: make_cost("busy", [310.0, 408.0], None),
        functions: vec![make_cost("fib6_table_lookup", [0.0, 90.0], Some(0.5))],
        stacks: vec![
            make_stack(&["entry", "fib_table_lookup"], [900, 0]),
            make_stack(&["user (stacklab)"], [3, 5]),
        ],
        health: Health {
            event: Default::default(),
            trials: 30,
            t95: 2.045,
            lock_ratio: 1.0,
            coverage: None,
            overhead: 0.1,
            unmapped: 0.0,
            other_load: 0.0,
            samples: 908,
            messages: 77,
            lost: 1,
            throttled: 2,
            unmapped_functions: vec!["f".into()],
        },
    };
    let with_costs = make_explanation(Why::Costs(Box::new(costs)));
    let counted = Explanation { exact: Some(Box::new(exact())), ..with_costs };
    let alone = Explanation { why: Why::NotSampled, ..counted.clone() };
    let of_programs =
        Explanation { programs: Some(Box::new(programs())), ..make_explanation(Why::NotSampled) };
    vec![counted, make_explanation(Why::Unknown("the time for it was over".into())), alone, of_programs]
}

fn programs() -> ProgramCounts {
    let function = FunctionCount {
        name: "answer".into(),
        file: "/bin/server".into(),
        offsets: Some([1, 2]),
        instructions: 30,
    };
    let rest = FunctionCount { name: "rest".into(), offsets: None, instructions: -10, ..function.clone() };
    let end = EndCounts { rounds: vec![[5, 20], [6, 11]], functions: vec![function, rest] };
    let cell = ProgramCell {
        program: "one".into(),
        family: Family::Ipv4,
        label: "IPv4 one".into(),
        client: end.clone(),
        server: end,
    };
    ProgramCounts {
        qemu: "7.2.22".into(),
        cpu: "max".into(),
        requests: [100, 200],
        cells: vec![cell.clone(), cell],
        pairs: vec![[0, 1]],
    }
}

fn make_explanation(why: Why) -> Explanation {
    Explanation {
        probe: Probe::Stream,
        factor: Factor::Family,
        baseline: Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128),
        candidate: Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 128),
        why,
        exact: None,
        programs: None,
    }
}

fn make_cost(name: &str, ns: [f64; 2], adjusted_p: Option<f64>) -> StageCost {
    StageCost { name: name.to_owned(), ns, difference_ns: ns[1] - ns[0], error_ns: 1.5, adjusted_p }
}

fn make_stack(functions: &[&str], samples: [u64; 2]) -> StackCost {
    StackCost {
        functions: functions.iter().copied().map(str::to_owned).collect(),
        samples,
        ns: samples.map(|samples| samples as f64 / 3.0),
    }
}

fn exact() -> ExactCounts {
    let cell = ExactCell {
        probe: ExactProbe::Udp,
        arms: [Family::Ipv4, Family::Ipv6].map(make_arm),
        messages: 10,
        total: [30, 44],
        rounds: vec![[14, 22], [16, 22]],
        stages: vec![
            make_row("route lookup", None, [20, 40]),
            make_row("programs in user space", None, [10, 4]),
        ],
        functions: vec![
            make_row("fib_lookup / fib6_lookup", Some("route lookup"), [20, 40]),
            make_row("programs in user space", None, [10, 4]),
        ],
    };
    ExactCounts { qemu: "7.2.22".into(), kernel: "6.1.0".into(), cells: vec![cell] }
}

fn make_arm(family: Family) -> ExactArm {
    ExactArm {
        family,
        path: ExactPath::Routed(Mechanism::SixInFour),
        size: 128,
        rules: 0,
        routes: 0,
        conntrack: Tracking::Off,
        firewall: Rules::default(),
        socket: SocketKind::Native,
    }
}

fn make_row(name: &str, stage: Option<&str>, instructions: [u64; 2]) -> ExactRow {
    ExactRow { name: name.into(), stage: stage.map(str::to_owned), instructions }
}

fn record() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.stacklab");
    let mut record = Record::create(&path, &campaign()).unwrap();
    record.put_explanations(&explanations()).unwrap();
    (folder, path)
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn what_goes_in_comes_out() {
    let (_folder, path) = record();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.campaign().unwrap(), campaign());
    assert_eq!(record.explanations().unwrap(), explanations());
}

#[test]
fn a_record_without_the_table_of_programs_gets_it() {
    let (_folder, path) = record();
    execute(&path, "DROP TABLE program_count");
    assert!(Record::read(&path).unwrap().explanations().unwrap().iter().all(|one| one.programs.is_none()));
    let mut record = Record::open(&path).unwrap();
    let last = explanations().pop().unwrap();
    record.put_explanations(std::slice::from_ref(&last)).unwrap();
    assert_eq!(record.explanations().unwrap().last(), Some(&last));
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let cost = "kind, name, baseline_ns, candidate_ns, difference_ns, error_ns";
    for change in [
        "UPDATE explanation SET factor = 'no factor'".to_owned(),
        "UPDATE explanation SET baseline = replace(baseline, '128', '99999999999999999999')".to_owned(),
        "UPDATE explanation SET health = '{}' WHERE id = 2".to_owned(),
        "UPDATE campaign SET sample_period_ns = -1".to_owned(),
        "UPDATE stage_cost SET baseline_ns = 9e999".to_owned(),
        "UPDATE stage_cost SET kind = 'whole'".to_owned(),
        "DELETE FROM stage_cost".to_owned(),
        "UPDATE stage_cost SET name = printf('%.*c', 70000, 'x')".to_owned(),
        "UPDATE stack_cost SET baseline_samples = -1".to_owned(),
        "UPDATE stack_cost SET candidate_ns = -9e999".to_owned(),
        "UPDATE stack_cost SET functions = printf('%.*c', 70000, 'x')".to_owned(),
        "UPDATE stack_cost SET functions = printf('%.*c', 513, ';')".to_owned(),
        "UPDATE exact_count SET messages = 0".to_owned(),
        "UPDATE exact_count SET rounds = '[[1,2]]'".to_owned(),
        "UPDATE exact_count SET rounds = '[[9223372036854775807,1],[9223372036854775807,1],[2,2]]'"
            .to_owned(),
        "UPDATE exact_count SET arms = replace(arms, '6in4', 'x')".to_owned(),
        "UPDATE instruction_count SET baseline = -1".to_owned(),
        "DELETE FROM instruction_count WHERE kind = 'function'".to_owned(),
        "UPDATE instruction_count SET name = printf('%.*c', 70000, 'x')".to_owned(),
        "UPDATE program_count SET requests = '[100,100]'".to_owned(),
        "UPDATE program_count SET cells = '[]'".to_owned(),
        "UPDATE program_count SET cells = replace(cells, '-10', '-11')".to_owned(),
        "UPDATE program_count SET cells = replace(cells, '[[5,20],[6,11]]', '[]')".to_owned(),
        insert_many("instruction_count", "kind, name, baseline, candidate", "'stage', 'x', 0, 0"),
        insert_many("stage_cost", cost, "'stage', 'x', 1, 1, 0, 1"),
        insert_many(
            "stack_cost",
            "functions, baseline_samples, candidate_samples, baseline_ns, candidate_ns",
            "'x', 1, 1, 1, 1",
        ),
    ] {
        let (_folder, path) = record();
        execute(&path, &change);
        let record = Record::read(&path).unwrap();
        let refused = record.campaign().map(drop).and_then(|()| record.explanations().map(drop));
        assert!(refused.is_err(), "{change} was taken");
    }
}

/// A statement that adds more rows to a table than a record may have.
fn insert_many(table: &str, columns: &str, values: &str) -> String {
    format!(
        "INSERT INTO {table} (explanation, place, {columns})
         WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT 1, i, {values} FROM n"
    )
}
