//! A result counts once: one that its agent kept for another coordinator, and one that arrives again.

use crate::support::fleet::{Fleet, study};
use crate::support::fleet_relay::FleetRelay;
use crate::support::program::code;
use stacklab_fleet::BlockResult;
use stacklab_fleet::store::{BlockKey, Store};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const CAMPAIGN: [&str; 7] = ["study.toml", "--pairs", "name=a0 -> name=a1", "--blocks", "2", "--name", "lab"];
const RESUME: [&str; 3] = ["--resume", "--name", "lab"];

/// Waits until something is there.
fn wait<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        sleep(Duration::from_millis(10));
    }
}

/// The results of the only pair.
fn results(fleet: &Fleet) -> Vec<(BlockKey, BlockResult)> {
    let results = Store::open(&fleet.store).unwrap().results("lab", 0).unwrap();
    results.into_iter().map(|(key, text)| (key, serde_json::from_str(&text).unwrap())).collect()
}

#[test]
fn the_next_coordinator_commits_what_an_agent_kept() {
    let fleet = Fleet::start(2, &[], None);
    fleet.coordinator.write("study.toml", study().time("400ms").text());
    let mut coordinator = fleet.begin(&CAMPAIGN);
    let leased = wait("a lease", || {
        let reservations = Store::open(&fleet.store).ok()?.reservations().ok()?;
        reservations.into_iter().next().map(|(_, _, key)| key)
    });
    // The block takes more than a second and a half.
    sleep(Duration::from_millis(400));
    assert!(coordinator.kill() && fleet.kept("a0").is_empty(), "it was too late to kill the coordinator");
    let file = format!("lab,0,{},1.json", leased.block);
    wait("a kept result", || fleet.kept("a0").contains(&file).then_some(()));
    let kept: BlockResult = serde_json::from_slice(&fs::read(fleet.keeps("a0").join(file)).unwrap()).unwrap();
    let resumed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    fleet.run(&RESUME).expect(code::DONE);
    let results = results(&fleet);
    assert_eq!(results.len(), 2);
    for (key, result) in results {
        assert_eq!(key.attempt, 1, "{key}");
        let is_older = result.runs.iter().all(|run| u128::from(run.started_unix_ns) < resumed.as_nanos());
        assert_eq!(is_older, key.block == leased.block, "{key}");
        assert!(!is_older || result == kept, "{key} is not what was kept");
    }
    assert_eq!(fleet.kept("a0"), [""; 0]);
}

#[test]
fn orders_and_results_that_arrive_twice_count_once() {
    let fleet = Fleet::start(2, &[], None);
    let relay = FleetRelay::start(&fleet.sockets(), "a0");
    // Beside other blocks, so that an order that is repeated late is obeyed again.
    fleet.run(&[&CAMPAIGN[..], &["--class", "background"]].concat()).expect(code::DONE);
    let first = results(&fleet);
    assert_eq!(first.len(), 2);
    // The orders that came late have results, too.
    wait("results of repeated orders", || (fleet.kept("a0").len() == 2).then_some(()));
    fleet.run(&RESUME).expect(code::DONE);
    assert!(results(&fleet) == first, "a result that came later replaced one");
    assert_eq!(fleet.kept("a0"), [""; 0]);
    let answers = relay.answers();
    let count = |request: &str, answer: &str| {
        answers.iter().filter(|(asked, said)| asked == request && said.contains(answer)).count()
    };
    assert_eq!(count("measure", "it holds a lease already, of lab, pair 0"), 2, "{answers:?}");
    assert_eq!(count("measure", "\"measured\""), 4, "two orders and their late repetitions");
    // Twice: nobody heard of the first time that each was forgotten, and the late ones came again.
    assert_eq!((count("fetch", "\"measured\""), count("forget", "lost")), (4, 2), "{answers:?}");
}
