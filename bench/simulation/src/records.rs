//! Two records of the same thing: how often `compare` claims a difference that does not exist.

use crate::runs::{SKEWED_MEAN, SKEWED_SD, Simulation, Spread};
use stacklab_analysis::{RecordedCampaign, between};
use stacklab_model::{
    Cell, Change, CpuScope, Family, Length, LinkConfig, Metric, Pacing, Probe, ProbeSpec, RunRecord, SizeOf,
    StoppingRule, Topology, Transport, Trial, Until, Value,
};

/// How the logarithms of a record's figures are spread about their middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RecordNoise {
    /// Normal, of this standard deviation.
    Normal(f64),
    /// Skewed as delays are, of this standard deviation: log-normal of 0.8, about its trimmed mean.
    Skewed(f64),
    /// One run in five in a state that is 8 standard deviations of the others above them.
    States(f64),
}

/// The 20 % trimmed mean of a log-normal figure of 0.8, in its standard deviations from its mean.
const SKEWED_MIDDLE: f64 = -0.235_408_407_3;

impl RecordNoise {
    fn draw(self, simulation: &mut Simulation) -> f64 {
        match self {
            RecordNoise::Normal(sd) => sd * simulation.normal(),
            RecordNoise::Skewed(sd) => {
                let figure = (0.8 * simulation.normal()).exp();
                sd * ((figure - SKEWED_MEAN) / SKEWED_SD - SKEWED_MIDDLE)
            }
            RecordNoise::States(sd) => {
                let state = if simulation.uniform() < 0.2 { 2.0 } else { -0.5 };
                sd * (0.3 * simulation.normal() + state)
            }
        }
    }
}

/// Two records without a difference.
#[derive(Debug, Clone, Copy)]
pub struct Records {
    /// What they are like.
    pub name: &'static str,
    /// Of each record.
    pub noise: [RecordNoise; 2],
    /// Runs of each.
    pub runs: [usize; 2],
    /// Figures that are compared.
    pub figures: usize,
}

/// The pairs of records that are simulated.
pub fn all() -> Vec<Records> {
    let skewed = RecordNoise::Skewed(0.05);
    let states = RecordNoise::States(0.03);
    let normal = RecordNoise::Normal(0.02);
    let kinds = [
        ("skewed", [skewed; 2], [8, 40]),
        ("skewed", [skewed; 2], [6, 6]),
        ("two states", [states; 2], [8, 40]),
        ("two states", [states; 2], [6, 6]),
        ("quiet, 10 % and skewed", [RecordNoise::Normal(0.01), RecordNoise::Skewed(0.1)], [8, 8]),
        ("both skewed, 1 and 10 %", [RecordNoise::Skewed(0.01), RecordNoise::Skewed(0.1)], [8, 8]),
        ("both skewed, 1 and 10 %", [RecordNoise::Skewed(0.01), RecordNoise::Skewed(0.1)], [16, 16]),
        ("normal", [normal; 2], [8, 40]),
        ("normal", [normal; 2], [20, 20]),
    ];
    let mut all = Vec::new();
    for (name, noise, runs) in kinds {
        all.extend([1, 20].map(|figures| Records { name, noise, runs, figures }));
    }
    all
}

/// The share of comparisons of two such records with a false claim.
pub fn simulate(count: usize, seed: u128, records: &Records) -> f64 {
    let mut simulation = Simulation::new(seed, Spread::LogNormal, 1.0);
    let cells: Vec<Cell> = (0..records.figures).map(make_cell).collect();
    let probes = [probe()];
    let mut wrong = 0;
    for _ in 0..count {
        let [a, b] = [0, 1].map(|side| {
            let Records { noise, runs, .. } = records;
            draw_runs(&mut simulation, &cells, noise[side], runs[side])
        });
        let campaigns = [&campaign(&cells, &probes, &a), &campaign(&cells, &probes, &b)];
        let found = between(campaigns, ["A", "B"], &[], None).expect("both have all cells");
        let claims =
            found.figures.iter().any(|figure| matches!(figure.change, Change::Better | Change::Worse));
        wrong += usize::from(claims);
    }
    wrong as f64 / count as f64
}

/// Cells that differ in their sizes.
fn make_cell(number: usize) -> Cell {
    Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 100 + number as u32)
}

fn probe() -> ProbeSpec {
    ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Flood,
        length: Length::Packets(1),
        warmup_ns: 0,
        interval_ns: 1,
        metrics: vec![Metric::Throughput],
    }
}

fn draw_runs(
    simulation: &mut Simulation,
    cells: &[Cell],
    noise: RecordNoise,
    count: usize,
) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for cell in cells {
        for block in 0..count as u32 {
            let figure = 100.0 * noise.draw(simulation).exp();
            let trial = Trial { block, position: 0, cell: cell.clone(), probe: Probe::Stream };
            runs.push(RunRecord::with_value(trial, Metric::Throughput, Value::Measured(figure)));
        }
    }
    runs
}

fn campaign<'a>(cells: &'a [Cell], probes: &'a [ProbeSpec], runs: &'a [RunRecord]) -> RecordedCampaign<'a> {
    const LINK: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };
    RecordedCampaign {
        is_resumable: false,
        title: "simulated",
        version: "0.1.0",
        started_unix_ns: 1,
        seed: 1,
        link_config: &LINK,
        topology: &Topology::Link,
        testbed_description: "simulated",
        hosts: &[],
        cpu_scope: CpuScope::Shared,
        rule: &StoppingRule { min: 2, max: 200, until: Until::Verdict, target: 0.01, budget_ns: None },
        cells,
        probes,
        questions: &[],
        stop_reasons: &[],
        settled: &[],
        runs,
        throttled_us: 0,
        is_sampled: false,
        explanations: &[],
        uncounted: &[],
    }
}

/// Prints all of them.
pub fn print(count: usize) {
    println!("\nTwo records of the same thing: per cent of comparisons with any false claim (at most 5).\n");
    println!("{:<26} {:>7} {:>7} {:>7}", "noise", "runs", "figures", "false");
    for (place, records) in all().iter().enumerate() {
        let wrong = simulate(count, (0x1010 + place as u128) << 32, records);
        let runs = format!("{}/{}", records.runs[0], records.runs[1]);
        println!("{:<26} {runs:>7} {:>7} {:>7.2}", records.name, records.figures, 100.0 * wrong);
    }
}
