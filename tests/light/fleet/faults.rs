//! Faults at random moments: what is measured in the end is what an undisturbed campaign measures, each block once.

use crate::support::fleet::Fleet;
use crate::support::nats::Nats;
use crate::support::postgres::Postgres;
use crate::support::program::{Running, code, require_root, require_tool};
use crate::support::random::Random;
use stacklab_model::SplitMix64;
use std::thread::sleep;
use std::time::{Duration, Instant};

const AGENTS: usize = 4;
const CAMPAIGN: [&str; 9] =
    ["study.toml", "--pairs", "site=a -> site=b", "--blocks", "12", "--name", "lab", "--seed", "11"];
const BLOCKS: usize = 48;
const RESUME: [&str; 3] = ["--resume", "--name", "lab"];
/// Whatever happens, it ends within this.
const LIMIT: Duration = Duration::from_secs(240);

/// Kills and starts again, `rounds` times, while the campaign runs; `fault` does other faults. Then lets it end.
fn disturb(fleet: &mut Fleet, random: &mut Random, rounds: u32, mut fault: impl FnMut(&mut Random)) {
    let begun = Instant::now();
    let mut coordinator: Running = fleet.begin(&CAMPAIGN);
    coordinator.wait_for("campaign lab", Duration::from_secs(20));
    let mut killed = 0;
    for _ in 0..rounds {
        sleep(Duration::from_millis(200 + random.below(900)));
        match random.below(3) {
            0 => {
                let names = fleet.names();
                let name = &names[random.below(names.len() as u64) as usize];
                fleet.kill_agent(name);
                sleep(Duration::from_millis(random.below(500)));
                fleet.run_agent(name);
            }
            1 => {
                killed += u32::from(coordinator.kill());
                coordinator = fleet.begin(&RESUME);
            }
            _ => fault(random),
        }
    }
    assert!(killed > 0, "another seed: no coordinator was killed while it ran");
    while coordinator.is_running() && begun.elapsed() < LIMIT {
        sleep(Duration::from_millis(50));
    }
    coordinator.kill();
    // Whatever an agent kept last is collected.
    fleet.run(&RESUME).expect(code::DONE);
}

#[test]
fn disturbed_campaign_measures_what_a_calm_one_does() {
    let undisturbed = Fleet::start(AGENTS, &[], None);
    undisturbed.run(&CAMPAIGN).expect(code::DONE);
    let expected = undisturbed.trials("lab");
    assert_eq!(expected.len(), BLOCKS);
    drop(undisturbed);
    let mut fleet = Fleet::start(AGENTS, &[], None);
    disturb(&mut fleet, &mut Random(SplitMix64(3)), 12, |_| {});
    assert_eq!(fleet.trials("lab"), expected);
}

#[test]
fn nats_and_postgresql_servers_may_be_killed() {
    require_root();
    require_tool("nats-server", "nats-server");
    let mut nats = Nats::start(3);
    let mut postgres = Postgres::start();
    let mut fleet = Fleet::start(AGENTS, &["--server", &nats.address()], Some(&postgres.database("lab")));
    let mut random = Random(SplitMix64(5));
    let mut faults = 0;
    disturb(&mut fleet, &mut random, 12, |random| {
        faults += 1;
        match faults % 3 {
            1 => {
                let number = random.below(3) as usize;
                nats.kill(number);
                sleep(Duration::from_millis(300));
                nats.run(number);
            }
            2 => {
                postgres.kill();
                postgres.run();
            }
            _ => {
                let first = random.below(3) as usize;
                let two = [first, (first + 1) % 3];
                nats.cut(&two);
                sleep(Duration::from_secs(3));
                nats.heal(&two);
            }
        }
    });
    assert!(faults >= 3, "another seed: only {faults} faults of servers");
    assert_eq!(fleet.trials("lab").len(), BLOCKS);
}

#[test]
fn agents_may_be_cut_off_and_messages_repeated() {
    require_tool("nats-server", "nats-server");
    let undisturbed = Fleet::start(AGENTS, &[], None);
    let campaign = CAMPAIGN.map(|word| if word == "12" { "6" } else { word });
    undisturbed.run(&campaign).expect(code::DONE);
    let nats = Nats::start(1);
    // The coordinator and the senders hear some messages twice, and the receivers are cut off.
    let (address, repeating) = nats.relayed(150);
    let (far, cut) = nats.relayed(100);
    let mut fleet = Fleet::start_apart(AGENTS, &["--server", &address], &["--server", &far], None);
    let mut coordinator = fleet.begin(&campaign);
    coordinator.wait_for("campaign lab", Duration::from_secs(20));
    for _ in 0..3 {
        sleep(Duration::from_millis(700));
        cut.cut();
        sleep(Duration::from_secs(2));
        cut.heal();
    }
    coordinator.end(LIMIT).expect(code::DONE);
    assert_eq!(fleet.trials("lab"), undisturbed.trials("lab"));
    let repeated = [repeating.repeated(), cut.repeated()];
    // Each stream's first one, and others.
    assert!(repeated.iter().all(|messages| *messages > 24), "{repeated:?} messages were repeated");
    for name in fleet.names() {
        assert_eq!(fleet.kept(&name), [""; 0], "{name} was not asked to forget");
        // Nothing waits for the rest of a repeated stream.
        fleet.end_agent(&name).expect(code::DONE);
    }
}
