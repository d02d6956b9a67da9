//! Writes a record of many simulated runs, to test reports of large campaigns: `large FILE RUNS`. Each run is
//! committed like a real one; in /dev/shm thousands of runs take seconds.

#[allow(dead_code, reason = "tests make more")]
#[path = "../tests/record/made.rs"]
mod made;

use stacklab_model::{
    Buckets, Cell, Family, IntervalRow, Length, Metric, Probe, ProbeSpec, RunRecord, RunStatus, SizeOf,
    Transport, Trial, TrialSpec, Value,
};
use stacklab_store::{Campaign, Record};
use std::path::Path;

const SIZES: [u32; 6] = [128, 384, 640, 896, 1152, 1408];
const STREAM: [Metric; 4] = [Metric::Throughput, Metric::Loss, Metric::OneWayDelay, Metric::Jitter];
const SECOND: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(runs)) = (args.next(), args.next()) else { return Err("large FILE RUNS".into()) };
    let started = 1_700_000_000 * SECOND;
    let mut record = Record::create(
        Path::new(&path),
        &Campaign {
            created_unix_ns: started,
            study_name: "quickstart.toml".to_owned(),
            study_text: include_str!("../../../studies/quickstart.toml").to_owned(),
            scale: None,
            settings: ["blocks.min=1000", "blocks.max=1000", "blocks.budget=700h"]
                .map(str::to_owned)
                .to_vec(),
            seed: 1,
            ..made::campaign()
        },
    )?;
    let mut block = 0;
    let mut position = 0;
    for number in 0..runs.parse::<u64>()? {
        let trials = 2 * 2 * 2 * SIZES.len() as u32;
        let place = position as usize;
        let family = Family::ALL[place % 2];
        let transport = Transport::ALL[place / 2 % 2];
        let cell = Cell::new(family, transport, SizeOf::Payload, SIZES[place / 8]);
        let probe = if (place / 4).is_multiple_of(2) { Probe::Stream } else { Probe::Echo };
        let trial = Trial { block, position, cell, probe };
        record.put_run(&RunRecord { started_unix_ns: started + number * SECOND, ..run(trial, number) })?;
        position += 1;
        if position == trials {
            (block, position) = (block + 1, 0);
        }
    }
    Ok(())
}

/// A pseudorandom number between 0 and 1.
fn noise(seed: u64) -> f64 {
    let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31);
    (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) as f64 / (1u64 << 53) as f64
}

fn run(trial: Trial, number: u64) -> RunRecord {
    let metrics = if trial.probe == Probe::Stream { STREAM.to_vec() } else { vec![Metric::Rtt] };
    let applies = metrics.iter().filter(|metric| metric.applies_to(trial.cell.transport));
    let values = applies.map(|metric| (*metric, draw_value(*metric, &trial.cell, number))).collect();
    let made = made::run(trial.block, trial.position, RunStatus::Valid);
    let probe = ProbeSpec {
        probe: trial.probe,
        length: Length::Time(SECOND),
        interval_ns: SECOND / 10,
        metrics,
        ..(*made.spec.probe).clone()
    };
    let spec = TrialSpec::new(number as u32, &trial.cell, probe);
    let mut run = RunRecord { trial, spec, wall_ns: SECOND, values, warnings: vec![], ..made };
    for report in &mut run.host_reports {
        report.slices.clear();
        if let Some(delays) = &mut report.delays {
            let mut buckets = Vec::new();
            for i in 0..200 {
                buckets.push((10_000 + 137 * i, 1 + (100.0 * noise(number + i)) as u64));
            }
            delays.buckets = Buckets(buckets);
        }
        let mut series = Vec::new();
        for i in 0..10 {
            series.push(IntervalRow {
                start_ns: i * SECOND / 10,
                messages: 100,
                bytes: 100_000 + (10_000.0 * noise(i * number)) as u64,
                delay_mean_ns: Some(20_000.0),
            });
        }
        report.series = series;
    }
    run
}

fn draw_value(metric: Metric, cell: &Cell, number: u64) -> Value {
    let cost = if cell.family == Family::Ipv6 { 0.02 } else { 0.0 };
    let near = 1.0 + 0.1 * noise(number * 64 + metric as u64) + cost;
    Value::Measured(near * if metric == Metric::Throughput { f64::from(cell.size) } else { 0.01 })
}
