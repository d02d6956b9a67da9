//! Explanations in and out of a record: why cells differ, by stage of the network stack.

use crate::exact_counts;
use crate::open::{MOST_ROWS, bounded, count, from_json, not_understood, parsed, short, to_json};
use crate::{Record, StoreError};
use rusqlite::{Connection, Row, params};
use stacklab_model::{Explanation, StackCost, StageCost, StageCosts, Why};

/// Most explanations of a record: no study has more.
const MOST_EXPLANATIONS: usize = 1 << 12;
/// Most functions of a call chain: the kernel gives at most 127 by default.
const MOST_FUNCTIONS: usize = 512;
/// Between the functions of a call chain.
const CALLS: &str = ";";

impl Record {
    /// Adds explanations, in one commit.
    ///
    /// # Errors
    /// If the disk is full; none of them is then in the record.
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
    let Explanation { probe, factor, baseline, candidate, why, exact } = explanation;
    let (costs, reason) = match why {
        Why::Costs(costs) => (Some(costs), None),
        Why::Unknown(reason) => (None, Some(reason)),
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
        exact_counts::insert(connection, id, exact)?;
    }
    let Some(costs) = costs else { return Ok(()) };
    let mut add = connection.prepare_cached(
        "INSERT INTO stage_cost (explanation, place, kind, name, baseline_ns, candidate_ns, difference_ns, error_ns, adjusted_p)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let kind = |kind: &'static str| move |cost| (kind, cost);
    let rows = costs.stages.iter().map(kind("stage"));
    let rows = rows.chain(costs.sums().into_iter().map(kind("whole")));
    for (place, (kind, cost)) in (0_i64..).zip(rows.chain(costs.functions.iter().map(kind("function")))) {
        let StageCost { name, ns: [baseline, candidate], difference_ns, error_ns, adjusted_p } = cost;
        add.execute(params![
            id,
            place,
            kind,
            name,
            baseline,
            candidate,
            difference_ns,
            error_ns,
            adjusted_p
        ])?;
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO stack_cost (explanation, place, functions, baseline_samples, candidate_samples, baseline_ns, candidate_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (place, stack) in (0_i64..).zip(&costs.stacks) {
        let samples = stack.samples.map(|samples| samples as i64);
        add.execute(params![
            id,
            place,
            stack.functions.join(CALLS),
            samples[0],
            samples[1],
            stack.ns[0],
            stack.ns[1]
        ])?;
    }
    Ok(())
}

fn select(connection: &Connection) -> rusqlite::Result<Vec<Explanation>> {
    let mut query = connection.prepare(
        "SELECT id, probe, factor, baseline, candidate, health, reason FROM explanation ORDER BY id",
    )?;
    let text = |row: &Row<'_>, place: usize| row.get::<_, String>(place);
    bounded(query.query([])?, MOST_EXPLANATIONS, |row| {
        let mut explanation = Explanation {
            probe: parsed(&text(row, 1)?)?,
            factor: parsed(&text(row, 2)?)?,
            baseline: from_json(&text(row, 3)?)?,
            candidate: from_json(&text(row, 4)?)?,
            why: Why::Unknown(row.get::<_, Option<String>>(6)?.unwrap_or_default()),
            exact: exact_counts::select(connection, row.get(0)?)?.map(Box::new),
        };
        if let Some(health) = row.get::<_, Option<String>>(5)? {
            explanation.why = Why::Costs(Box::new(costs(connection, row.get(0)?, &explanation, &health)?));
        }
        Ok(explanation)
    })
}

fn costs(
    connection: &Connection,
    id: i64,
    explanation: &Explanation,
    health: &str,
) -> rusqlite::Result<StageCosts> {
    let (mut stages, mut whole, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    let mut query = connection.prepare_cached(
        "SELECT kind, name, baseline_ns, candidate_ns, difference_ns, error_ns, adjusted_p FROM stage_cost
         WHERE explanation = ?1 ORDER BY place",
    )?;
    let rows = bounded(query.query([id])?, MOST_ROWS, |row| {
        let cost = StageCost {
            name: short(row.get(1)?)?,
            ns: [finite(row, 2)?, finite(row, 3)?],
            difference_ns: finite(row, 4)?,
            error_ns: finite(row, 5)?,
            adjusted_p: row.get(6)?,
        };
        Ok((row.get::<_, String>(0)?, cost))
    })?;
    for (kind, cost) in rows {
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
    let mut query = connection.prepare_cached(
        "SELECT functions, baseline_samples, candidate_samples, baseline_ns, candidate_ns FROM stack_cost
         WHERE explanation = ?1 ORDER BY place",
    )?;
    let stacks = bounded(query.query([id])?, MOST_ROWS, |row| {
        let functions = short(row.get(0)?)?;
        if functions.split(CALLS).count() > MOST_FUNCTIONS {
            return Err(not_understood(
                format!("a call chain of over {MOST_FUNCTIONS} is out of bounds").into(),
            ));
        }
        Ok(StackCost {
            functions: functions.split(CALLS).map(str::to_owned).collect(),
            samples: [count(row, 1)?, count(row, 2)?],
            ns: [finite(row, 3)?, finite(row, 4)?],
        })
    })?;
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
        stacks,
        health: from_json(health)?,
    })
}

fn finite(row: &Row<'_>, place: usize) -> rusqlite::Result<f64> {
    let figure: f64 = row.get(place)?;
    if figure.is_finite() {
        Ok(figure)
    } else {
        Err(not_understood(format!("{figure} is out of bounds").into()))
    }
}
