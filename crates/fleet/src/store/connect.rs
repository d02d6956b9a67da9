//! Connections to the two engines.

use crate::FleetError;
use crate::store::Access;
use crate::store::db::{Db, DbError};
use postgres::config::SslMode;
use rusqlite::{OpenFlags, TransactionBehavior};
use stacklab_store::{check_files, distrust};
use stacklab_traffic::waiting::WaitNotice;
use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a SQLite transaction waits for another process.
const SQLITE_WAITS: Duration = Duration::from_secs(30);
/// How long a reader waits for a server of PostgreSQL that does not answer.
const READER_WAITS: Duration = Duration::from_secs(10);
/// Time limit for a server of PostgreSQL to let in whoever connects, at all of its addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// An error with its causes: PostgreSQL's own message is one.
pub(super) fn full(reason: &(dyn std::error::Error + 'static)) -> String {
    let mut text = reason.to_string();
    let mut cause = reason.source();
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}

pub(super) fn connect(address: &str, access: Access) -> Result<(Db, String), FleetError> {
    if is_postgres(address) { postgres(address, access) } else { sqlite(Path::new(address), access) }
}

fn is_postgres(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

/// Whether the address of a store has a password. All users of a machine can read those in arguments of programs.
pub fn has_password(place: &str) -> bool {
    if !is_postgres(place) {
        return false;
    }
    match place.parse::<postgres::Config>() {
        Ok(config) => config.get_password().is_some(),
        // It may have one.
        Err(_) => place.contains(['@', '=']),
    }
}

fn sqlite(path: &Path, access: Access) -> Result<(Db, String), FleetError> {
    let place = path.display().to_string();
    check_files(path)
        .map_err(|reason| FleetError::Usage(format!("the fleet store {place} is refused: {reason}")))?;
    match open_sqlite(path, access) {
        Ok(connection) => Ok((Db::Sqlite(connection), place)),
        Err(reason) => Err(FleetError::Store { attempted: "open", place, reason: reason.to_string() }),
    }
}

fn open_sqlite(path: &Path, access: Access) -> rusqlite::Result<rusqlite::Connection> {
    let mut flags = OpenFlags::default();
    // Not read-only: SQLite undoes the commit of a coordinator that was killed.
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, access == Access::Write);
    let mut connection = rusqlite::Connection::open_with_flags(path, flags)?;
    match access {
        Access::Write => connection.set_transaction_behavior(TransactionBehavior::Immediate),
        Access::Read => connection.pragma_update(None, "query_only", true)?,
    }
    connection.busy_timeout(SQLITE_WAITS)?;
    distrust(&connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn postgres(url: &str, access: Access) -> Result<(Db, String), FleetError> {
    let mut config: postgres::Config = url.parse().map_err(|reason| {
        FleetError::Usage(format!("the store's address is not valid: {}", full(&reason)))
    })?;
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
        SslMode::Require => {
            tls().and_then(|tls| wait_for(&place, CONNECT_TIMEOUT, move || config.connect(tls)))
        }
        // A server's own certificate is often signed by nobody: only who asks for encryption is asked for a valid one.
        _ => wait_for(&place, CONNECT_TIMEOUT, move || config.connect(postgres::NoTls)),
    };
    match connected {
        Ok(client) => Ok((Db::Postgres(Box::new(client), HashMap::new()), place)),
        Err(reason) => Err(FleetError::Store { attempted: "connect", place, reason: full(&*reason) }),
    }
}

/// A connection that is opened on a thread: the settings have no time limit for a server that accepts and then says
/// nothing.
fn wait_for(
    place: &str,
    timeout: Duration,
    open: impl FnOnce() -> Result<postgres::Client, postgres::Error> + Send + 'static,
) -> Result<postgres::Client, DbError> {
    let _notice = WaitNotice::within(&format!("the server of {place} to answer"), timeout);
    let (sender, opened) = mpsc::channel();
    thread::Builder::new().spawn(move || drop(sender.send(open())))?;
    match opened.recv_timeout(timeout) {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(format!(
            "the server did not answer within {} s; check that PostgreSQL is what listens there",
            timeout.as_secs()
        )
        .into()),
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
    use crate::store::Store;

    #[test]
    fn addresses_with_a_password_are_recognised() {
        for with in [
            "postgres://lab:secret@db.example.org/lab",
            "postgresql://lab:secret@[2001:db8::1]:5432/lab?sslmode=require",
            "postgres://db.example.org/lab?user=lab&password=secret",
        ] {
            assert!(has_password(with), "{with}");
        }
        for without in
            ["fleet.db", "a:b@c.db", "postgres://lab@db.example.org/lab", "postgres://%2Frun/lab?user=a"]
        {
            assert!(!has_password(without), "{without}");
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

    #[test]
    fn a_server_that_accepts_and_says_nothing_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("postgres://me:secret@{}/lab", silent.local_addr().unwrap());
        let config: postgres::Config = address.parse().unwrap();
        let opened =
            wait_for("postgres://lab", Duration::from_millis(100), move || config.connect(postgres::NoTls));
        let Err(error) = opened else { panic!("nothing answers there") };
        assert!(error.to_string().contains("did not answer within 0 s"), "{error}");
    }
}
