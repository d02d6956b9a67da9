//! The store of a fleet on a real PostgreSQL.

use crate::support::postgres::Postgres;
use crate::support::program::{require_root, require_tool};

use stacklab_fleet::store::{Store, conformance};

#[test]
fn postgresql_passes_every_conformance_test() {
    require_root();
    require_tool("setpriv", "util-linux");
    let postgres = Postgres::start();
    for (name, test) in conformance::TESTS {
        eprintln!("{name}");
        let database = postgres.database(name);
        test(&|| Store::open(&database).unwrap());
    }
}
