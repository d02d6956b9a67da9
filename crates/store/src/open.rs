//! Creating and opening records.

use crate::error::OPEN;
use crate::files::{beside, check_files, lock_alone};
use crate::limits::{self, Work};
use crate::{Campaign, StoreError};
use rusqlite::{Connection, MAIN_DB, OpenFlags, Row, Transaction, params};
use stacklab_model::{MAX_NUMBER, Metric, is_in_bounds, too_large};
use std::error::Error;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The record format that this crate writes and reads (PRAGMA user_version).
pub const FORMAT: i64 = 8;
/// The first format that it reads. Older ones were never released.
pub const FIRST_FORMAT: i64 = 7;
/// Most rows of an explanation in a table, and the longest text of a row, bytes: no kernel has more.
pub(crate) const MAX_ROWS: usize = 1 << 12;
const MAX_TEXT_LENGTH: usize = 1 << 16;
/// The tables that format 8 has more than format 7.
const PACKED: &str = include_str!("format/packed.sql");
/// The table of programs' instructions, which the first records of both formats do not have.
const PROGRAMS: &str = include_str!("format/programs.sql");
/// PRAGMA application_id of every record: "StLb".
const APPLICATION: i64 = 0x5374_4c62;

/// How long a campaign waits for readers before it commits: longer than any reader takes. Otherwise the commit would
/// fail.
const WRITER_WAITS: Duration = Duration::from_secs(60);
/// How long a reader waits for a commit.
const READER_WAITS: Duration = Duration::from_secs(5);
/// How long a reader waits that can retry.
const UNCHECKED_WAITS: Duration = Duration::from_secs(1);

/// An open record.
pub struct Record {
    // Declared before the lock, to be closed first: closing any other descriptor of the file drops SQLite's own
    // locks.
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    _lock: Option<File>,
}

