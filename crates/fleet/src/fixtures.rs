//! A study and the result of a block, for tests.

use crate::message::BlockResult;
use crate::study::FleetStudy;
use stacklab_campaign::sources::StudySource;
use stacklab_model::{CpuScope, Drops, HostFacts, RunRecord, RunStatus, Trial, TrialSpec};
use stacklab_store::HostRow;

/// How long each run takes, and when the first one begins, nanoseconds.
pub(crate) const WALL_NS: u64 = 1_000_000;
pub(crate) const BEGAN_NS: u64 = 1_000_000_000_000;

/// Two blocks of the quickstart.
pub(crate) fn study() -> FleetStudy {
    let source = StudySource {
        name: "quickstart".to_owned(),
        text: include_str!("../../../studies/quickstart.toml").to_owned(),
    };
    FleetStudy::new(source, None, vec![], 1, 2).unwrap()
}

/// The whole result of a block, measured by `a` and `b`.
pub(crate) fn result(block: u32) -> BlockResult {
    let (study, plan) = study().check().unwrap();
    let trials = plan.active(&study, plan.block(block), &[], &study.questions());
    let runs = (0..).zip(trials).map(|(number, trial): (u64, Trial)| RunRecord {
        spec: TrialSpec::new(1, &trial.cell, study.probe(trial.probe).unwrap().clone()),
        trial,
        started_unix_ns: BEGAN_NS + number * WALL_NS,
        wall_ns: WALL_NS,
        status: RunStatus::Valid,
        values: Default::default(),
        drops: Drops::default(),
        host_reports: Vec::new(),
        warnings: Vec::new(),
    });
    let hosts = [("sender", "a"), ("receiver", "b")].map(|(name, kind)| HostRow {
        name: name.to_owned(),
        kind: kind.to_owned(),
        since_unix_ns: 0,
        facts: HostFacts::default(),
    });
    BlockResult {
        path: "to b".to_owned(),
        cpu_scope: CpuScope::Shared,
        hosts: hosts.to_vec(),
        runs: runs.collect(),
    }
}
