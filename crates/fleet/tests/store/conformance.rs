//! What every engine of the store must do: on SQLite (`main.rs`), and on PostgreSQL in an end-to-end test.
//!
//! Each test gets a function that opens one empty store, each time with another connection. A test panics if it fails.

use stacklab_fleet::FleetError;
use stacklab_fleet::store::{
    AgentInfo, BlockCounts, BlockKey, CampaignState, Class, Committed, Lease, NewCampaign, NewPair, Store,
};
use stacklab_model::SplitMix64;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// Opens the store of a test once more.
pub(crate) type Open<'a> = &'a (dyn Fn() -> Store + Sync);

/// A test.
pub(crate) type StoreTest = fn(Open<'_>);

/// Every test with its name.
pub(crate) const TESTS: [(&str, StoreTest); 12] = [
    ("follows_the_order", follows_the_order),
    ("reserves_all_or_none", reserves_all_or_none),
    ("keeps_classes_apart", keeps_classes_apart),
    ("counts_a_result_once", counts_a_result_once),
    ("leases_expired_blocks_again", leases_expired_blocks_again),
    ("gives_up_after_the_last_attempt", gives_up_after_the_last_attempt),
    ("needs_living_agents_and_a_running_campaign", needs_living_agents_and_a_running_campaign),
    ("lists_campaigns_with_their_blocks", lists_campaigns_with_their_blocks),
    ("has_the_lease_of_each_attempt", has_the_lease_of_each_attempt),
    ("has_one_coordinator", has_one_coordinator),
    ("reserves_no_agent_twice_in_any_order", reserves_no_agent_twice_in_any_order),
    ("reserves_no_agent_twice_at_the_same_time", reserves_no_agent_twice_at_the_same_time),
];

const CAMPAIGN: &str = "test";
const LEASE: i64 = 100;
const ALIVE: i64 = i64::MAX;

fn agent(name: &str, links: &[&str]) -> AgentInfo {
    AgentInfo {
        name: name.to_owned(),
        labels: BTreeMap::from([("site".to_owned(), name.to_owned())]),
        addresses: BTreeMap::new(),
        links: links.iter().map(|link| (*link).to_owned()).collect(),
        version: "0".to_owned(),
    }
}

/// A campaign of these pairs, with their agents.
fn campaign(store: &mut Store, id: &str, class: Class, pairs: &[[&AgentInfo; 2]], order: &[u32]) {
    let pairs = pairs.iter().map(|[sender, receiver]| {
        for one in [sender, receiver] {
            store.put_agents([*one], ALIVE).unwrap();
        }
        NewPair { sender: (*sender).clone(), receiver: (*receiver).clone(), skipped: None }
    });
    let pairs = pairs.collect();
    let request = "{}".to_owned();
    let order = order.to_vec();
    let new =
        NewCampaign { id: id.to_owned(), created_ns: 1, request, class, most_attempts: 3, pairs, order };
    store.put_campaign(&new).unwrap();
}

fn reserve(store: &mut Store, now: i64) -> Option<Lease> {
    store.reserve(CAMPAIGN, now, LEASE).unwrap()
}

fn commit(store: &mut Store, key: &BlockKey) -> Committed {
    store.commit(key, 0, &format!("[{}]", key.attempt), &format!("{{{}}}", key.attempt)).unwrap()
}

fn follows_the_order(open: Open<'_>) {
    let mut store = open();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| agent(name, &[]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b], [&c, &d]], &[1, 0, 0, 1, 1]);
    let mut found = Vec::new();
    while let Some(lease) = reserve(&mut store, 0) {
        assert_eq!(commit(&mut store, &lease.key), Committed::Counted);
        found.push((lease.key.pair, lease.key.block, lease.key.attempt));
    }
    assert_eq!(found, [(1, 0, 1), (0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 2, 1)]);
    let progress = open().progress(CAMPAIGN).unwrap();
    assert_eq!(progress.iter().map(|pair| pair.blocks.done).collect::<Vec<_>>(), [2, 3]);
    assert!(progress.iter().all(|pair| pair.is_over()));
    let results = store.results(CAMPAIGN, 1).unwrap();
    assert_eq!(results.iter().map(|(key, ..)| key.block).collect::<Vec<_>>(), [0, 1, 2]);
}

fn reserves_all_or_none(open: Open<'_>) {
    let mut store = open();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| agent(name, if name < "c" { &["up"] } else { &[] }));
    let e = agent("e", &["up"]);
    // The first two pairs share the link, the third shares an agent with the second.
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b], [&c, &e], [&c, &d]], &[0, 1, 2]);
    let first = reserve(&mut store, 0).unwrap();
    assert_eq!(first.key.pair, 0);
    let taken: Vec<String> = store.reservations().unwrap().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(taken, ["agent a", "agent b", "link up"]);
    // Not the second pair, whose agents are free and whose link is not.
    assert_eq!(reserve(&mut store, 0).unwrap().key.pair, 2);
    assert_eq!(reserve(&mut store, 0), None);
    assert_eq!(store.reservations().unwrap().len(), 5);
    commit(&mut store, &first.key);
    assert_eq!(reserve(&mut store, 0), None, "agent c is still reserved");
}

