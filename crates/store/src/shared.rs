//! Texts that most runs of a cell have in common, each stored once: the trial specification, but for its token, and the
//! figures that a run has not, with the reasons.

use crate::open::{from_json, not_understood, to_json};
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use stacklab_model::{CellSettings, Metric, RunRecord, Shared, TrialSpec, Value, Values};
use std::collections::{BTreeMap, HashMap};

/// Longest text, bytes. Each run that has it holds a copy in memory, so a longer one is not shared.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// Texts of a kind that are kept at once. A campaign has a few for each of its cells.
const MAX_TEXTS: usize = 2000;

/// What a run's row and values hold beside the shared texts.
pub(crate) struct Own<'a> {
    pub spec: String,
    pub values: Vec<(&'a Metric, &'a Value)>,
    shared_spec: Option<String>,
    shared_absent: Option<String>,
}

/// The part of a specification that each run has for itself.
#[derive(Serialize, Deserialize)]
struct Token {
    token: u32,
}

impl<'a> Own<'a> {
    pub(crate) fn of(run: &'a RunRecord) -> Self {
        let token = run.spec.token;
        let shared_spec = short(to_json(&TrialSpec { token: 0, ..run.spec.clone() }));
        let absent: BTreeMap<_, _> =
            run.values.iter().filter(|(_, value)| !has_measured_figure(value)).collect();
        let shared_absent = short(to_json(&absent)).filter(|_| !absent.is_empty());
        Own {
            spec: if shared_spec.is_some() { to_json(&Token { token }) } else { to_json(&run.spec) },
            values: run
                .values
                .iter()
                .filter(|(_, value)| shared_absent.is_none() || has_measured_figure(value))
                .collect(),
            shared_spec,
            shared_absent,
        }
    }

    /// Adds the shared texts of a run that has a row.
    pub(crate) fn insert(&self, connection: &Connection, run: i64) -> rusqlite::Result<()> {
        let spec = insert_text(connection, self.shared_spec.as_deref())?;
        let absent = insert_text(connection, self.shared_absent.as_deref())?;
        let mut add =
            connection.prepare_cached("INSERT INTO shared (run, spec, absent) VALUES (?1, ?2, ?3)")?;
        add.execute(params![run, spec, absent]).map(drop)
    }
}

fn short(text: String) -> Option<String> {
    Some(text).filter(|text| text.len() <= MAX_TEXT_BYTES)
}

fn has_measured_figure(value: &Value) -> bool {
    matches!(value, Value::Measured(_))
}

/// The number of a text, which is added if it is not there.
fn insert_text(connection: &Connection, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
    let Some(text) = text else { return Ok(None) };
    connection
        .prepare_cached("INSERT INTO text (text) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([text])?;
    connection
        .prepare_cached("SELECT id FROM text WHERE text = ?1")?
        .query_row([text], |row| row.get(0))
        .map(Some)
}

/// What was read of the texts that runs have in common. Each is in memory once, however many runs have it.
#[derive(Default)]
pub(crate) struct Known {
    settings: HashMap<String, Shared<CellSettings>>,
    specs: HashMap<String, TrialSpec>,
    absent: HashMap<String, Shared<BTreeMap<Metric, Value>>>,
}

impl Known {
    /// The settings of a run's cell.
    pub(crate) fn settings(&mut self, row: &Row<'_>, place: usize) -> rusqlite::Result<Shared<CellSettings>> {
        let text = row.get_ref(place)?.as_str()?;
        find_or_make(&mut self.settings, text, || from_json(text))
    }

    /// A run's specification from its own column and the shared text.
    pub(crate) fn spec(&mut self, row: &Row<'_>, own: usize, shared: usize) -> rusqlite::Result<TrialSpec> {
        let own = row.get_ref(own)?.as_str()?;
        let Some(shared) = text(row, shared)? else { return from_json(own) };
        let Token { token } = from_json(own)?;
        Ok(TrialSpec { token, ..find_or_make(&mut self.specs, shared, || from_json(shared))? })
    }

    /// The figures that a run has not.
    pub(crate) fn absent(&mut self, row: &Row<'_>, place: usize) -> rusqlite::Result<Values> {
        let Some(text) = text(row, place)? else { return Ok(Values::default()) };
        find_or_make(&mut self.absent, text, || absent_of(text).map(Shared::from)).map(Values::sharing)
    }
}

/// A copy of what was made of a text, which is made if this text is new.
fn find_or_make<T: Clone>(
    all: &mut HashMap<String, T>,
    text: &str,
    make: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    if let Some(value) = all.get(text) {
        return Ok(value.clone());
    }
    let value = make()?;
    // Of a record whose runs have little in common, not all texts are worth their memory.
    if all.len() == MAX_TEXTS {
        all.clear();
    }
    all.insert(text.to_owned(), value.clone());
    Ok(value)
}

fn absent_of(text: &str) -> rusqlite::Result<BTreeMap<Metric, Value>> {
    let values: BTreeMap<Metric, Value> = from_json(text)?;
    match values.iter().find(|(_, value)| has_measured_figure(value)) {
        Some((metric, _)) => Err(not_understood(format!("{metric} is measured and absent").into())),
        None => Ok(values),
    }
}

fn text<'a>(row: &'a Row<'_>, place: usize) -> rusqlite::Result<Option<&'a str>> {
    let text = row.get_ref(place)?.as_str_or_null()?;
    match text.map(str::len).filter(|bytes| *bytes > MAX_TEXT_BYTES) {
        Some(bytes) => Err(not_understood(format!("a shared text of {bytes} bytes is out of bounds").into())),
        None => Ok(text),
    }
}
