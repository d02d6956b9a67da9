//! Whether a store keeps what it has committed, and what is said to it.

use crate::FleetError;
use crate::store::Store;
use crate::store::db::Tx;

/// The oldest PostgreSQL that is tested.
const OLDEST: i64 = 150_000;

impl Store {
    /// What was checked, and for each whether it is safe.
    pub fn safety(&mut self) -> Result<Vec<(bool, String)>, FleetError> {
        let place = self.place().to_owned();
        self.transaction("read the server's settings", |tx| {
            if matches!(tx, Tx::Sqlite(..)) {
                return Ok(vec![(
                    true,
                    format!("store {place}: SQLite; each commit is on the disk when it is done"),
                )]);
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
                let what = if is_safe {
                    "a commit outlives a crash"
                } else {
                    "a crash may lose commits: set it to on"
                };
                found.push((is_safe, format!("{name} is {value}: {what}")));
            }
            let encrypted = row.maybe_text(5)?.as_deref() == Some("true");
            found.push((
                encrypted,
                if encrypted {
                    "the connection is encrypted, or a socket of this machine".to_owned()
                } else {
                    "the connection is not encrypted: add ?sslmode=require to the address".to_owned()
                },
            ));
            Ok(found)
        })
    }
}
