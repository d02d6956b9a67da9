//! The fleet store: the truth about a fleet, in PostgreSQL or in one SQLite file.
//!
//! Both engines execute the same statements and pass the same tests (`tests/store/conformance.rs`).

mod agents;
mod campaigns;
mod connect;
mod db;
mod leases;

pub use agents::AgentInfo;
pub use campaigns::{
    BlockCounts, CampaignRow, CampaignState, ListedCampaign, NewCampaign, NewPair, PairProgress,
};
pub use connect::has_password;
pub use leases::{BlockKey, Class, Committed, Lease};

use crate::FleetError;
use connect::{connect, full};
use db::{Db, DbError, Tx};
use stacklab_store::{find_other_objects, lock_alone};
use std::fs::{File, TryLockError};

const FORMAT: i64 = 2;
const SCHEMA: &str = include_str!("schema.sql");
const OLDEST: i64 = 150_000;
/// The advisory locks of PostgreSQL: for creating the tables, and for the one coordinator. "StLb", and a number.
const CREATING: i64 = 0x5374_4c62_0001;
const COORDINATING: i64 = 0x5374_4c62_0002;

/// An open fleet store.
pub struct Store {
    db: Db,
    /// Where it is, with the password, and without.
    address: String,
    place: String,
    /// The file of a SQLite store, locked by its coordinator. Declared after `db`, to be closed after it: closing any
    /// descriptor of the file drops SQLite's own locks.
    lock: Option<File>,
    is_coordinator: bool,
    access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
}

impl Store {
    /// Opens a store, and creates its tables if they are missing: `postgres://..` or the path of a SQLite file.
    pub fn open(place: &str) -> Result<Self, FleetError> {
        let mut store = Store::open_with_access(place, Access::Write)?;
        store.create_tables()?;
        Ok(store)
    }

    /// Opens an existing store to read it: nothing is created or changed.
    pub fn open_to_read(place: &str) -> Result<Self, FleetError> {
        let mut store = Store::open_with_access(place, Access::Read)?;
        store.refuse_other_objects()?;
        let format = store.transaction("read the format", |tx| {
            if !tx.has_table("fleet")? {
                return Ok(None);
            }
            Ok(Some(tx.row("SELECT format FROM fleet", &[])?.ok_or("its format is missing")?.int(0)?))
        })?;
        let format = format.ok_or_else(|| {
            let place = &store.place;
            FleetError::Usage(format!("{place} is not a fleet store: `stacklab fleet run --store` makes one"))
        })?;
        store.check_format(format)?;
        Ok(store)
    }

    fn open_with_access(address: &str, access: Access) -> Result<Self, FleetError> {
        let (db, place) = connect(address, access)?;
        Ok(Store { db, address: address.to_owned(), place, lock: None, is_coordinator: false, access })
    }

    fn create_tables(&mut self) -> Result<(), FleetError> {
        self.refuse_other_objects()?;
        let found = self.transaction("create or check the tables", |tx| {
            if matches!(tx, Tx::Postgres(..)) {
                // `IF NOT EXISTS` fails if two programs create a table at the same time.
                tx.rows("SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)", &[CREATING.into()])?;
            }
            if !tx.has_table("fleet")? {
                tx.batch(SCHEMA)?;
            }
            tx.row("SELECT format FROM fleet", &[])?.ok_or("its format is missing")?.int(0)
        })?;
        self.check_format(found)
    }

    /// Refuses a SQLite store with objects that would run while it is read or written, as a record with them. Those of
    /// PostgreSQL are the server's: who may make them may also change the results.
    fn refuse_other_objects(&self) -> Result<(), FleetError> {
        let Db::Sqlite(connection) = &self.db else { return Ok(()) };
        match find_other_objects(connection).map_err(|reason| self.error("read its tables", &reason))? {
            Some(what) => Err(FleetError::Usage(format!(
                "the fleet store {} contains objects other than its tables ({what}) and is refused: use another store",
                self.place
            ))),
            None => Ok(()),
        }
    }

    fn check_format(&self, found: i64) -> Result<(), FleetError> {
        if found == FORMAT {
            return Ok(());
        }
        Err(FleetError::Usage(format!(
            "the fleet store {} has format {found}, and this version of stacklab reads format {FORMAT}: use another store, or the version that wrote it",
            self.place
        )))
    }

