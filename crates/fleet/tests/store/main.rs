//! The store on SQLite.

mod conformance;

use stacklab_fleet::store::Store;

#[test]
fn sqlite_passes_every_conformance_test() {
    for (name, test) in conformance::TESTS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.db");
        eprintln!("{name}");
        test(&|| Store::open(path.to_str().unwrap()).unwrap());
    }
}