impl Record {
    /// Creates a new record.
    /// Fails if the file exists, the folder does not exist, or the disk is full; nothing is left behind then.
    pub fn create(path: &Path, campaign: &Campaign) -> Result<Self, StoreError> {
        const MAKE: &str = "make a record";
        let failed = |reason: io::Error| StoreError::from_io(path, MAKE, &reason);
        let image = image(campaign).map_err(|e| StoreError::from_sqlite(path, MAKE, e))?;
        let file = File::create_new(path).map_err(failed)?;
        let made = lock_file(path, file).and_then(|mut lock| {
            // The journal of a killed and removed record with the same name: it would be rolled back into this
            // record.
            let _ = std::fs::remove_file(beside(path, "-journal"));
            refuse_odd_files(path)?;
            // In one write: a killed program leaves a whole record or none.
            lock.write_all(&image).and_then(|()| lock.sync_all()).map_err(failed)?;
            Record::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_WAITS, Some(lock))
        });
        if made.is_err() {
            // The incomplete file is useless; the error above is the one to report.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    /// A new record in memory only, for the findings of runs that are kept elsewhere. `name` is for messages.
    pub fn in_memory(name: &str, campaign: &Campaign) -> Result<Self, StoreError> {
        let path = Path::new(name);
        let connection =
            make_tables(campaign).map_err(|e| StoreError::from_sqlite(path, "make a record", e))?;
        Ok(Record::of(connection, path, None))
    }

    /// Opens a record exclusively to append to it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        refuse_odd_files(path)?;
        let file = File::options().read(true).write(true).open(path).map_err(absent(path))?;
        let lock = lock_file(path, file)?;
        let record = Record::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_WAITS, Some(lock))?;
        record.verify_format()?.check_integrity()?.with_packed_tables()
    }

    /// Opens a record to read it, even while a campaign writes it. Reads are limited to the work that its length
    /// allows, which is enough for reading it many times.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        refuse_odd_files(path)?;
        let file = File::open(path).map_err(absent(path))?;
        let bytes = file.metadata().map_err(absent(path))?.len();
        drop(file);
        match Record::read_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY, bytes) {
            // A commit interrupted by a kill must be rolled back first, which a read-only opening may not do.
            Err(StoreError::CutShort(_)) => Record::read_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE, bytes),
            other => other,
        }
    }

    fn read_with(path: &Path, flags: OpenFlags, bytes: u64) -> Result<Self, StoreError> {
        let record = Record::connect(path, flags, READER_WAITS, None)?;
        record.with_work_limit(bytes, Work::Checked)?.verify_format()?.check_integrity()
    }

    /// Opens a record for repeated partial reads while a campaign writes it. Nothing is ever written, not even to
    /// roll back an interrupted commit. It is not checked for damage first, because the check takes time in
    /// proportion to its length and makes its writer wait. Reads are therefore limited to the work that its length
    /// allows.
    pub fn open_unchecked(path: &Path) -> Result<Self, StoreError> {
        refuse_odd_files(path)?;
        // Not opened: closing it would drop the locks of another thread of this program that reads the record.
        let bytes = std::fs::metadata(path).map_err(absent(path))?.len();
        let opened = Record::connection(path, OpenFlags::SQLITE_OPEN_READ_ONLY, UNCHECKED_WAITS);
        let connection = opened.map_err(|e| StoreError::from_sqlite(path, OPEN, e))?;
        Record::of(connection, path, None).with_work_limit(bytes, Work::Unchecked)?.verify_format()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn error(&self, attempted: &'static str, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, attempted, error)
    }

    /// Adds rows in one commit: all or none.
    pub(crate) fn commit(
        &mut self,
        attempted: &'static str,
        add: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let transaction = self.connection.transaction();
        let added = transaction.and_then(|transaction| add(&transaction).and_then(|()| transaction.commit()));
        added.map_err(|e| StoreError::from_sqlite(&self.path, attempted, e))
    }

    fn connect(
        path: &Path,
        flags: OpenFlags,
        waits: Duration,
        lock: Option<File>,
    ) -> Result<Self, StoreError> {
        let connection = Record::connect_durably(path, flags, waits)
            .map_err(|e| StoreError::from_sqlite(path, OPEN, e))?;
        Ok(Record::of(connection, path, lock))
    }

    fn connect_durably(path: &Path, flags: OpenFlags, waits: Duration) -> rusqlite::Result<Connection> {
        let connection = Record::connection(path, flags, waits)?;
        // A rollback journal, not a write-ahead log: between two commits the campaign is one file, however the
        // program is killed. FULL: committed data is on the disk.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(connection)
    }

    /// A record that is not known yet to be one.
    pub(crate) fn of(connection: Connection, path: &Path, lock: Option<File>) -> Self {
        Record { connection, path: path.to_owned(), _lock: lock }
    }

    /// A connection that has not yet read the file.
    fn connection(path: &Path, flags: OpenFlags, waits: Duration) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(waits)?;
        limits::distrust(&connection)?;
        Ok(connection)
    }

    /// Limits the work of all reads to what a record of this length allows.
    pub(crate) fn with_work_limit(mut self, bytes: u64, work: Work) -> Result<Self, StoreError> {
        let limited = limits::limit_work(&mut self.connection, bytes, work);
        limited.map_err(|e| self.error(OPEN, e))?;
        Ok(self)
    }

    /// Refuses a file that is not a record, has another format, or contains objects that would run while it is read.
    pub(crate) fn verify_format(self) -> Result<Self, StoreError> {
        let opening = |e| self.error(OPEN, e);
        let application = read_pragma(&self.connection, "application_id").map_err(opening)?;
        let found = read_pragma(&self.connection, "user_version").map_err(opening)?;
        if application != APPLICATION {
            return Err(StoreError::foreign(&self.path));
        }
        let refused = |reason: String| Err(StoreError::Refused(format!("{} {reason}", self.path.display())));
        if found > FORMAT {
            return refused(format!(
                "has record format {found}, and this version reads formats up to {FORMAT}: use the version that wrote it, or a newer one"
            ));
        }
        if found < FIRST_FORMAT {
            return refused(format!(
                "has record format {found} of an unreleased version, and this stacklab reads formats {FIRST_FORMAT} to {FORMAT}: measure again"
            ));
        }
        match limits::find_other_objects(&self.connection).map_err(opening)? {
            Some(what) => {
                refused(format!("contains objects other than a record's tables ({what}) and is refused"))
            }
            None => Ok(self),
        }
    }

    /// A record of format 7 gets the tables of this one for the runs to come; its own rows stay as they are.
    fn with_packed_tables(mut self) -> Result<Self, StoreError> {
        if !has_table(&self.connection, "packed_reports").map_err(|e| self.error(OPEN, e))? {
            self.commit("change the format", |transaction| {
                transaction.execute_batch(PACKED)?;
                transaction.pragma_update(None, "user_version", FORMAT)
            })?;
        }
        if !has_table(&self.connection, "program_count").map_err(|e| self.error(OPEN, e))? {
            self.commit("add a table", |transaction| transaction.execute_batch(PROGRAMS))?;
        }
        Ok(self)
    }

    pub(crate) fn check_integrity(self) -> Result<Self, StoreError> {
        let sound = self.connection.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
        match sound {
            Ok(word) if word == "ok" => Ok(self),
            Ok(reason) => Err(StoreError::of_damage(&self.path, &reason)),
            Err(e) => Err(self.error("check the record", e)),
        }
    }
}

fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// A new record's bytes.
fn image(campaign: &Campaign) -> rusqlite::Result<Vec<u8>> {
    Ok(make_tables(campaign)?.serialize(MAIN_DB)?.to_vec())
}

