//! The fleet store: the truth about a fleet, in PostgreSQL or in one SQLite file.
//!
//! Both engines execute the same statements (`schema.sql`) and pass the same tests ([`conformance`]).

mod agents;
mod campaigns;
pub mod conformance;
mod db;
mod leases;
mod safety;

pub use agents::AgentInfo;
pub use campaigns::{CampaignRow, NewCampaign, NewPair, PairProgress, State};
pub use leases::{BlockKey, Class, Committed, Lease};

use crate::FleetError;
use db::{Db, DbError, Tx};
use postgres::config::SslMode;
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The format of the tables (`schema.sql`).
const FORMAT: i64 = 2;
const SCHEMA: &str = include_str!("schema.sql");
/// How long a SQLite transaction waits for another process.
const SQLITE_WAITS: Duration = Duration::from_secs(30);
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
}

impl Store {
    /// Opens a store, and creates its tables if they are missing: `postgres://..` or the path of a SQLite file.
    pub fn open(place: &str) -> Result<Self, FleetError> {
        let address = place.to_owned();
        let (db, place) = connect(&address)?;
        let mut store = Store { db, address, place, lock: None, is_coordinator: false };
        store.create_tables()?;
        Ok(store)
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
        if found == FORMAT {
            return Ok(());
        }
        Err(FleetError::Usage(format!(
            "the fleet store {} has format {found}, and this version of stacklab reads format {FORMAT}: use another store, or the version that wrote it",
            self.place
        )))
    }

    /// Makes this program the one coordinator of the store, until it ends.
    ///
    /// # Errors
    /// If another one is running.
    pub fn coordinate(&mut self) -> Result<(), FleetError> {
        let taken = match &mut self.db {
            Db::Sqlite(connection) => {
                let path = PathBuf::from(format!("{}.lock", connection.path().unwrap_or_default()));
                let file = File::options().create(true).append(true).open(&path);
                let locked =
                    file.map_err(TryLockError::Error).and_then(|file| file.try_lock().map(|()| file));
                match locked {
                    Ok(file) => {
                        self.lock = Some(file);
                        true
                    }
                    Err(TryLockError::WouldBlock) => false,
                    Err(TryLockError::Error(reason)) => {
                        return Err(self.error("lock the coordinator's file", &reason));
                    }
                }
            }
            Db::Postgres(..) => self.transaction("take the coordinator's lock", |tx| {
                let sql = "SELECT CAST(pg_try_advisory_lock($1) AS TEXT)";
                Ok(tx
                    .row(sql, &[COORDINATING.into()])?
                    .is_some_and(|row| row.text(0).is_ok_and(|text| text == "true")))
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

    fn transaction<T>(
        &mut self,
        attempted: &'static str,
        run: impl FnOnce(&mut Tx<'_>) -> Result<T, DbError>,
    ) -> Result<T, FleetError> {
        if self.db.is_lost() {
            (self.db, self.place) = connect(&self.address)?;
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

fn connect(address: &str) -> Result<(Db, String), FleetError> {
    if is_postgres(address) { postgres(address) } else { sqlite(Path::new(address)) }
}

fn is_postgres(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

fn sqlite(path: &Path) -> Result<(Db, String), FleetError> {
    let place = path.display().to_string();
    let opened = || -> rusqlite::Result<rusqlite::Connection> {
        let connection = rusqlite::Connection::open(path)?;
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

fn postgres(url: &str) -> Result<(Db, String), FleetError> {
    let wrong = |reason: postgres::Error| {
        FleetError::Usage(format!("the store's address is not valid: {}", full(&reason)))
    };
    let config: postgres::Config = url.parse().map_err(wrong)?;
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
    fn sqlite_passes_every_conformance_test() {
        for (name, test) in conformance::TESTS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("fleet.db");
            eprintln!("{name}");
            test(&|| Store::open(path.to_str().unwrap()).unwrap());
        }
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