fn keeps_classes_apart(open: Open<'_>) {
    for (running, next, may_run) in [
        (Class::Exclusive, Class::Exclusive, false),
        (Class::Exclusive, Class::Normal, false),
        (Class::Exclusive, Class::Background, true),
        (Class::Normal, Class::Exclusive, false),
        (Class::Normal, Class::Normal, true),
        (Class::Background, Class::Exclusive, true),
        (Class::Background, Class::Background, true),
    ] {
        let mut store = open();
        let name = format!("{}-{}", running.name(), next.name());
        let [a, b] = ["a", "b"].map(|end| agent(&format!("{end}-{name}"), &[]));
        let [one, two] = [format!("one-{}", a.name), format!("two-{}", a.name)];
        campaign(&mut store, &one, running, &[[&a, &b]], &[0]);
        campaign(&mut store, &two, next, &[[&a, &b]], &[0]);
        assert!(store.reserve(&one, 0, LEASE).unwrap().is_some());
        let found = store.reserve(&two, 0, LEASE).unwrap();
        assert_eq!(found.is_some(), may_run, "{next:?} beside {running:?}");
    }
}

fn counts_a_result_once(open: Open<'_>) {
    let mut store = open();
    let [a, b] = ["a", "b"].map(|name| agent(name, &[]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b]], &[0]);
    let lease = reserve(&mut store, 0).unwrap();
    let unknown = BlockKey { attempt: 2, ..lease.key.clone() };
    assert!(matches!(store.commit(&unknown, 0, "[]", "{}"), Err(FleetError::Store { .. })));
    assert_eq!(commit(&mut store, &lease.key), Committed::Counted);
    assert_eq!(commit(&mut open(), &lease.key), Committed::Duplicate);
    assert_eq!(store.results(CAMPAIGN, 0).unwrap(), [(lease.key, "[1]".to_owned())]);
    assert_eq!(store.summaries(CAMPAIGN, 0).unwrap(), [(0, "{1}".to_owned())]);
    assert!(store.reservations().unwrap().is_empty());
}

fn leases_expired_blocks_again(open: Open<'_>) {
    let mut store = open();
    let [a, b] = ["a", "b"].map(|name| agent(name, &[]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b]], &[0]);
    let first = reserve(&mut store, 0).unwrap();
    assert!(store.expire(LEASE).unwrap().is_empty(), "the deadline is the last moment of the lease");
    assert_eq!(store.expire(LEASE + 1).unwrap(), std::slice::from_ref(&first.key));
    let second = reserve(&mut store, LEASE + 1).unwrap();
    assert_eq!((second.key.block, second.key.attempt), (0, 2));
    // The first attempt's result arrives late. It counts, and the second attempt keeps its reservation.
    assert_eq!(commit(&mut store, &first.key), Committed::Counted);
    assert_eq!(store.reservations().unwrap().len(), 2);
    assert_eq!(commit(&mut store, &second.key), Committed::Late);
    assert!(store.reservations().unwrap().is_empty());
    assert_eq!(store.results(CAMPAIGN, 0).unwrap().len(), 1);
    assert_eq!(store.summaries(CAMPAIGN, 0).unwrap(), [(0, "{1}".to_owned())]);
    assert_eq!(reserve(&mut store, LEASE + 1), None);
}

fn gives_up_after_the_last_attempt(open: Open<'_>) {
    let mut store = open();
    let [a, b] = ["a", "b"].map(|name| agent(name, &[]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b]], &[0]);
    for attempt in 1..=3 {
        let lease = reserve(&mut store, 0).unwrap();
        assert_eq!(lease.key.attempt, attempt);
        store.fail(&lease.key, 0, "no route to b").unwrap();
        // Another failure of the same attempt changes nothing.
        store.fail(&lease.key, 0, "again").unwrap();
    }
    assert_eq!(reserve(&mut store, 0), None);
    let progress = &store.progress(CAMPAIGN).unwrap()[0];
    assert_eq!((progress.blocks.given_up, progress.reason.as_deref()), (1, Some("no route to b")));
}

