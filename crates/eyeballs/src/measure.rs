//! The runs: the reference client first, then each scenario as often as asked, in random order.

use crate::client::{Client, HOST};
use crate::compare::{ClientComparison, compare_delays};
use crate::measurement::{Measurement, ReferenceCheck};
use crate::network::ClientNetwork;
use crate::network::zone::Zone;
use crate::progress::RunProgress;
use crate::run::observe::{Logs, observe};
use crate::run::{Run, attempt_delay_ms};
use crate::runs::ScenarioRuns;
use crate::scenario::{Scenario, ScenarioSet, list, path_scenario};
use crate::summary::summarize;
use crate::times::in_ms;
use crate::{EyeballsError, print};
use stacklab_analysis::statistics::median;
use stacklab_model::{Family, SplitMix64};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The connection attempt delay of the reference client, which RFC 8305 recommends.
const REFERENCE_DELAY: Duration = Duration::from_millis(250);
const REFERENCE_RUNS: usize = 5;
/// How long packets may follow the end of a client.
const SETTLING: Duration = Duration::from_millis(30);

/// What is asked of a measurement.
#[derive(Debug, Clone)]
pub struct MeasurementSettings<'a> {
    /// The command and its arguments; at least one has `{host}` in it.
    pub command: &'a [String],
    /// Which scenarios are run.
    pub scenarios: ScenarioSet,
    /// Runs of each scenario.
    pub repeat: u32,
    /// How long a run may take.
    pub limit: Duration,
    /// The seed of the order.
    pub seed: u64,
    /// Set when the user interrupts.
    pub interrupted: &'static AtomicBool,
}

/// Measures a client. Call [`stacklab_testbed::enter`] before.
pub fn measure(settings: &MeasurementSettings<'_>) -> Result<Measurement, EyeballsError> {
    let mut measured = measure_all(settings, &[settings.command])?;
    Ok(measured.remove(0))
}

/// Measures the client of the settings and another one, and compares their delays: in each scenario they run one after
/// the other, in random order. Call [`stacklab_testbed::enter`] before.
pub fn compare(
    settings: &MeasurementSettings<'_>,
    against: &[String],
) -> Result<ClientComparison, EyeballsError> {
    let mut measured = measure_all(settings, &[settings.command, against])?;
    let candidate = measured.remove(1);
    let baseline = measured.remove(0);
    let delays = compare_delays(&baseline, &candidate);
    Ok(ClientComparison { baseline, candidate, delays })
}

fn measure_all(
    settings: &MeasurementSettings<'_>,
    commands: &[&[String]],
) -> Result<Vec<Measurement>, EyeballsError> {
    for command in commands {
        if !command.iter().any(|word| word.contains(HOST)) {
            return Err(EyeballsError::Usage(format!(
                "the command has no {HOST}, which stands for the name to connect to: for example, curl http://{HOST}/"
            )));
        }
    }
    ClientNetwork::with(|network| measure_in(network, settings, commands))?
}

fn measure_in(
    network: &ClientNetwork,
    settings: &MeasurementSettings<'_>,
    commands: &[&[String]],
) -> Result<Vec<Measurement>, EyeballsError> {
    let scenarios = list(settings.scenarios);
    let runs = REFERENCE_RUNS + commands.len() * scenarios.len() * settings.repeat as usize;
    let mut lab = Lab { network, settings, progress: RunProgress::new(runs), count: 0 };
    let reference = lab.check_reference(&scenarios)?;
    let mut found = vec![without_runs(&scenarios); commands.len()];
    let mut random = SplitMix64(settings.seed);
    for round in 0..settings.repeat {
        for place in list_round(scenarios.len(), round == 0, &mut random) {
            // Whether a command works at all is found first.
            let is_first = round == 0 && place == 0;
            for arm in list_round(commands.len(), false, &mut random) {
                let run = lab.run_command(commands[arm], &scenarios[place], is_first)?;
                found[arm][place].runs.push(run);
            }
        }
    }
    let mut measured = Vec::new();
    for (command, scenarios) in commands.iter().zip(found) {
        measured.push(Measurement {
            command: command.to_vec(),
            seed: settings.seed,
            limit_s: settings.limit.as_secs_f64(),
            reference: reference.clone(),
            summary: summarize(&scenarios),
            scenarios,
        });
    }
    Ok(measured)
}

