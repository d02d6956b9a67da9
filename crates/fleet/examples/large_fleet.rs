//! A store with a large campaign, for `bench/fleet-report`: each block is that of a small campaign that was measured,
//! with other figures.
//!
//!     cargo run --release --example large_fleet -- SOURCE TARGET PAIRS BLOCKS

use postgres::NoTls;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use stacklab_analysis::block_summary;
use stacklab_campaign::sources::StudySource;
use stacklab_fleet::store::{AgentInfo, Class, NewCampaign, NewPair, Store};
use stacklab_fleet::{BlockResult, FleetStudy, study_of};
use stacklab_model::{Family, RunRecord, Value};
use std::collections::HashMap;
use std::error::Error;
use std::io::Write;

const NAME: &str = "large";
const MINUTE_NS: u64 = 60_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, pairs, blocks] = &args[..] else { return Err("SOURCE TARGET PAIRS BLOCKS".into()) };
    let (pairs, blocks): (u32, u32) = (pairs.parse()?, blocks.parse()?);
    let mut small = Store::open(source)?;
    let campaign = small.campaign(None)?.ok_or("SOURCE has no campaign")?;
    let (_, text) =
        small.results(&campaign.id, 0)?.into_iter().next().ok_or("its first pair has no result")?;
    let measured: BlockResult = serde_json::from_str(&text)?;
    let FleetStudy { name, text, scale, settings, seed } = study_of(&campaign)?;
    let study = FleetStudy::new(StudySource { name, text }, scale, settings, seed, blocks)?;
    let (known, _) = small.agents()?.into_iter().next().ok_or("SOURCE has no agent")?;
    let agent = |number: u32| AgentInfo { name: format!("a{number}"), ..known.clone() };
    let pair =
        |number: u32| NewPair { sender: agent(2 * number), receiver: agent(2 * number + 1), skipped: None };
    let mut large = Store::open(target)?;
    let agents: Vec<AgentInfo> = (0..2 * pairs).map(agent).collect();
    large.put_agents(&agents, 0)?;
    large.put_campaign(&NewCampaign {
        id: NAME.to_owned(),
        created_ns: campaign.created_ns,
        request: serde_json::to_string(&study)?,
        class: Class::Exclusive,
        most_attempts: 1,
        pairs: (0..pairs).map(pair).collect(),
        order: (0..blocks).flat_map(|_| 0..pairs).collect(),
    })?;
    let (checked, plan) = study.check()?;
    let questions = checked.questions();
    let by_trial: HashMap<_, &RunRecord> =
        measured.runs.iter().map(|run| ((run.trial.cell.clone(), run.trial.probe), run)).collect();
    let planned: Vec<_> =
        (0..blocks).map(|block| plan.active(&checked, plan.block(block), &[], &questions)).collect();
    let mut generator = Pcg64Mcg::seed_from_u64(seed);
    let mut rows = Rows::open(target)?;
    let mut runs = 0;
    for pair in 0..pairs {
        // Pairs differ in what IPv6 costs.
        let six = 0.95 + 0.1 * uniform(&mut generator);
        for (block, trials) in (0..).zip(&planned) {
            let mut result = BlockResult { runs: Vec::with_capacity(trials.len()), ..measured.clone() };
            for trial in trials {
                let of = by_trial
                    .get(&(trial.cell.clone(), trial.probe))
                    .ok_or("the small campaign lacks a trial")?;
                let mut run = RunRecord { trial: trial.clone(), ..(*of).clone() };
                // Those of the A/A check alone take more space than all else, and no report of a fleet reads them.
                run.host_reports.clear();
                run.started_unix_ns += u64::from(block) * MINUTE_NS;
                let arm = if trial.cell.family == Family::Ipv6 { six } else { 1.0 };
                for value in run.values.values_mut() {
                    if let Value::Measured(figure) = value {
                        *figure *= arm * (0.98 + 0.04 * uniform(&mut generator));
                    }
                }
                result.runs.push(run);
            }
            runs += result.runs.len();
            let summary = block_summary(&questions, &result.runs);
            rows.add(pair, block, &serde_json::to_string(&result)?, &serde_json::to_string(&summary)?)?;
        }
    }
    rows.finish()?;
    println!("{pairs} pairs of {blocks} blocks, {runs} runs");
    Ok(())
}

fn uniform(generator: &mut Pcg64Mcg) -> f64 {
    f64::from(generator.next_u32()) / f64::from(u32::MAX)
}

/// The rows of results, written many at a time: as leases and commits they would take hours.
enum Rows {
    Sqlite(rusqlite::Connection),
    Postgres(Box<postgres::Client>, [Vec<u8>; 2]),
}

const TABLES: [&str; 2] = ["result", "summary"];
/// Bytes of rows that are written at a time.
const PIECE: usize = 8 << 20;

impl Rows {
    fn open(target: &str) -> Result<Self, Box<dyn Error>> {
        if target.starts_with("postgres") {
            let client = postgres::Client::connect(target, NoTls)?;
            return Ok(Rows::Postgres(Box::new(client), Default::default()));
        }
        let connection = rusqlite::Connection::open(target)?;
        connection.execute_batch("BEGIN")?;
        Ok(Rows::Sqlite(connection))
    }

    fn add(&mut self, pair: u32, block: u32, result: &str, summary: &str) -> Result<(), Box<dyn Error>> {
        match self {
            Rows::Sqlite(connection) => {
                let insert = "INSERT INTO result VALUES (?1, ?2, ?3, 1, 0, ?4)";
                connection.prepare_cached(insert)?.execute((NAME, pair, block, result))?;
                let insert = "INSERT INTO summary VALUES (?1, ?2, ?3, ?4)";
                connection.prepare_cached(insert)?.execute((NAME, pair, block, summary))?;
            }
            Rows::Postgres(_, rows) => {
                let escaped = |text: &str| text.replace('\\', "\\\\");
                writeln!(rows[0], "{NAME}\t{pair}\t{block}\t1\t0\t{}", escaped(result))?;
                writeln!(rows[1], "{NAME}\t{pair}\t{block}\t{}", escaped(summary))?;
                if rows[0].len() > PIECE {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        if let Rows::Postgres(client, rows) = self {
            for (table, rows) in TABLES.iter().zip(rows) {
                let mut copy = client.copy_in(&format!("COPY {table} FROM STDIN"))?;
                copy.write_all(rows)?;
                copy.finish()?;
                rows.clear();
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Box<dyn Error>> {
        self.flush()?;
        let done = "UPDATE block SET state = 'done', attempts = 1";
        match self {
            Rows::Sqlite(connection) => connection.execute_batch(&format!("{done}; COMMIT; ANALYZE"))?,
            Rows::Postgres(mut client, _) => {
                client.batch_execute(done)?;
                client.batch_execute("VACUUM ANALYZE")?;
            }
        }
        Ok(())
    }
}
