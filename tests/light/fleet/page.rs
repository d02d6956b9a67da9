//! A fleet on the page of `stacklab serve`.

use crate::support::fleet::Fleet;
use crate::support::postgres::Postgres;
use crate::support::program::{Running, code, require_root, require_tool};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

/// A page of a fleet.
struct Page {
    _serving: Running,
    address: String,
    token: String,
}

impl Page {
    fn serve(fleet: &Fleet) -> Self {
        let mut serving = fleet.coordinator.start(&["serve", "--fleet", &fleet.store, "--listen", ":0"]);
        serving.wait_for("http://", SOON);
        let said = serving.stderr();
        let (address, rest) = said.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).unwrap();
        let token = rest.split_once("token=").unwrap().1.split_whitespace().next().unwrap();
        Page { address: address.to_owned(), token: token.to_owned(), _serving: serving }
    }

    /// The status and the JSON of an answer.
    fn get(&self, path: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(3 * SOON)).unwrap();
        let Page { token, .. } = self;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }

    fn campaign(&self) -> Value {
        let (status, page) = self.get("/api/fleet/campaign?name=lab");
        assert_eq!(status, 200, "{page}");
        page
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let page = self.campaign();
            if holds(&page) {
                return page;
            }
            assert!(begun.elapsed() < 3 * SOON, "{what}: {page}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn count(page: &Value, list: &str) -> usize {
    page[list].as_array().unwrap().len()
}

/// Follows a campaign on the page, from its first block to its verdicts.
fn follow(mut fleet: Fleet) -> (Fleet, Page) {
    let args =
        ["study.toml", "--pairs", "site=a -> site=b", "--blocks", "12", "--name", "lab", "--seed", "7"];
    let mut running = fleet.begin(&args);
    running.wait_for("48 blocks, campaign lab", SOON);
    let page = Page::serve(&fleet);
    let found = page.wait_until("blocks are measured", |page| count(page, "measured") > 0);
    assert_eq!(
        (&found["campaign"]["state"], &found["changes"]),
        (&"running".into(), &true.into()),
        "{found}"
    );
    assert!(found["agents_summary"].as_str().unwrap().starts_with("4 agents: "), "{found}");
    page.wait_until("results come", |page| page["pairs"][0]["cells"][0]["sign"].is_string());
    fleet.kill_agent("a3");
    let found = page.wait_until("an agent is lost", |page| {
        page["agents"][0]["name"] == "a3" && page["agents"][0]["is_lost"] == true
    });
    assert!(found["agents_summary"].as_str().unwrap().contains(" 1 lost"), "{found}");
    assert!(found["failed"].as_u64().unwrap() > 0, "{found}");
    fleet.run_agent("a3");
    running.end(6 * SOON).expect(code::DONE);
    let found = page.wait_until("it ends", |page| page["changes"] == false);
    assert_eq!(found["campaign"]["state"], "ended");
    let blocks = found["campaign"]["progress"].as_str().unwrap();
    assert!(blocks.starts_with("48 blocks with a result, 0 being measured, 0 waiting"), "{blocks}");
    assert_eq!((count(&found, "measured"), count(&found, "agents")), (0, 0));
    // What `fleet report` prints.
    let report = fleet.ask("report", &[]).expect(code::DONE).stdout;
    let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(found["verdicts"]["answer"].as_str().unwrap()), "{report}");
    for pair in found["pairs"].as_array().unwrap() {
        let cells = pair["cells"].as_array().unwrap();
        assert_eq!(cells.len(), count(&found["verdicts"], "columns"), "{pair}");
        let signs: Vec<&str> = cells.iter().map(|cell| cell["sign"].as_str().unwrap()).collect();
        let row = format!("{} {}", pair["name"].as_str().unwrap(), signs.join(" "));
        assert!(flat.contains(&row) && pair["done"] == 12, "{row}: {report}");
    }
    assert_eq!(count(&found, "pairs"), 4);
    (fleet, page)
}

#[test]
fn the_page_follows_a_fleet_and_its_lost_agents() {
    let (fleet, page) = follow(Fleet::start(4, &[], None));
    let (status, listing) = page.get("/api/fleet");
    assert_eq!((status, &listing["campaigns"][0]["title"]), (200, &"A fleet of tests".into()));
    assert_eq!(page.get("/api/fleet/campaign?name=other").0, 404);
    // A store that is away, and is back.
    fs::rename(&fleet.store, format!("{}.away", fleet.store)).unwrap();
    let (status, refused) = page.get("/api/fleet");
    assert!(status == 422 && refused["error"].as_str().unwrap().contains("fleet.db"), "{refused}");
    assert!(!fs::exists(&fleet.store).unwrap());
    let missing = fleet.coordinator.run(&["serve", "--fleet", &fleet.store, "--listen", ":0"]);
    missing.expect(code::RECORD).says(&["fleet.db", "unable to open"]);
    fs::rename(format!("{}.away", fleet.store), &fleet.store).unwrap();
    assert_eq!(page.get("/api/fleet").0, 200);
}

#[test]
fn the_page_reads_postgresql_and_recovers_with_it() {
    require_root();
    require_tool("setpriv", "util-linux");
    let mut postgres = Postgres::start();
    let empty = postgres.database("empty");
    let (fleet, page) = follow(Fleet::start(4, &[], Some(&postgres.database("lab"))));
    let refused = fleet.coordinator.run(&["serve", "--fleet", &empty, "--listen", ":0"]);
    refused.expect(code::REQUEST).says(&["is not a fleet store"]);
    // A role that may only read is enough.
    let granted = "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader";
    postgres.says(granted, "lab").expect("the role is made");
    let mut reading = fleet;
    reading.store = reading.store.replace("lab@", "reader@");
    assert_eq!(Page::serve(&reading).campaign(), page.campaign());
    postgres.kill();
    let (status, refused) = page.get("/api/fleet");
    assert!(status == 422 && refused["error"].as_str().unwrap().contains("could not connect"), "{refused}");
    postgres.run();
    assert_eq!(page.get("/api/fleet").0, 200);
}
