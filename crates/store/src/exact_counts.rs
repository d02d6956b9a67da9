//! Exact counts in and out of a record, each beside an explanation.

use crate::open::{MOST_ROWS, bounded, count, from_json, not_understood, parsed, short, to_json};
use rusqlite::{Connection, OptionalExtension, params};
use stacklab_model::{ExactCell, ExactCounts, ExactRow};

/// Adds the counts, of which only the first cell is of the explanation.
pub(crate) fn insert(
    connection: &Connection,
    explanation: i64,
    counts: &ExactCounts,
) -> rusqlite::Result<()> {
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
    let kind = |kind: &'static str| move |row| (kind, row);
    let rows = cell.stages.iter().map(kind("stage")).chain(cell.functions.iter().map(kind("function")));
    for (place, (kind, ExactRow { name, stage, instructions })) in (0_i64..).zip(rows) {
        let [baseline, candidate] = instructions.map(|count| count as i64);
        add.execute(params![explanation, place, kind, name, stage, baseline, candidate])?;
    }
    Ok(())
}

/// The counts of an explanation, if there are any.
pub(crate) fn select(connection: &Connection, explanation: i64) -> rusqlite::Result<Option<ExactCounts>> {
    let mut query = connection.prepare_cached(
        "SELECT qemu, kernel, probe, arms, messages, rounds FROM exact_count WHERE explanation = ?1",
    )?;
    let found = query.query_row([explanation], |row| {
        let cell = ExactCell {
            probe: parsed(&row.get::<_, String>(2)?)?,
            arms: from_json(&short(row.get(3)?)?)?,
            messages: count(row, 4)?,
            total: [0, 0],
            rounds: from_json(&short(row.get(5)?)?)?,
            stages: Vec::new(),
            functions: Vec::new(),
        };
        Ok(ExactCounts { qemu: short(row.get(0)?)?, kernel: short(row.get(1)?)?, cells: vec![cell] })
    });
    let Some(mut counts) = found.optional()? else { return Ok(None) };
    let cell = &mut counts.cells[0];
    let mut query = connection.prepare_cached(
        "SELECT kind, name, stage, baseline, candidate FROM instruction_count WHERE explanation = ?1 ORDER BY place",
    )?;
    let rows = bounded(query.query([explanation])?, MOST_ROWS, |row| {
        let stage: Option<String> = row.get(2)?;
        let counted = ExactRow {
            name: short(row.get(1)?)?,
            stage: stage.map(short).transpose()?,
            instructions: [count(row, 3)?, count(row, 4)?],
        };
        Ok((row.get::<_, String>(0)? == "stage", counted))
    })?;
    for (is_stage, row) in rows {
        if is_stage { &mut cell.stages } else { &mut cell.functions }.push(row);
    }
    let wrong = |what: &str| not_understood(format!("exact counts {what}").into());
    if cell.messages == 0 {
        return Err(wrong("without messages"));
    }
    for arm in 0..2 {
        let total = sum(cell.rounds.iter().map(|round| round[arm]));
        let of = |rows: &[ExactRow]| sum(rows.iter().map(|row| row.instructions[arm]));
        if total.is_none() || total != of(&cell.stages) || total != of(&cell.functions) {
            return Err(wrong("do not add up to those of the rounds"));
        }
        cell.total[arm] = total.unwrap_or_default();
    }
    Ok(Some(counts))
}

/// The sum; `None` if it is out of bounds.
fn sum(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.try_fold(0_u64, u64::checked_add)
}
