//! Fleets of the real program: local agents, real servers of NATS, a real PostgreSQL, and faults.

#[path = "../../crates/fleet/tests/store/conformance.rs"]
mod conformance;
mod faults;
mod lake;
mod once;
mod page;

use crate::support::fleet::Fleet;
use crate::support::nats::Nats;
use crate::support::postgres::Postgres;
use crate::support::program::{code, require_root, require_tool};
use serde_json::Value;

use stacklab_fleet::store::Store;

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

#[test]
fn campaign_gives_verdicts_of_each_pair_and_over_all() {
    let fleet = Fleet::start(4, &[], None);
    let args = ["study.toml", "--pairs", "site=a -> site=b", "--blocks", "4", "--name", "lab", "--seed", "7"];
    let ran = fleet.run(&args).expect(code::DONE).says(&["4 pairs, 16 blocks, campaign lab"]);
    for pair in ["a0 -> a1", "a0 -> a3", "a2 -> a1", "a2 -> a3"] {
        assert!(ran.stdout.contains(pair), "{ran}");
    }
    let status = fleet.ask("status", &[]).expect(code::DONE);
    assert!(
        status.stdout.starts_with("Campaign lab: ended; 16 blocks with a result, 0 being measured"),
        "{status}"
    );
    let json: Value =
        serde_json::from_str(&fleet.ask("report", &["--json"]).expect(code::DONE).stdout).unwrap();
    assert_eq!(json["pairs"].as_array().unwrap().len(), 4, "{json}");
    // The record of a pair is one as any other.
    fleet.ask("report", &["--pair", "2", "--out", "pair.stacklab"]).expect(code::DONE);
    let report = fleet.coordinator.run(&["report", "pair.stacklab"]).expect(code::DONE);
    assert!(
        report.stdout.contains("valid runs in 4 blocks") && report.stdout.contains("a2 to a1"),
        "{report}"
    );
    let report = fleet.coordinator.run(&["report", "pair.stacklab", "--format", "json"]).expect(code::DONE);
    let record: Value = serde_json::from_str(&report.stdout).unwrap();
    let own = &record["comparisons"][0];
    let of_fleet = &json["comparisons"][0]["answers"][2];
    assert!(own["effect"]["pairs"] == 4 && own["verdict"] != Value::Null, "{own}");
    for key in ["verdict", "effect", "claimed_interval"] {
        assert_eq!(own[key], of_fleet[key], "the pair has one answer: {own} {of_fleet}");
    }
    for name in fleet.names() {
        assert_eq!(fleet.kept(&name), [""; 0], "{name} was not asked to forget");
    }
    fleet.run(&args).expect(code::RECORD).says(&["lab"]);
}

#[test]
fn campaign_over_nats_and_postgresql_is_as_one_here() {
    require_root();
    require_tool("nats-server", "nats-server");
    let nats = Nats::start(3);
    let postgres = Postgres::start();
    let address = nats.address();
    let args = ["study.toml", "--pairs", "site=a -> site=b", "--blocks", "3", "--name", "lab", "--seed", "7"];
    let far = Fleet::start(4, &["--server", &address], Some(&postgres.database("lab")));
    far.run(&args).expect(code::DONE);
    let near = Fleet::start(4, &[], None);
    near.run(&args).expect(code::DONE);
    assert_eq!(far.trials("lab"), near.trials("lab"));
    assert_eq!(far.trials("lab").len(), 12);
    let healthy = far.ask("doctor", &["--server", &address]).expect(code::DONE);
    for text in ["PostgreSQL 1", "fsync is on", "nats-server 2.", "4 agents answer"] {
        assert!(healthy.stdout.contains(text) && !healthy.stdout.contains("  no "), "{text}: {healthy}");
    }
}

