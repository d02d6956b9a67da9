//! Counts of programs' instructions in and out of a record.

use crate::open::{from_json, has_table, json, not_understood, short, to_json};
use rusqlite::{Connection, OptionalExtension, params};
use stacklab_model::{EndCounts, ProgramCell, ProgramCounts};

/// Most functions of an end, and rounds: no program of this one writes more.
const MAX_FUNCTIONS: usize = 1 << 12;
const MAX_ROUNDS: usize = 1 << 8;
/// Longest name of a function and of a file, bytes.
const MAX_NAME_LENGTH: usize = 1 << 16;

/// Adds the counts of an explanation's two cells.
pub(crate) fn insert_program_counts(
    connection: &Connection,
    explanation: i64,
    counts: &ProgramCounts,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO program_count (explanation, qemu, cpu, requests, cells) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![explanation, counts.qemu, counts.cpu, to_json(&counts.requests), to_json(&counts.cells)],
    )?;
    Ok(())
}

pub(crate) fn select_program_counts(
    connection: &Connection,
    explanation: i64,
) -> rusqlite::Result<Option<ProgramCounts>> {
    if !has_table(connection, "program_count")? {
        return Ok(None);
    }
    let mut query = connection
        .prepare_cached("SELECT qemu, cpu, requests, cells FROM program_count WHERE explanation = ?1")?;
    let found = query.query_row([explanation], |row| {
        let requests: [u64; 2] = from_json(&short(row, 2)?)?;
        let cells: Vec<ProgramCell> = json(row, 3)?;
        Ok(ProgramCounts { qemu: short(row, 0)?, cpu: short(row, 1)?, requests, cells, pairs: vec![[0, 1]] })
    });
    let Some(counts) = found.optional()? else { return Ok(None) };
    check(&counts).map_err(|reason| not_understood(reason.into()))?;
    Ok(Some(counts))
}

/// Refuses counts that this program has not written.
fn check(counts: &ProgramCounts) -> Result<(), String> {
    let [shorter, longer] = counts.requests;
    if shorter == 0 || longer <= shorter {
        return Err("counts of programs without requests".to_owned());
    }
    if counts.cells.len() != 2 {
        return Err(format!("counts of {} programs, not 2", counts.cells.len()));
    }
    for cell in &counts.cells {
        for end in [&cell.client, &cell.server] {
            check_end(end)?;
        }
    }
    Ok(())
}

/// The functions add up to what the longer runs of all rounds take more.
fn check_end(end: &EndCounts) -> Result<(), String> {
    if end.rounds.is_empty() || end.rounds.len() > MAX_ROUNDS || end.functions.len() > MAX_FUNCTIONS {
        return Err("counts of programs are out of bounds".to_owned());
    }
    let mut rest: i128 = 0;
    for [shorter, longer] in &end.rounds {
        rest += i128::from(*longer) - i128::from(*shorter);
    }
    for function in &end.functions {
        if function.name.len().max(function.file.len()) > MAX_NAME_LENGTH {
            return Err("a name of a function is out of bounds".to_owned());
        }
        rest -= i128::from(function.instructions);
    }
    if rest == 0 { Ok(()) } else { Err("counts of programs do not add up".to_owned()) }
}