fn needs_living_agents_and_a_running_campaign(open: Open<'_>) {
    let mut store = open();
    let [a, b] = ["a", "b"].map(|name| agent(name, &[]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b]], &[0]);
    store.put_agents([&b], 10).unwrap();
    assert_eq!(reserve(&mut store, 11), None);
    store.set_state(CAMPAIGN, CampaignState::Stopped).unwrap();
    assert_eq!(reserve(&mut store, 10), None);
    store.set_state(CAMPAIGN, CampaignState::Running).unwrap();
    let lease = reserve(&mut store, 10).unwrap();
    store.fail(&lease.key, 10, "it has no IPv6 address").unwrap();
    store.skip_pair(CAMPAIGN, 0, "b has no IPv6 address").unwrap();
    assert_eq!(reserve(&mut store, 10), None);
    assert!(store.progress(CAMPAIGN).unwrap()[0].is_over());
    assert_eq!(store.campaign(None).unwrap().unwrap().id, CAMPAIGN);
    assert_eq!(store.campaign(Some("other")).unwrap(), None);
    assert_eq!(store.agents().unwrap().iter().map(|(_, until)| *until).collect::<Vec<_>>(), [ALIVE, 10]);
}

fn lists_campaigns_with_their_blocks(open: Open<'_>) {
    let mut store = open();
    let [a, b, c] = ["a", "b", "c"].map(|name| agent(name, &[]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b], [&b, &c], [&c, &a]], &[0, 0, 1, 1, 2]);
    campaign(&mut store, "other", Class::Exclusive, &[[&a, &b]], &[0]);
    for _ in 0..2 {
        let lease = reserve(&mut store, 0).unwrap();
        commit(&mut store, &lease.key);
    }
    let lease = reserve(&mut store, 0).unwrap();
    store.skip_pair(CAMPAIGN, 2, "no route").unwrap();
    let found = store.campaigns().unwrap();
    assert_eq!(found.iter().map(|one| one.row.id.as_str()).collect::<Vec<_>>(), [CAMPAIGN, "other"]);
    let blocks = found[0].blocks;
    assert_eq!((found[0].pairs, blocks.done, blocks.leased, blocks.waiting), (3, 2, 1, 1));
    assert_eq!(blocks, BlockCounts::of(&store.progress(CAMPAIGN).unwrap()));
    assert_eq!(found[1].blocks, BlockCounts { waiting: 1, ..BlockCounts::default() });
    commit(&mut store, &lease.key);
    let lease = reserve(&mut store, 0).unwrap();
    commit(&mut store, &lease.key);
    // What is left out is not waited for.
    assert!(store.campaigns().unwrap()[0].blocks.is_over() && store.is_over(CAMPAIGN).unwrap());
}

fn has_the_lease_of_each_attempt(open: Open<'_>) {
    let mut store = open();
    let [a, b] = ["a", "b"].map(|name| agent(name, &["link"]));
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &[[&a, &b]], &[0]);
    let first = reserve(&mut store, 0).unwrap();
    store.fail(&first.key, 1, "gone").unwrap();
    let second = reserve(&mut store, 2).unwrap();
    commit(&mut store, &second.key);
    for lease in [first, second] {
        let [third, other] = [
            BlockKey { attempt: 3, ..lease.key.clone() },
            BlockKey { campaign: "other".to_owned(), ..lease.key.clone() },
        ];
        assert_eq!(store.lease(&lease.key).unwrap(), Some(lease));
        assert_eq!([store.lease(&third).unwrap(), store.lease(&other).unwrap()], [None, None]);
    }
}

