//! A store with a large campaign, for `bench/fleet-report`: each block is that of a small campaign that was measured,
//! with other figures.
//!
//!     cargo run --release --example large_fleet -- SOURCE TARGET PAIRS BLOCKS

use postgres::NoTls;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use stacklab_analysis::block_summary;
use stacklab_campaign::sources::StudySource;
use stacklab_fleet::store::{AgentInfo, CampaignRow, Class, NewCampaign, NewPair, Store};
use stacklab_fleet::{BlockResult, FleetStudy, study_of};
use stacklab_model::{Family, RunRecord, Trial, Value};
use std::error::Error;
use std::io::Write;

const NAME: &str = "large";
const MINUTE_NS: u64 = 60_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, pairs, blocks] = &args[..] else { return Err("SOURCE TARGET PAIRS BLOCKS".into()) };
    let size = Size { pairs: pairs.parse()?, blocks: blocks.parse()? };
    let small = SmallCampaign::read(source)?;
    let FleetStudy { name, text, scale, settings, seed } = study_of(&small.campaign)?;
    let study = FleetStudy::new(StudySource { name, text }, scale, settings, seed, size.blocks)?;
    put_campaign(target, &small, &study, size)?;
    let runs = put_results(target, &small, &study, size)?;
    println!("{pairs} pairs of {blocks} blocks, {runs} runs");
    Ok(())
}

/// The size of the large campaign.
#[derive(Clone, Copy)]
struct Size {
    pairs: u32,
    /// Blocks of each pair.
    blocks: u32,
}

/// A campaign that was measured, one of its agents, and the result of a block.
struct SmallCampaign {
    campaign: CampaignRow,
    agent: AgentInfo,
    measured: BlockResult,
}

impl SmallCampaign {
    fn read(source: &str) -> Result<Self, Box<dyn Error>> {
        let mut store = Store::open(source)?;
        let campaign = store.campaign(None)?.ok_or("SOURCE has no campaign")?;
        let (_, text) =
            store.results(&campaign.id, 0)?.into_iter().next().ok_or("its first pair has no result")?;
        let (agent, _) = store.agents()?.into_iter().next().ok_or("SOURCE has no agent")?;
        Ok(SmallCampaign { measured: serde_json::from_str(&text)?, campaign, agent })
    }
}

/// Stores the agents and the plan of the large campaign.
fn put_campaign(
    target: &str,
    small: &SmallCampaign,
    study: &FleetStudy,
    size: Size,
) -> Result<(), Box<dyn Error>> {
    let mut agents = Vec::new();
    for number in 0..2 * size.pairs {
        agents.push(AgentInfo { name: format!("a{number}"), ..small.agent.clone() });
    }
    let mut pairs = Vec::new();
    for two in agents.chunks_exact(2) {
        pairs.push(NewPair { sender: two[0].clone(), receiver: two[1].clone(), skipped: None });
    }
    let mut store = Store::open(target)?;
    store.put_agents(&agents, 0)?;
    store.put_campaign(&NewCampaign {
        id: NAME.to_owned(),
        created_ns: small.campaign.created_ns,
        request: serde_json::to_string(study)?,
        class: Class::Exclusive,
        most_attempts: 1,
        pairs,
        order: (0..size.blocks).flat_map(|_| 0..size.pairs).collect(),
    })?;
    Ok(())
}

/// Stores a result for each block of each pair. Returns the number of runs.
fn put_results(
    target: &str,
    small: &SmallCampaign,
    study: &FleetStudy,
    size: Size,
) -> Result<usize, Box<dyn Error>> {
    let (checked, plan) = study.check()?;
    let questions = checked.questions();
    let planned: Vec<Vec<Trial>> =
        (0..size.blocks).map(|block| plan.active(&checked, plan.block(block), &[], &questions)).collect();
    let mut generator = Pcg64Mcg::seed_from_u64(study.seed);
    let mut rows = ResultRows::open(target)?;
    let mut runs = 0;
    for pair in 0..size.pairs {
        // Pairs differ in what IPv6 costs.
        let six = 0.95 + 0.1 * uniform(&mut generator);
        for (block, trials) in (0..).zip(&planned) {
            let result = make_result(&small.measured, trials, block, six, &mut generator)?;
            runs += result.runs.len();
            let summary = block_summary(&questions, &result.runs);
            rows.add(pair, block, &serde_json::to_string(&result)?, &serde_json::to_string(&summary)?)?;
        }
    }
    rows.finish()?;
    Ok(runs)
}