/// A new record in memory: the tables, and the campaign's row.
fn make_tables(campaign: &Campaign) -> rusqlite::Result<Connection> {
    let memory = Connection::open_in_memory()?;
    memory.pragma_update(None, "application_id", APPLICATION)?;
    memory.pragma_update(None, "user_version", FORMAT)?;
    memory.execute_batch(include_str!("format/schema.sql"))?;
    memory.execute_batch(PACKED)?;
    memory.execute_batch(PROGRAMS)?;
    memory.execute(
        "INSERT INTO campaign (id, program_version, created_unix_ns, study_name, study_text, scale, settings, seed, testbed, cpu_scope, sample_period_ns)
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            campaign.program_version,
            campaign.created_unix_ns as i64,
            campaign.study_name,
            campaign.study_text,
            campaign.scale,
            to_json(&campaign.settings),
            campaign.seed.to_string(),
            campaign.testbed_description,
            campaign.cpu_scope.name(),
            campaign.sample_period_ns.map(|ns| ns as i64),
        ],
    )?;
    Ok(memory)
}

fn refuse_odd_files(path: &Path) -> Result<(), StoreError> {
    check_files(path)
        .map_err(|reason| StoreError::Refused(format!("the record {} is refused: {reason}", path.display())))
}

fn absent(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |reason| StoreError::from_io(path, OPEN, &reason)
}

fn lock_file(path: &Path, file: File) -> Result<File, StoreError> {
    match lock_alone(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy(path.to_owned())),
        // A file system without locks: the record's unique keys still stop two campaigns that write at once.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

pub(crate) fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let mut query =
        connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?;
    query.exists([name])
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("the model's data has string keys and no failing serialisers")
}

pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    if let Some(number) = too_large(text) {
        return Err(not_understood(format!("{number} is out of bounds").into()));
    }
    serde_json::from_str(text).map_err(|error| not_understood(Box::new(error)))
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, place: usize) -> rusqlite::Result<T> {
    from_json(row.get_ref(place)?.as_str()?)
}

/// A column with the name of one of the model's things, or with a number as text.
pub(crate) fn named<T: FromStr<Err: Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    place: usize,
) -> rusqlite::Result<T> {
    row.get_ref(place)?.as_str()?.parse().map_err(|error| not_understood(Box::new(error)))
}

/// A column of text that is not longer than those of a record.
pub(crate) fn short(row: &Row<'_>, place: usize) -> rusqlite::Result<String> {
    let text: String = row.get(place)?;
    if text.len() > MAX_TEXT_LENGTH {
        return Err(not_understood(format!("a text of {} bytes is out of bounds", text.len()).into()));
    }
    Ok(text)
}

/// A count or a duration.
pub(crate) fn count(row: &Row<'_>, place: usize) -> rusqlite::Result<u64> {
    within(row.get(place)?, MAX_NUMBER)
}

/// The same where there may be none.
pub(crate) fn read_optional_count(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(place)?.map(|number| within(number, MAX_NUMBER)).transpose()
}

/// A figure that is a number within bounds.
pub(crate) fn figure(row: &Row<'_>, place: usize) -> rusqlite::Result<f64> {
    let figure: f64 = row.get(place)?;
    if !is_in_bounds(figure) {
        return Err(not_understood(format!("{figure:e} is out of bounds").into()));
    }
    Ok(figure)
}

/// A figure that the metric can have.
pub(crate) fn figure_of(row: &Row<'_>, place: usize, metric: Metric) -> rusqlite::Result<f64> {
    let figure = figure(row, place)?;
    if !metric.can_be(figure) {
        let unit = metric.unit().symbol();
        return Err(not_understood(
            format!("{metric} = {figure} is out of bounds (its unit: {unit})").into(),
        ));
    }
    Ok(figure)
}

/// The same where there may be none.
pub(crate) fn known_figure(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<f64>> {
    row.get::<_, Option<f64>>(place)?.map(|_| figure(row, place)).transpose()
}

/// A number that is not negative and not above the largest possible one.
pub(crate) fn within(number: i64, largest: u64) -> rusqlite::Result<u64> {
    let found = u64::try_from(number).ok().filter(|number| *number <= largest);
    found.ok_or_else(|| not_understood(format!("{number} is out of bounds").into()))
}

pub(crate) fn not_understood(error: Box<dyn Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error)
}

pub(crate) fn collect_at_most<T>(
    mut rows: rusqlite::Rows<'_>,
    most: usize,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        if all.len() == most {
            return Err(not_understood(format!("more than {most} rows are out of bounds").into()));
        }
        all.push(read(row)?);
    }
    Ok(all)
}