#[test]
fn postgresql_connection_is_encrypted_where_asked_for() {
    require_root();
    let mut postgres = Postgres::start();
    let (plain, certificate) = postgres.secure("lab");
    let secure = format!("{plain}?sslmode=require");
    let fleet = Fleet::start(2, &[], None);
    let folder = fleet.sockets().display().to_string();
    let doctor = ["fleet", "doctor", "--dir", &folder, "--store"];
    let mut trusting = fleet.coordinator.command(&[&doctor[..], &[&secure]].concat());
    trusting.env("SSL_CERT_FILE", certificate);
    let healthy = crate::support::program::Outcome::of(trusting).expect(code::DONE);
    assert!(healthy.stdout.contains("yes  the connection is encrypted"), "{healthy}");
    fleet
        .coordinator
        .run(&[&doctor[..], &[&secure]].concat())
        .expect(code::RECORD)
        .says(&["could not connect: fleet store postgres://localhost/lab", "certificate"]);
    let plain = fleet.coordinator.run(&[&doctor[..], &[&plain]].concat()).expect(code::ELSE);
    assert!(plain.stdout.contains("no   the connection is not encrypted: add ?sslmode=require"), "{plain}");
}

#[test]
fn wrong_requests_are_answered_in_a_sentence() {
    let fleet = Fleet::start(2, &[], None);
    for (args, exit, expected) in [
        (&["study.toml", "--pairs", "site=c -> site=a"][..], code::REQUEST, "no agent has site=c"),
        (&["wifi"], code::REQUEST, "builds no testbed"),
        (&["study.toml", "--set", "factors.os=[\"uml\"]"], code::REQUEST, "factors.os"),
        (&["study.toml", "--name", "a/b"], code::REQUEST, "`a/b` cannot be the name of a campaign"),
        (&["--resume"], code::REQUEST, "has no campaign"),
    ] {
        fleet.run(args).expect(exit).says(&[expected]);
    }
    let empty = fleet.coordinator.tmp().join("none").display().to_string();
    let store = fleet.coordinator.work().join("other.db").display().to_string();
    let args = ["fleet", "run", "study.toml", "--dir", &empty, "--store", &store];
    fleet.coordinator.run(&args).expect(code::REQUEST).says(&["needs two agents", "stacklab fleet agent"]);
    let wire = fleet.run_args(&[])[2..4].to_vec();
    let twice = [&["fleet", "agent", "--name", "a0"][..], &wire].concat();
    fleet.coordinator.run(&twice).expect(code::REQUEST).says(&["a0 runs already", "--name"]);
}

#[test]
fn nats_and_agents_refuse_strangers() {
    require_tool("nats-server", "nats-server");
    let nats = Nats::start(1);
    let address = nats.address();
    let fleet = Fleet::start(2, &["--server", &address], None);
    let wrong = nats.address_as("fleet:guess");
    let gone = "nats://127.0.0.1:1";
    for (server, expected) in [(wrong.as_str(), "authorization"), (gone, "127.0.0.1:1")] {
        let refused = fleet.coordinator.run(&["fleet", "agents", "--server", server]).expect(code::HOST);
        assert!(refused.stderr.contains(expected) && !refused.stderr.contains("guess"), "{refused}");
    }
    let args = ["fleet", "agent", "--name", "x", "--allow-target", "::/0", "--server"];
    let other = nats.address_as("other:of-the-tests");
    let refused = fleet.coordinator.run(&[&args[..], &[&other]].concat()).expect(code::HOST);
    assert!(
        refused.stderr.contains("x: it cannot be reached by this name") && !refused.stderr.contains("ready"),
        "{refused}"
    );
    let open = ["fleet", "agent", "--name", "x", "--server", &address];
    fleet.coordinator.run(&open).expect(code::REQUEST).says(&["--allow-target"]);
    let agents = fleet.coordinator.run(&["fleet", "agents", "--server", &address]).expect(code::DONE);
    assert!(agents.stdout.lines().count() == 2 && agents.stdout.contains("site=b"), "{agents}");
    // An agent that says it has an address that others do not allow.
    let far = [
        "fleet",
        "agent",
        "--name",
        "far",
        "--label",
        "site=far",
        "--address",
        "192.0.2.1",
        "--address",
        "::1",
    ];
    let far = [&far[..], &["--allow-target", "::/0", "--keep", "far", "--server"], &[&address]].concat();
    let mut far = fleet.coordinator.start(&far);
    far.wait_for("is ready", std::time::Duration::from_secs(10));
    let store = fleet.coordinator.work().join("far.db").display().to_string();
    let args = ["fleet", "run", "study.toml", "--pairs", "site=a -> site=far", "--server", &address];
    let args = [&args[..], &["--blocks", "2", "--attempts", "2", "--store", &store]].concat();
    fleet.coordinator.run(&args).expect(code::NOTHING_VALID).says(&["refuses traffic with 192.0.2.1"]);
}
