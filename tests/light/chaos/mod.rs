//! Campaigns that are disturbed at random moments. Whatever happens, only the record remains, it is whole, and what was
//! disturbed says so.
//!
//! `make chaos ROUNDS=500 SEED=1` runs many rounds, with guests and with disturbances that take long. A seed repeats
//! its round. `ONLY=TEXT` passes seeds over whose disturbance has another name.

mod campaign;
mod clock;
mod disturbance;
mod memory_group;
mod round;

use crate::support::program::require_root;
use crate::support::random::Random;
use campaign::Kind;
use disturbance::Disturbance;
use round::{Outcome, disturbed, drawn};
use stacklab_model::SplitMix64;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Rounds and first seed without others in the environment: every kind of campaign, and almost every disturbance.
const ROUNDS: u64 = 10;
const SEED: u64 = 8033;

fn asked(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn whatever_is_disturbed_only_a_whole_record_remains() {
    require_root();
    let rounds = asked("STACKLAB_CHAOS_ROUNDS", ROUNDS);
    let first = asked("STACKLAB_CHAOS_SEED", SEED);
    let is_long = std::env::var_os("STACKLAB_CHAOS_LONG").is_some();
    let began = Instant::now();
    let mut outcomes: BTreeMap<String, Vec<Outcome>> = BTreeMap::new();
    let mut failed = Vec::new();
    let mut missing = BTreeMap::new();
    let only = std::env::var("STACKLAB_CHAOS_ONLY").unwrap_or_default();
    let seeds = (first..).filter(|seed| drawn(*seed, is_long).1.to_string().contains(&only));
    for seed in seeds.take(rounds as usize) {
        let start = Instant::now();
        let (kind, disturbance, mut random) = drawn(seed, is_long);
        match catch_unwind(AssertUnwindSafe(|| disturbed(kind, disturbance, &mut random, seed))) {
            Ok(Ok(outcome)) => {
                println!("seed {seed}: {outcome}, {:.1} s", start.elapsed().as_secs_f64());
                outcomes.entry(outcome.kind.clone()).or_default().push(outcome);
            }
            Ok(Err(reason)) => {
                println!("seed {seed}: NOT DISTURBED: {reason}");
                *missing.entry(reason).or_insert(0) += 1;
            }
            Err(_) => {
                let long = if is_long { "STACKLAB_CHAOS_LONG=1 " } else { "" };
                println!(
                    "seed {seed}: FAILED; repeat with {long}STACKLAB_CHAOS_ROUNDS=1 STACKLAB_CHAOS_SEED={seed} \
                     cargo nextest run --profile all chaos"
                );
                failed.push(seed);
            }
        }
    }
    for (kind, outcomes) in &outcomes {
        let waits = outcomes.iter().map(|outcome| outcome.waited).max().unwrap_or_default();
        println!("{:>5} {kind}: longest wait {:.1} s", outcomes.len(), waits.as_secs_f64());
    }
    let all: Vec<&Outcome> = outcomes.values().flatten().collect();
    let ended = all.iter().filter(|outcome| outcome.ended).count();
    let whole = all.iter().filter(|outcome| outcome.has_record).count();
    let resumed = all.iter().filter(|outcome| outcome.is_resumed).count();
    let longest = all.iter().map(|outcome| outcome.waited).max().unwrap_or(Duration::ZERO);
    println!(
        "note: {rounds} rounds from seed {first}: {} passed, {} failed {failed:?}; in {ended} the disturbance ended the campaign; {whole} records \
         whole, {resumed} resumed to their plan; longest wait {:.1} s; {:.0} s in all",
        all.len(),
        failed.len(),
        longest.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    for (reason, count) in missing {
        println!("note: NOT DISTURBED, and not counted as passed: {count} rounds, since {reason}");
    }
    assert!(failed.is_empty(), "rounds of the seeds {failed:?} failed");
}

#[test]
fn setting_the_clock_of_a_guest_changes_no_figure() {
    require_root();
    for (seed, kind) in [(1, Kind::Separate), (2, Kind::Interleaved)] {
        let outcome = disturbed(kind, Disturbance::ClockSet(seed), &mut Random(SplitMix64(seed)), seed);
        println!("note: {}", outcome.unwrap());
    }
}
