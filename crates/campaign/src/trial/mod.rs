//! One trial, from a cell's settings to its evidence and its run.

pub mod clock;
pub mod figures;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod other_load;
pub(crate) mod prepared;
pub(crate) mod routers;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod searched;
pub(crate) mod sockets;
pub(crate) mod source;
pub mod spec;
pub(crate) mod wifi;

use clock::ClockSync;
use other_load::OtherLoad;
use routers::RouterEvidence;
use stacklab_model::{EntryMemory, Generator, Metric, RunRecord, Service, Station, Value};
use stacklab_protocols::generators::Figures as ToolFigures;
use stacklab_testbed::Ticks;
use stacklab_testbed::services::Asked;
use stacklab_trial::Collected;
use stacklab_trial::results::interleaved::JointFigures;
use std::collections::BTreeMap;
use wifi::WifiEvidence;

/// An adapter before and after a trial: its state, or a sentence that says why it has none.
pub(crate) type AdapterEvidence = [Result<Station, String>; 2];

/// The figures of a program, or why there are none.
pub(crate) type ProgramFigures = Result<BTreeMap<Metric, Value>, String>;

#[derive(Debug)]
pub(crate) struct GeneratorEvidence {
    pub generator: Generator,
    /// Its figures, or why there are none.
    pub figures: Result<ToolFigures, String>,
}

/// A run whose figures were kept if it was interrupted.
#[derive(Debug)]
pub struct SingleRun {
    /// What was measured.
    pub run: RunRecord,
    /// How long it was, if it was interrupted.
    pub interrupted_after_ns: Option<u64>,
}

/// A rig's observations of one trial.
#[derive(Debug)]
pub struct Evidence {
    /// The reports of both agents.
    pub collected: Collected,
    /// For the sender's and the receiver's host: CPU time of a guest's processes before and after the trial, counted
    /// on this machine, if the guest does not count all of its CPU time itself.
    pub(crate) guest_cpu: [Option<[Ticks; 2]>; 2],
    /// Queries to each service on the receiver's host; `None` without services.
    pub(crate) services: Option<BTreeMap<Service, Asked>>,
    pub(crate) routers: Option<RouterEvidence>,
    /// What each further entry of the near router's tables took of its kernel's memory; empty where it is unknown.
    pub(crate) entry_memory: Vec<EntryMemory>,
    /// The Wi-Fi network, if the path is one.
    pub(crate) wifi: Option<WifiEvidence>,
    /// The Wi-Fi adapters of real machines: the sender's and the receiver's.
    pub(crate) adapters: [Option<AdapterEvidence>; 2],
    /// How the hosts' clocks are synchronised.
    pub clocks: ClockSync,
    /// What others had of this machine's processors, if a host of the trial is on it.
    pub(crate) other_load: Option<OtherLoad>,
    /// The output of another program that drove the trial; `None` if it was stacklab's own generator.
    pub(crate) generator: Option<GeneratorEvidence>,
    /// The figures of a program of the study's own; `None` if the trial is of none.
    pub(crate) program: Option<ProgramFigures>,
    /// The joint figures of the arm of an interleaved trial; none otherwise.
    pub(crate) joint: JointFigures,
}

impl Evidence {
    /// The reports of two agents on hosts with one clock, without other evidence.
    pub fn of(collected: Collected) -> Self {
        Evidence {
            collected,
            guest_cpu: [None, None],
            services: None,
            routers: None,
            entry_memory: Vec::new(),
            wifi: None,
            adapters: [None, None],
            clocks: ClockSync::Same,
            other_load: None,
            generator: None,
            program: None,
            joint: JointFigures::default(),
        }
    }
}
