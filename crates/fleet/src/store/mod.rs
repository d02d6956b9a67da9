//! The fleet store: the truth about a fleet, in PostgreSQL or in one SQLite file.
//!
//! Both engines execute the same statements and pass the same tests (`tests/store/conformance.rs`).

mod agents;
mod campaigns;
mod db;
mod leases;

pub use agents::AgentInfo;
pub use campaigns::{BlockCounts, CampaignRow, ListedCampaign, NewCampaign, NewPair, PairProgress, State};
pub use leases::{BlockKey, Class, Committed, Lease};

use crate::FleetError;
use db::{Db, DbError, Tx};
use postgres::config::SslMode;
use rusqlite::{OpenFlags, TransactionBehavior};
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

const FORMAT: i64 = 2;
const SCHEMA: &str = include_str!("schema.sql");
const OLDEST: i64 = 150_000;
/// How long a SQLite transaction waits for another process.
const SQLITE_WAITS: Duration = Duration::from_secs(30);
/// How long a reader waits for a server of PostgreSQL that does not answer.
const READER_WAITS: Duration = Duration::from_secs(10);
/// The advisory locks of PostgreSQL: for creating the tables, and for the one coordinator. "StLb", and a number.
const CREATING: i64 = 0x5374_4c62_0001;
const COORDINATING: i64 = 0x5374_4c62_0002;

/// An open fleet store.
pub struct Store {
    db: Db,
    /// Where it is, with the password, and without.
    address: String,
    place: String,
    /// The lock file of the coordinator of a SQLite store.
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
        let mut store = Store::connected(place, Access::Write)?;
        store.create_tables()?;
        Ok(store)
    }

    /// Opens an existing store to read it: nothing is created or changed.
    pub fn open_to_read(place: &str) -> Result<Self, FleetError> {
        let mut store = Store::connected(place, Access::Read)?;
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

    fn connected(address: &str, access: Access) -> Result<Self, FleetError> {
        let (db, place) = connect(address, access)?;
        Ok(Store { db, address: address.to_owned(), place, lock: None, is_coordinator: false, access })
    }

    fn create_tables(&mut self) -> Result<(), FleetError> {
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
                let path = PathBuf::from(format!("{}.lock", connection.path().unwrap_or_default()));
                let file = File::options().create(true).append(true).open(&path);
                let locked =
                    file.map_err(TryLockError::Error).and_then(|file| file.try_lock().map(|()| file));
                match locked {
                    Ok(file) => self.lock = Some(file),
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(reason)) => {
                        return Err(self.error("lock the coordinator's file", &reason));
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

/// An error with its causes: PostgreSQL's own message is one.
fn full(reason: &(dyn std::error::Error + 'static)) -> String {
    let mut text = reason.to_string();
    let mut cause = reason.source();
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}

fn connect(address: &str, access: Access) -> Result<(Db, String), FleetError> {
    if is_postgres(address) { postgres(address, access) } else { sqlite(Path::new(address), access) }
}

fn is_postgres(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

fn sqlite(path: &Path, access: Access) -> Result<(Db, String), FleetError> {
    let place = path.display().to_string();
    let opened = || -> rusqlite::Result<rusqlite::Connection> {
        let mut flags = OpenFlags::default();
        // Not read-only: SQLite undoes the commit of a coordinator that was killed.
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, access == Access::Write);
        let mut connection = rusqlite::Connection::open_with_flags(path, flags)?;
        match access {
            Access::Write => connection.set_transaction_behavior(TransactionBehavior::Immediate),
            Access::Read => connection.pragma_update(None, "query_only", true)?,
        }
        connection.busy_timeout(SQLITE_WAITS)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    };
    match opened() {
        Ok(connection) => Ok((Db::Sqlite(connection), place)),
        Err(reason) => Err(FleetError::Store { attempted: "open", place, reason: reason.to_string() }),
    }
}

fn postgres(url: &str, access: Access) -> Result<(Db, String), FleetError> {
    let wrong = |reason: postgres::Error| {
        FleetError::Usage(format!("the store's address is not valid: {}", full(&reason)))
    };
    let mut config: postgres::Config = url.parse().map_err(wrong)?;
    if access == Access::Read {
        // A reader does not wait long for a server that is gone.
        config.connect_timeout(*config.get_connect_timeout().unwrap_or(&READER_WAITS));
        config.tcp_user_timeout(*config.get_tcp_user_timeout().unwrap_or(&READER_WAITS));
        let given = config.get_options().unwrap_or_default();
        config.options(&format!("{given} -c default_transaction_read_only=on"));
    }
    let host = match config.get_hosts() {
        [postgres::config::Host::Tcp(host), ..] => host.clone(),
        [postgres::config::Host::Unix(folder), ..] => folder.display().to_string(),
        [] => "localhost".to_owned(),
    };
    let place = format!("postgres://{host}/{}", config.get_dbname().unwrap_or_default());
    let connected = match config.get_ssl_mode() {
        SslMode::Require => tls().and_then(|tls| Ok(config.connect(tls)?)),
        // A server's own certificate is often signed by nobody: only who asks for encryption is asked for a valid one.
        _ => config.connect(postgres::NoTls).map_err(Into::into),
    };
    match connected {
        Ok(client) => Ok((Db::Postgres(Box::new(client), HashMap::new()), place)),
        Err(reason) => Err(FleetError::Store { attempted: "connect", place, reason: full(&*reason) }),
    }
}

/// TLS with the system's certificates, or those of SSL_CERT_FILE.
fn tls() -> Result<MakeRustlsConnect, DbError> {
    match MakeRustlsConnect::with_native_certs() {
        Ok((tls, _)) => Ok(tls),
        Err(reasons) => Err(format!("this machine has no certificates: {reasons:?}").into()),
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
    fn a_password_is_in_no_message() {
        let Err(error) = Store::open("postgres://me:secret@127.0.0.1:1/lab?connect_timeout=1") else {
            panic!()
        };
        let text = error.to_string();
        assert!(text.contains("postgres://127.0.0.1/lab") && !text.contains("secret"), "{text}");
    }
}