    /// Makes this program the one coordinator of the store, until it ends.
    /// Fails if another one is running.
    pub fn coordinate(&mut self) -> Result<(), FleetError> {
        let taken = match &mut self.db {
            Db::Sqlite(connection) => {
                // The store itself: a lock file beside it could be removed, and would admit a second one.
                let file = File::open(connection.path().unwrap_or_default());
                let locked =
                    file.map_err(TryLockError::Error).and_then(|file| lock_alone(&file).map(|()| file));
                match locked {
                    Ok(file) => self.lock = Some(file),
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(reason)) => {
                        return Err(self.error("lock it for one coordinator", &reason));
                    }
                }
                self.lock.is_some()
            }
            Db::Postgres(..) => self.transaction("take the coordinator's lock", |tx| {
                let sql = "SELECT CAST(pg_try_advisory_lock($1) AS TEXT)";
                Ok(tx.row(sql, &[COORDINATING.into()])?.ok_or("no answer")?.text(0)? == "true")
            })?,
        };
        self.is_coordinator = taken;
        if taken {
            return Ok(());
        }
        Err(FleetError::Usage(format!(
            "another coordinator uses the fleet store {}: stop it with `stacklab fleet stop`, or use another store",
            self.place
        )))
    }

    /// Where the store is, without a password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What was checked, and for each whether it is safe: what a store keeps of its commits, and who can read along.
    pub fn safety(&mut self) -> Result<Vec<(bool, String)>, FleetError> {
        let place = self.place().to_owned();
        self.transaction("read the server's settings", |tx| {
            if matches!(tx, Tx::Sqlite(..)) {
                let text = format!("store {place}: SQLite; each commit is on the disk when it is done");
                return Ok(vec![(true, text)]);
            }
            let row = tx.row(
                "SELECT current_setting('server_version_num'), current_setting('server_version'),
                     current_setting('fsync'), current_setting('full_page_writes'),
                     current_setting('synchronous_commit'),
                     (SELECT CAST(ssl OR client_addr IS NULL AS TEXT) FROM pg_stat_ssl s
                          JOIN pg_stat_activity a ON a.pid = s.pid WHERE s.pid = pg_backend_pid())",
                &[],
            )?;
            let row = row.ok_or("no settings")?;
            let number: i64 = row.text(0)?.parse()?;
            let mut found = vec![(
                number >= OLDEST,
                format!("store {place}: PostgreSQL {}; 15 or newer is tested", row.text(1)?),
            )];
            for (column, name) in [(2, "fsync"), (3, "full_page_writes"), (4, "synchronous_commit")] {
                let value = row.text(column)?;
                let is_safe = value != "off";
                let unsafe_text = "a crash may lose commits: set it to on";
                let what = if is_safe { "a commit outlives a crash" } else { unsafe_text };
                found.push((is_safe, format!("{name} is {value}: {what}")));
            }
            let encrypted = row.maybe_text(5)?.as_deref() == Some("true");
            let text = match encrypted {
                true => "the connection is encrypted, or a socket of this machine",
                false => "the connection is not encrypted: add ?sslmode=require to the address",
            };
            found.push((encrypted, text.to_owned()));
            Ok(found)
        })
    }

    fn transaction<T>(
        &mut self,
        attempted: &'static str,
        run: impl FnOnce(&mut Tx<'_>) -> Result<T, DbError>,
    ) -> Result<T, FleetError> {
        if self.db.is_lost() {
            (self.db, self.place) = connect(&self.address, self.access)?;
            if self.is_coordinator {
                self.coordinate()?;
            }
        }
        self.db.transaction(run).map_err(|reason| self.error(attempted, &*reason))
    }

    fn error(&self, attempted: &'static str, reason: &(dyn std::error::Error + 'static)) -> FleetError {
        FleetError::Store { attempted, place: self.place.clone(), reason: full(reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_reads_creates_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        let place = path.to_str().unwrap();
        let Err(FleetError::Store { reason, .. }) = Store::open_to_read(place) else {
            panic!("it is missing")
        };
        assert!(reason.contains("unable to open") && !path.exists(), "{reason}");
        std::fs::write(&path, "").unwrap();
        let Err(error) = Store::open_to_read(place) else { panic!("it has no tables") };
        assert!(matches!(error, FleetError::Usage(_)) && error.to_string().contains("is not a fleet store"));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        let mut writer = Store::open(place).unwrap();
        let mut reader = Store::open_to_read(place).unwrap();
        assert_eq!(reader.campaigns().unwrap(), []);
        let refused = reader.keep_alive(&["a"], 1).unwrap_err().to_string();
        assert!(refused.contains("readonly"), "{refused}");
        // It does not wait for a transaction that has written nothing yet.
        assert_eq!(writer.transaction("wait", |_| Ok(reader.agents()?.len())).unwrap(), 0);
    }

    #[test]
    fn a_store_with_code_in_it_is_refused() {
        for object in [
            "CREATE TRIGGER t AFTER INSERT ON result BEGIN DELETE FROM summary; END",
            "CREATE VIEW v AS SELECT 1",
            "ALTER TABLE result ADD COLUMN c AS (hex(result))",
            "CREATE VIRTUAL TABLE f USING fts5(a)",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("fleet.db").display().to_string();
            drop(Store::open(&path).unwrap());
            rusqlite::Connection::open(&path).unwrap().execute_batch(object).unwrap();
            for opened in [Store::open(&path), Store::open_to_read(&path)] {
                let Err(error) = opened else { panic!("{object}") };
                assert!(error.to_string().contains("objects other than its tables"), "{error}");
            }
        }
    }

    #[test]
    fn a_store_beside_a_pipe_is_refused() {
        for ending in ["", "-journal", "-wal", "-shm"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("fleet.db").display().to_string();
            let pipe = format!("{path}{ending}");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            for opened in [Store::open(&path), Store::open_to_read(&path)] {
                let Err(error) = opened else { panic!("{pipe}") };
                assert!(error.to_string().contains(&format!("{pipe} is not a regular file")), "{error}");
            }
        }
    }

    #[test]
    fn no_removed_file_admits_a_second_coordinator() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        let mut first = Store::open(path.to_str().unwrap()).unwrap();
        first.coordinate().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            if file.path() != path {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
        let mut second = Store::open(path.to_str().unwrap()).unwrap();
        let error = second.coordinate().unwrap_err().to_string();
        assert!(error.contains("another coordinator uses the fleet store"), "{error}");
        // The first one continues.
        first.keep_alive(&["a"], 1).unwrap();
    }
}