/// A block like the one that was measured, whose figures vary. `six` is what IPv6 costs.
fn make_result(
    measured: &BlockResult,
    trials: &[Trial],
    block: u32,
    six: f64,
    generator: &mut Pcg64Mcg,
) -> Result<BlockResult, Box<dyn Error>> {
    let mut result = BlockResult { runs: Vec::with_capacity(trials.len()), ..measured.clone() };
    for trial in trials {
        // The last one of a cell, if there are several.
        let like = measured
            .runs
            .iter()
            .rfind(|run| run.trial.cell == trial.cell && run.trial.probe == trial.probe)
            .ok_or("the small campaign lacks a trial")?;
        let mut run = RunRecord { trial: trial.clone(), ..like.clone() };
        // Those of the A/A check alone take more space than all else, and no report of a fleet reads them.
        run.host_reports.clear();
        run.started_unix_ns += u64::from(block) * MINUTE_NS;
        let arm = if trial.cell.family == Family::Ipv6 { six } else { 1.0 };
        for (_, value) in run.values.iter_mut() {
            if let Value::Measured(figure) = value {
                *figure *= arm * (0.98 + 0.04 * uniform(generator));
            }
        }
        result.runs.push(run);
    }
    Ok(result)
}

fn uniform(generator: &mut Pcg64Mcg) -> f64 {
    f64::from(generator.next_u32()) / f64::from(u32::MAX)
}

/// The rows of results, written many at a time: as leases and commits they would take hours.
enum ResultRows {
    Sqlite(rusqlite::Connection),
    Postgres(Box<postgres::Client>, [Vec<u8>; 2]),
}

const TABLES: [&str; 2] = ["result", "summary"];
/// Bytes of rows that are written at a time.
const PIECE: usize = 8 << 20;

impl ResultRows {
    fn open(target: &str) -> Result<Self, Box<dyn Error>> {
        if target.starts_with("postgres") {
            let client = postgres::Client::connect(target, NoTls)?;
            return Ok(ResultRows::Postgres(Box::new(client), Default::default()));
        }
        let connection = rusqlite::Connection::open(target)?;
        connection.execute_batch("BEGIN")?;
        Ok(ResultRows::Sqlite(connection))
    }

    fn add(&mut self, pair: u32, block: u32, result: &str, summary: &str) -> Result<(), Box<dyn Error>> {
        match self {
            ResultRows::Sqlite(connection) => {
                let insert = "INSERT INTO result VALUES (?1, ?2, ?3, 1, 0, ?4)";
                connection.prepare_cached(insert)?.execute((NAME, pair, block, result))?;
                let insert = "INSERT INTO summary VALUES (?1, ?2, ?3, ?4)";
                connection.prepare_cached(insert)?.execute((NAME, pair, block, summary))?;
            }
            ResultRows::Postgres(_, rows) => {
                writeln!(rows[0], "{NAME}\t{pair}\t{block}\t1\t0\t{}", escape_backslashes(result))?;
                writeln!(rows[1], "{NAME}\t{pair}\t{block}\t{}", escape_backslashes(summary))?;
                if rows[0].len() > PIECE {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        if let ResultRows::Postgres(client, rows) = self {
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
            ResultRows::Sqlite(connection) => {
                connection.execute_batch(&format!("{done}; COMMIT; ANALYZE"))?
            }
            ResultRows::Postgres(mut client, _) => {
                client.batch_execute(done)?;
                client.batch_execute("VACUUM ANALYZE")?;
            }
        }
        Ok(())
    }
}

fn escape_backslashes(text: &str) -> String {
    text.replace('\\', "\\\\")
}
