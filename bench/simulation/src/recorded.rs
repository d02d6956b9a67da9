//! Trials that were recorded: an arm against itself, slice by slice.
//!
//! A campaign draws whole trials, with replacement. Which of a trial's arms is the candidate is drawn too, so that the
//! arms are alike on average whatever they were when recorded; then the candidate's slices get a known effect.

use crate::campaign::{Rule, Tally, campaign};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use stacklab_model::{
    ArmSchedule, Cell, Endpoint, Ends, Factor, Family, HostReport, Length, Metric, Offloads, Pacing, Probe,
    ProbeSpec, Question, Role, ScopedAddr, SizeOf, Slice, Transport, TrialSpec,
};
use stacklab_trial::Path;
use stacklab_trial::results::interleaved::joint_figures;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What `bench/slice-noise` recorded, by the machine's state.
pub const RECORDINGS: [(&str, &str); 2] =
    [("shared", include_str!("../recordings/shared.csv")), ("busy", include_str!("../recordings/busy.csv"))];

/// Trials of a probe over a transport.
#[derive(Debug, Clone)]
pub struct RecordedTrials {
    probe: Probe,
    transport: Transport,
    /// Figures of both arms by round: messages a second, or nanoseconds of a round trip; 0 where there is none.
    pub trials: Vec<[Vec<u64>; 2]>,
}

impl RecordedTrials {
    /// All trials of a recording, by probe and transport.
    pub fn all(slices: &str) -> Vec<RecordedTrials> {
        let mut all: Vec<RecordedTrials> = Vec::new();
        let mut rows = slices.lines().filter(|line| !line.starts_with('#')).skip(1).map(ArmRow::of);
        while let (Some(one), Some(other)) = (rows.next(), rows.next()) {
            assert!(one.block == other.block && (one.arm, other.arm) == ("a", "b"), "arms stand together");
            let trial = [one.rounds, other.rounds];
            match all.last_mut().filter(|of| (of.probe, of.transport) == (one.probe, one.transport)) {
                Some(of) => of.trials.push(trial),
                None => {
                    all.push(RecordedTrials {
                        probe: one.probe,
                        transport: one.transport,
                        trials: vec![trial],
                    });
                }
            }
        }
        all
    }

    /// Its name in tables.
    pub fn name(&self) -> String {
        format!("{} {}", self.probe, self.transport)
    }

    /// Candidate against baseline.
    pub fn question(&self, margin: f64) -> Question {
        let [baseline, candidate] = ["a", "b"].map(|arm| self.cell(arm));
        Question { factor: Factor::Replica, metric: self.metric(), baseline, candidate, margin }
    }

    /// The figures of each trial, (baseline, candidate), with arms that differ by `ratio`: with arm b as the candidate,
    /// and with arm a.
    pub fn figures(&self, ratio: f64) -> Vec<[(f64, f64); 2]> {
        self.trials.iter().map(|[a, b]| [[a, b], [b, a]].map(|arms| self.trial(arms, ratio))).collect()
    }

    /// Simulates campaigns with arms that differ by `ratio`.
    pub fn campaigns(&self, count: usize, seed: u128, margin: f64, rule: Rule, ratio: f64) -> Tally {
        // A trial gives the same figures whenever it is drawn.
        let figures = self.figures(ratio);
        let questions = [self.question(margin)];
        let mut generator = Pcg64Mcg::new(seed);
        let mut outcome = Tally::default();
        for _ in 0..count {
            let ended = campaign(&questions, rule, |_| {
                let trial = generator.random_range(0..figures.len());
                figures[trial][usize::from(generator.random::<bool>())]
            });
            outcome.add(&ended[0], ratio);
        }
        outcome
    }

    /// The figures of an interleaved trial, (baseline, candidate), as a campaign has them from its slices.
    fn trial(&self, [baseline, candidate]: [&Vec<u64>; 2], ratio: f64) -> (f64, f64) {
        let arms = [("a", baseline, 1.0), ("b", candidate, ratio)]
            .map(|(arm, rounds, ratio)| (path(), self.spec(arm), self.reports(rounds, ratio)));
        let found = joint_figures(&arms.each_ref().map(|(path, spec, reports)| (path, spec, reports)));
        let [baseline, candidate] = [0, 1].map(|arm| {
            found[arm].values.get(&self.metric()).and_then(|figure| figure.measured()).expect("five rounds")
        });
        (baseline, candidate)
    }

    fn metric(&self) -> Metric {
        if self.probe == Probe::Echo { Metric::Rtt } else { Metric::Throughput }
    }

    fn cell(&self, arm: &str) -> Cell {
        Cell { replica: arm.to_owned(), ..Cell::new(Family::Ipv4, self.transport, SizeOf::Payload, 512) }
    }

    fn spec(&self, arm: &str) -> TrialSpec {
        let probe = ProbeSpec {
            probe: self.probe,
            pacing: if self.probe == Probe::Echo { Pacing::Lockstep } else { Pacing::Flood },
            length: Length::Time(60_000_000),
            warmup_ns: 0,
            interval_ns: 10_000_000,
            metrics: vec![self.metric()],
        };
        TrialSpec { schedule: ArmSchedule::TokenPassing(None), ..TrialSpec::new(1, &self.cell(arm), probe) }
    }

    /// Reports of both hosts with such slices, figures times `ratio`.
    fn reports(&self, rounds: &[u64], ratio: f64) -> Ends<HostReport> {
        let slices = rounds.iter().zip(0..).map(|(figure, round)| match self.probe {
            Probe::Echo => {
                let delay_ns = Some((*figure as f64 * ratio).round() as u64).filter(|ns| *ns > 0);
                Slice { round, messages: ROUND_TRIPS, delay_ns, ..Slice::default() }
            }
            // That many messages in a second.
            _ => {
                Slice { round, messages: *figure, last_ns: (1e9 / ratio).round() as u64, ..Slice::default() }
            }
        });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 5000));
        let endpoint = Endpoint {
            family: Family::Ipv4,
            transport: self.transport,
            local: address,
            peer: address,
            interface: String::new(),
            interface_mtu: 1500,
            path_mtu: None,
            offloads: Offloads::default(),
            congestion_control: None,
            options: Default::default(),
        };
        let slices: Vec<Slice> = slices.collect();
        let report = |role| HostReport { slices: slices.clone(), ..HostReport::new(role, endpoint.clone()) };
        Ends { sender: report(Role::Sender), receiver: report(Role::Receiver) }
    }
}

/// Of each slice of an echo: the file has only their median.
const ROUND_TRIPS: u64 = 20;

/// A row of the file: an arm of a trial.
struct ArmRow<'a> {
    probe: Probe,
    transport: Transport,
    block: &'a str,
    arm: &'a str,
    rounds: Vec<u64>,
}

impl<'a> ArmRow<'a> {
    fn of(line: &'a str) -> Self {
        let [probe, transport, block, arm, rounds] =
            line.split(',').collect::<Vec<_>>().try_into().expect("a row has five fields");
        ArmRow {
            probe: probe.parse().expect("a probe"),
            transport: transport.parse().expect("a transport"),
            block,
            arm,
            rounds: rounds.split(' ').map(|figure| figure.parse().expect("a whole number")).collect(),
        }
    }
}

/// A path: figures of slices do not depend on it.
fn path() -> Path {
    let address = ScopedAddr::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Path {
        sender: address.clone(),
        receiver: address,
        mtu: 1500,
        planned_mtu: true,
        offloads: false,
        rate: None,
        shared: false,
        nat: None,
        opener: None,
        customers: Vec::new(),
    }
}
