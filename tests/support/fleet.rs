//! A fleet of the real program: agents on loopback addresses, and a coordinator.

use super::program::{Outcome, Program, Running, names, signal};
use super::studies::TestStudy;
use stacklab_fleet::BlockResult;
use stacklab_fleet::store::Store;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// A study of short blocks: round trips over both families.
pub(crate) fn study() -> TestStudy {
    TestStudy::new("A fleet of tests")
        // Nothing of a fleet ends by its budget.
        .set("blocks.budget", "1s")
        .families()
        .transports(&["udp"])
        .sizes(&[128])
        .echo(&["rtt"])
        .time("20ms")
        .warmup("5ms")
        .compare_families()
}

/// Agents by name, and where they and the campaign's results are.
pub(crate) struct Fleet {
    /// The coordinator's program.
    pub coordinator: Program,
    agents: BTreeMap<String, (Program, Option<Running>)>,
    /// The options that say where the agents are, and those that agents of the site b have instead.
    wire: Vec<String>,
    wire_of_b: Vec<String>,
    /// The store.
    pub store: String,
}

impl Fleet {
    /// Agents `a0`, `a1`, .. with the label `site=a` or `site=b` in turns, reached by these options; without any, over
    /// Unix sockets. The store is a file, unless it is named.
    pub(crate) fn start(count: usize, wire: &[&str], store: Option<&str>) -> Self {
        Self::start_apart(count, wire, wire, store)
    }

    /// As [`Fleet::start`]. The agents of the site `b` have other options.
    pub(crate) fn start_apart(count: usize, wire: &[&str], wire_of_b: &[&str], store: Option<&str>) -> Self {
        let coordinator = Program::new();
        coordinator.write("study.toml", study().text());
        let local = ["--dir".to_owned(), coordinator.tmp().join("agents").display().to_string()];
        let [wire, wire_of_b] = [wire, wire_of_b].map(|wire| {
            if wire.is_empty() { local.to_vec() } else { wire.iter().map(ToString::to_string).collect() }
        });
        let store =
            store.map_or_else(|| coordinator.work().join("fleet.db").display().to_string(), str::to_owned);
        let mut fleet = Fleet { coordinator, agents: BTreeMap::new(), wire, wire_of_b, store };
        for number in 0..count {
            fleet.agents.insert(format!("a{number}"), (Program::new(), None));
        }
        for name in fleet.names() {
            fleet.run_agent(&name);
        }
        fleet
    }

    /// The agents' names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.agents.keys().cloned().collect()
    }

    /// Starts an agent, and waits until it is ready.
    pub(crate) fn run_agent(&mut self, name: &str) {
        let number: usize = name[1..].parse().unwrap();
        let label = ["site=a", "site=b"][number % 2];
        let mut args = vec!["fleet", "agent", "--name", name, "--label", label, "--address", "127.0.0.1"];
        // Addresses that are named are no shared link: blocks of other agents may run beside.
        args.extend([
            "--address",
            "::1",
            "--keep",
            "kept",
            "--allow-target",
            "127.0.0.0/8",
            "--allow-target",
            "::1",
        ]);
        args.extend([&self.wire, &self.wire_of_b][number % 2].iter().map(String::as_str));
        let (program, running) = self.agents.get_mut(name).unwrap();
        let mut agent = program.start(&args);
        agent.wait_for("is ready", SOON);
        *running = Some(agent);
    }

    /// Kills an agent with SIGKILL.
    pub(crate) fn kill_agent(&mut self, name: &str) {
        if let Some(mut agent) = self.agents.get_mut(name).unwrap().1.take() {
            agent.kill();
        }
    }

    /// Ends an agent with Ctrl-C.
    pub(crate) fn end_agent(&mut self, name: &str) -> Outcome {
        let agent = self.agents.get_mut(name).unwrap().1.take().unwrap();
        signal(agent.pid(), "INT");
        agent.end(SOON)
    }

    /// The folder where an agent keeps results.
    pub(crate) fn keeps(&self, name: &str) -> PathBuf {
        self.agents[name].0.work().join("kept")
    }

    /// What an agent keeps.
    pub(crate) fn kept(&self, name: &str) -> Vec<String> {
        names(&self.keeps(name))
    }

    /// The folder of local agents' sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.coordinator.tmp().join("agents")
    }

    /// The arguments of `fleet run`, with those that say where agents and store are.
    pub(crate) fn run_args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["fleet", "run"];
        all.extend(args);
        all.extend(self.wire.iter().map(String::as_str));
        all.extend(["--store", &self.store]);
        all
    }

    /// Runs `fleet run` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.coordinator.run(&self.run_args(args))
    }

    /// Starts `fleet run`.
    pub(crate) fn begin(&self, args: &[&str]) -> Running {
        self.coordinator.start(&self.run_args(args))
    }

    /// Runs another command that uses the store.
    pub(crate) fn ask(&self, command: &str, args: &[&str]) -> Outcome {
        let mut all = vec!["fleet", command];
        all.extend(args);
        all.extend(["--store", &self.store]);
        self.coordinator.run(&all)
    }

    /// The trials of each block with a result, by pair: what was measured, without the figures.
    pub(crate) fn trials(&self, campaign: &str) -> BTreeMap<(String, u32), Vec<String>> {
        let mut store = Store::open(&self.store).unwrap();
        let mut found = BTreeMap::new();
        for pair in store.progress(campaign).unwrap() {
            for (key, result) in store.results(campaign, pair.pair).unwrap() {
                let result: BlockResult = serde_json::from_str(&result).unwrap();
                let trials =
                    result.runs.iter().map(|run| format!("{} {}", run.trial.position, run.trial)).collect();
                let twice = found.insert((pair.name(), key.block), trials);
                assert!(twice.is_none(), "{key} has two results");
            }
        }
        found
    }
}