fn has_one_coordinator(open: Open<'_>) {
    let mut first = open();
    let mut second = open();
    first.coordinate().unwrap();
    let error = second.coordinate().unwrap_err().to_string();
    assert!(error.starts_with("another coordinator uses the fleet store"), "{error}");
    drop(first);
    // PostgreSQL notices the end of a connection a moment later.
    let begun = Instant::now();
    while let Err(error) = second.coordinate() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Fails if an agent or a link has an exclusive reservation and a second one that excludes it.
fn check_reservations(store: &mut Store, context: &str) {
    let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (resource, class, _) in store.reservations().unwrap() {
        open.entry(resource).or_default().push(class);
    }
    for (resource, classes) in open {
        let count = |name: &str| classes.iter().filter(|class| *class == name).count();
        let exclusive = count("exclusive");
        let normal = count("normal");
        assert!(exclusive <= 1 && (exclusive == 0 || normal == 0), "{context}: {resource}: {classes:?}");
    }
}

fn reserves_no_agent_twice_in_any_order(open: Open<'_>) {
    for seed in 0..20 {
        random_calls(open, seed);
    }
}

/// Random calls of everything, with connections that are closed in between, on one campaign of each class. In the end
/// each block has one result or was given up.
fn random_calls(open: Open<'_>, seed: u64) {
    let mut random = SplitMix64(seed);
    let mut below = move |n: usize| (random.next_u64() % n as u64) as usize;
    let mut store = open();
    let ids = put_random_campaigns(&mut store, seed, &mut below);
    let (mut now, mut leases): (i64, Vec<BlockKey>) = (0, Vec::new());
    let mut counted: HashSet<(String, u32, u32)> = HashSet::new();
    for step in 0.. {
        let context = format!("seed {seed}, step {step}");
        // At the end only what makes progress.
        match if step < 60 { below(7) } else { [0, 2][step % 2] } {
            0 | 1 => leases.extend(store.reserve(&ids[below(3)], now, LEASE).unwrap().map(|lease| lease.key)),
            2 | 3 if !leases.is_empty() => {
                let key = leases[below(leases.len())].clone();
                let committed = commit(&mut store, &key);
                let is_new = counted.insert((key.campaign.clone(), key.pair, key.block));
                assert_eq!(committed == Committed::Counted, is_new, "{context}: {key}");
            }
            4 if !leases.is_empty() => {
                store.fail(&leases[below(leases.len())], now, "random").unwrap();
            }
            5 => {
                now += below(2 * LEASE as usize) as i64;
                store.expire(now).unwrap();
            }
            6 => store = open(),
            _ => {}
        }
        check_reservations(&mut store, &context);
        if step >= 60 && step.is_multiple_of(20) {
            now += LEASE + 1;
            store.expire(now).unwrap();
            if ids.iter().all(|id| is_over(&mut open(), id)) {
                break;
            }
            assert!(step < 5000, "{context}: the campaigns never end");
        }
    }
    for id in &ids {
        check_results(&mut store, id, seed);
    }
}

/// Whether every pair of a campaign has ended.
fn is_over(store: &mut Store, id: &str) -> bool {
    store.progress(id).unwrap().iter().all(|pair| pair.is_over())
}

/// Five agents that share links, and a campaign of each class between them. Returns the campaigns' names.
fn put_random_campaigns(store: &mut Store, seed: u64, below: &mut impl FnMut(usize) -> usize) -> [String; 3] {
    let links: [&[&str]; 5] = [&["x"], &["x"], &["x", "y"], &["y"], &[]];
    let agents: Vec<AgentInfo> = (0..5).map(|n| agent(&format!("r{seed}-{n}"), links[n])).collect();
    let pairs: Vec<[&AgentInfo; 2]> =
        (0..5).map(|n| [&agents[n], &agents[(n + 1 + seed as usize % 3) % 5]]).collect();
    let ids = Class::ALL.map(|class| format!("r{seed}-{}", class.name()));
    for (class, id) in Class::ALL.into_iter().zip(&ids) {
        let order: Vec<u32> = (0..8).map(|_| below(5) as u32).collect();
        campaign(store, id, class, &pairs, &order);
    }
    ids
}

/// Each of the eight blocks of a campaign has one result or was given up.
fn check_results(store: &mut Store, id: &str, seed: u64) {
    let progress = store.progress(id).unwrap();
    let ended: u32 = progress.iter().map(|pair| pair.blocks.done + pair.blocks.given_up).sum();
    assert_eq!(ended, 8, "seed {seed}");
    for pair in progress {
        let results = store.results(id, pair.pair).unwrap();
        let blocks: BTreeSet<u32> = results.iter().map(|(key, ..)| key.block).collect();
        assert!(
            results.len() == blocks.len() && blocks.len() as u32 == pair.blocks.done,
            "seed {seed}: {pair:?}"
        );
    }
}

fn reserves_no_agent_twice_at_the_same_time(open: Open<'_>) {
    let mut store = open();
    let agents: Vec<AgentInfo> = (0..6).map(|n| agent(&format!("t{n}"), &[])).collect();
    let pairs: Vec<[&AgentInfo; 2]> = (0..6).map(|n| [&agents[n], &agents[(n + 1) % 6]]).collect();
    let order: Vec<u32> = (0..24).map(|n| n % 6).collect();
    campaign(&mut store, CAMPAIGN, Class::Exclusive, &pairs, &order);
    let found: Vec<BlockKey> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| measure_beside_others(open))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let blocks: HashSet<(u32, u32)> = found.iter().map(|key| (key.pair, key.block)).collect();
    assert_eq!((found.len(), blocks.len()), (24, 24));
}

/// Measures what it gets of the campaign until that has ended. Returns the attempts that were its own.
fn measure_beside_others(open: Open<'_>) -> Vec<BlockKey> {
    let mut store = open();
    let mut mine = Vec::new();
    // A program that finds nothing free tries again while others measure.
    while !is_over(&mut store, CAMPAIGN) {
        if let Some(lease) = reserve(&mut store, 0) {
            check_reservations(&mut store, "at the same time");
            assert_eq!(commit(&mut store, &lease.key), Committed::Counted);
            mine.push(lease.key);
        }
    }
    mine
}