fn without_runs(scenarios: &[Scenario]) -> Vec<ScenarioRuns> {
    let mut found = Vec::new();
    for scenario in scenarios {
        found.push(ScenarioRuns {
            name: scenario.name.clone(),
            label: scenario.label.clone(),
            runs: Vec::new(),
        });
    }
    found
}

/// The numbers below `length` in random order; `keep_first`: with 0 first.
fn list_round(length: usize, keep_first: bool, random: &mut SplitMix64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    shuffle(&mut order, random);
    if keep_first {
        order.retain(|place| *place != 0);
        order.insert(0, 0);
    }
    order
}

fn shuffle(order: &mut [usize], random: &mut SplitMix64) {
    for place in (1..order.len()).rev() {
        let other = random.next_u64() % (place as u64 + 1);
        order.swap(place, other as usize);
    }
}

/// The network, and the number of runs in it.
struct Lab<'a> {
    network: &'a ClientNetwork,
    settings: &'a MeasurementSettings<'a>,
    progress: RunProgress,
    count: u32,
}

impl Lab<'_> {
    /// Measures the built-in client where IPv6 is dropped.
    fn check_reference(&mut self, scenarios: &[Scenario]) -> Result<ReferenceCheck, EyeballsError> {
        let name = path_scenario(Family::Ipv6, "drop");
        let dropped = scenarios.iter().find(|scenario| scenario.name == name);
        let dropped = dropped.expect("it is a quick scenario");
        let mut measured_ms = Vec::new();
        for _ in 0..REFERENCE_RUNS {
            let run = self.run(Client::Reference(REFERENCE_DELAY), dropped)?.run;
            measured_ms.extend(attempt_delay_ms(&run));
        }
        let set_ms = in_ms(REFERENCE_DELAY);
        Ok(ReferenceCheck { set_ms, median_ms: median(&measured_ms), measured_ms })
    }

    /// Runs a command once. `must_ask`: whether it is an error if it asks for no name.
    fn run_command(
        &mut self,
        words: &[String],
        scenario: &Scenario,
        must_ask: bool,
    ) -> Result<Run, EyeballsError> {
        let client = Client::Command { words, bundle: self.network.bundle };
        let mut observed = self.run(client, scenario)?;
        if must_ask && observed.run.queries.is_empty() && observed.run.end.is_killed {
            // Its files may not have been in memory: a first start can take longer than the limit on a busy machine.
            observed = self.run(client, scenario)?;
        }
        let Observed { run, output } = observed;
        if must_ask && run.queries.is_empty() {
            return Err(EyeballsError::Client(print::describe_silence(words, &run, &output)));
        }
        Ok(run)
    }

    fn run(&mut self, client: Client<'_>, scenario: &Scenario) -> Result<Observed, EyeballsError> {
        if self.settings.interrupted.load(Ordering::Relaxed) {
            return Err(EyeballsError::Interrupted);
        }
        self.progress.begin(&scenario.label);
        self.count += 1;
        // Caches of names do not know it.
        let host =
            format!("r{}-{:08x}.eyeballs.test", self.count, SplitMix64::mix(self.settings.seed) as u32);
        self.network.wire.set(scenario.paths);
        let zone = Zone { name: host.clone(), a: scenario.a.clone(), aaaa: scenario.aaaa.clone() };
        self.network.dns.set(zone);
        let began = self.network.clock.now();
        let ended = client.run(&host, self.settings, &mut self.progress)?;
        thread::sleep(SETTLING);
        let queries = self.network.dns.take_log();
        let packets = self.network.wire.take_log();
        let logs = Logs { queries: &queries, packets: &packets, began };
        Ok(Observed { run: observe(&host, &logs, &ended.exit), output: ended.output })
    }
}

/// A run, and the last output of its client.
struct Observed {
    run: Run,
    output: String,
}
