//! Explanations in and out of a record: why cells differ, by stage of the network stack and by exact counts.

use crate::open::{
    MAX_ROWS, collect_at_most, count, figure, from_json, json, named, not_understood, short, to_json,
};
use crate::programs::{insert_program_counts, select_program_counts};
use crate::{Record, StoreError};
use rusqlite::{Connection, OptionalExtension, params};
use stacklab_model::{ExactCell, ExactCounts, ExactRow, Explanation, StackCost, StageCost, StageCosts, Why};

/// Most explanations of a record: no study has more.
const MAX_EXPLANATIONS: usize = 1 << 12;
/// Most functions of a call chain: the kernel gives at most 127 by default.
const MAX_FUNCTIONS: usize = 512;
const CALLS: &str = ";";

impl Record {
    /// Adds explanations, in one commit.
    pub fn put_explanations(&mut self, all: &[Explanation]) -> Result<(), StoreError> {
        self.commit("store an explanation", |transaction| {
            all.iter().try_for_each(|explanation| insert(transaction, explanation))
        })
    }

    /// Every explanation, in the order they were added.
    pub fn explanations(&self) -> Result<Vec<Explanation>, StoreError> {
        select(&self.connection).map_err(|e| self.error("read the explanations", e))
    }
}

fn insert(connection: &Connection, explanation: &Explanation) -> rusqlite::Result<()> {
    let Explanation { probe, factor, baseline, candidate, why, exact, programs } = explanation;
    let (costs, reason) = match why {
        Why::Costs(costs) => (Some(costs), None),
        Why::Unknown(reason) => (None, Some(reason)),
        Why::NotSampled => (None, None),
    };
    connection.execute(
        "INSERT INTO explanation (probe, factor, baseline, candidate, health, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            probe.name(),
            factor.name(),
            to_json(baseline),
            to_json(candidate),
            costs.map(|costs| to_json(&costs.health)),
            reason
        ],
    )?;
    let id = connection.last_insert_rowid();
    if let Some(exact) = exact {
        insert_counts(connection, id, exact)?;
    }
    if let Some(programs) = programs {
        insert_program_counts(connection, id, programs)?;
    }
    let Some(costs) = costs else { return Ok(()) };
    let mut add = connection.prepare_cached(
        "INSERT INTO stage_cost (explanation, place, kind, name, baseline_ns, candidate_ns, difference_ns, error_ns, adjusted_p)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut rows = Vec::new();
    rows.extend(costs.stages.iter().map(|cost| ("stage", cost)));
    rows.extend(costs.sums().into_iter().map(|cost| ("whole", cost)));
    rows.extend(costs.functions.iter().map(|cost| ("function", cost)));
    for (place, (kind, cost)) in (0_i64..).zip(rows) {
        let StageCost { name, ns: [baseline, candidate], difference_ns: difference, error_ns, adjusted_p } =
            cost;
        add.execute(params![id, place, kind, name, baseline, candidate, difference, error_ns, adjusted_p])?;
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO stack_cost (explanation, place, functions, baseline_samples, candidate_samples, baseline_ns, candidate_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (place, stack) in (0_i64..).zip(&costs.stacks) {
        let functions = stack.functions.join(CALLS);
        let [baseline, candidate] = stack.samples.map(|n| n as i64);
        add.execute(params![id, place, functions, baseline, candidate, stack.ns[0], stack.ns[1]])?;
    }
    Ok(())
}

fn select(connection: &Connection) -> rusqlite::Result<Vec<Explanation>> {
    let mut query = connection.prepare(
        "SELECT id, probe, factor, baseline, candidate, health, reason FROM explanation ORDER BY id",
    )?;
    collect_at_most(query.query([])?, MAX_EXPLANATIONS, |row| {
        let mut explanation = Explanation {
            probe: named(row, 1)?,
            factor: named(row, 2)?,
            baseline: json(row, 3)?,
            candidate: json(row, 4)?,
            why: row.get::<_, Option<String>>(6)?.map_or(Why::NotSampled, Why::Unknown),
            exact: select_counts(connection, row.get(0)?)?.map(Box::new),
            programs: select_program_counts(connection, row.get(0)?)?.map(Box::new),
        };
        if let Some(health) = row.get::<_, Option<String>>(5)? {
            explanation.why =
                Why::Costs(Box::new(select_costs(connection, row.get(0)?, &explanation, &health)?));
        }
        Ok(explanation)
    })
}

fn select_costs(
    connection: &Connection,
    id: i64,
    explanation: &Explanation,
    health: &str,
) -> rusqlite::Result<StageCosts> {
    let mut stages = Vec::new();
    let mut whole = Vec::new();
    let mut functions = Vec::new();
    for (kind, cost) in select_stage_costs(connection, id)? {
        match kind.as_str() {
            "stage" => stages.push(cost),
            "whole" => whole.push(cost),
            _ => functions.push(cost),
        }
    }
    let sums: [StageCost; 5] = whole.try_into().map_err(|whole: Vec<_>| {
        not_understood(format!("an explanation has {} sums, not 5", whole.len()).into())
    })?;
    let [unmapped, not_sampled, threads, outside, busy] = sums;
    Ok(StageCosts {
        cell: explanation.context(),
        arms: explanation.arms(),
        stages,
        unmapped,
        not_sampled,
        threads,
        outside,
        busy,
        functions,
        stacks: select_stack_costs(connection, id)?,
        health: from_json(health)?,
    })
}

/// The costs of an explanation by name, each with its kind.
fn select_stage_costs(connection: &Connection, id: i64) -> rusqlite::Result<Vec<(String, StageCost)>> {
    let mut query = connection.prepare_cached(
        "SELECT kind, name, baseline_ns, candidate_ns, difference_ns, error_ns, adjusted_p FROM stage_cost
         WHERE explanation = ?1 ORDER BY place",
    )?;
    collect_at_most(query.query([id])?, MAX_ROWS, |row| {
        let cost = StageCost {
            name: short(row, 1)?,
            ns: [figure(row, 2)?, figure(row, 3)?],
            difference_ns: figure(row, 4)?,
            error_ns: figure(row, 5)?,
            adjusted_p: row.get(6)?,
        };
        Ok((row.get::<_, String>(0)?, cost))
    })
}

/// The costs of an explanation by call chain.
fn select_stack_costs(connection: &Connection, id: i64) -> rusqlite::Result<Vec<StackCost>> {
    let mut query = connection.prepare_cached(
        "SELECT functions, baseline_samples, candidate_samples, baseline_ns, candidate_ns FROM stack_cost
         WHERE explanation = ?1 ORDER BY place",
    )?;
    collect_at_most(query.query([id])?, MAX_ROWS, |row| {
        let functions = short(row, 0)?;
        if functions.split(CALLS).count() > MAX_FUNCTIONS {
            let reason = format!("a call chain of over {MAX_FUNCTIONS} is out of bounds");
            return Err(not_understood(reason.into()));
        }
        Ok(StackCost {
            functions: functions.split(CALLS).map(str::to_owned).collect(),
            samples: [count(row, 1)?, count(row, 2)?],
            ns: [figure(row, 3)?, figure(row, 4)?],
        })
    })
}

/// Adds the counts, of which only the first cell is of the explanation.
fn insert_counts(connection: &Connection, explanation: i64, counts: &ExactCounts) -> rusqlite::Result<()> {
    let Some(cell) = counts.cells.first() else { return Ok(()) };
    connection.execute(
        "INSERT INTO exact_count (explanation, qemu, kernel, probe, arms, messages, rounds) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            explanation,
            counts.qemu,
            counts.kernel,
            cell.probe.name(),
            to_json(&cell.arms),
            cell.messages as i64,
            to_json(&cell.rounds)
        ],
    )?;
    let mut add = connection.prepare_cached(
        "INSERT INTO instruction_count (explanation, place, kind, name, stage, baseline, candidate)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut rows = Vec::new();
    rows.extend(cell.stages.iter().map(|row| ("stage", row)));
    rows.extend(cell.functions.iter().map(|row| ("function", row)));
    for (place, (kind, ExactRow { name, stage, instructions })) in (0_i64..).zip(rows) {
        let [baseline, candidate] = instructions.map(|count| count as i64);
        add.execute(params![explanation, place, kind, name, stage, baseline, candidate])?;
    }
    Ok(())
}

fn select_counts(connection: &Connection, explanation: i64) -> rusqlite::Result<Option<ExactCounts>> {
    let mut query = connection.prepare_cached(
        "SELECT qemu, kernel, probe, arms, messages, rounds FROM exact_count WHERE explanation = ?1",
    )?;
    let found = query.query_row([explanation], |row| {
        let cell = ExactCell {
            probe: named(row, 2)?,
            arms: from_json(&short(row, 3)?)?,
            messages: count(row, 4)?,
            total: [0, 0],
            rounds: from_json(&short(row, 5)?)?,
            stages: Vec::new(),
            functions: Vec::new(),
        };
        Ok(ExactCounts { qemu: short(row, 0)?, kernel: short(row, 1)?, cells: vec![cell] })
    });
    let Some(mut counts) = found.optional()? else { return Ok(None) };
    let cell = &mut counts.cells[0];
    let mut query = connection.prepare_cached(
        "SELECT kind, name, stage, baseline, candidate FROM instruction_count WHERE explanation = ?1 ORDER BY place",
    )?;
    let rows = collect_at_most(query.query([explanation])?, MAX_ROWS, |row| {
        let stage = row.get::<_, Option<String>>(2)?.map(|_| short(row, 2));
        let counted = ExactRow {
            name: short(row, 1)?,
            stage: stage.transpose()?,
            instructions: [count(row, 3)?, count(row, 4)?],
        };
        Ok((row.get::<_, String>(0)? == "stage", counted))
    })?;
    for (is_stage, row) in rows {
        if is_stage { &mut cell.stages } else { &mut cell.functions }.push(row);
    }
    add_totals(cell)?;
    Ok(Some(counts))
}

/// Adds the totals of both arms. Fails if stages, functions and rounds do not have the same.
fn add_totals(cell: &mut ExactCell) -> rusqlite::Result<()> {
    if cell.messages == 0 {
        return Err(not_understood("exact counts without messages".into()));
    }
    for arm in 0..2 {
        let total = add_up(cell.rounds.iter().map(|round| round[arm]));
        let of_stages = add_up(cell.stages.iter().map(|row| row.instructions[arm]));
        let of_functions = add_up(cell.functions.iter().map(|row| row.instructions[arm]));
        match total {
            Some(sum) if of_stages == total && of_functions == total => cell.total[arm] = sum,
            _ => {
                let reason = "exact counts do not add up to those of the rounds";
                return Err(not_understood(reason.into()));
            }
        }
    }
    Ok(())
}

/// `None` if the sum is out of bounds.
fn add_up(counts: impl Iterator<Item = u64>) -> Option<u64> {
    let mut sum = 0_u64;
    for count in counts {
        sum = sum.checked_add(count)?;
    }
    Some(sum)
}
