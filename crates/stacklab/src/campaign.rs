//! A campaign: trials in the plan's order, each stored when it ends, until the stopping rule is content.

use crate::course::{Course, key};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::settings::{self, Pinning};
use crate::sources::now_unix_ns;
use stacklab_model::{Bed, CpuScope, Direction, Factor, HostFacts, Probe, Role, RunRecord, Trial, TrialSpec};
use stacklab_store::{HostRow, Record};
use stacklab_study::{Plan, Study};
use stacklab_testbed::{Testbed, TestbedError};
use stacklab_traffic::client::{AgentClient, AgentError};
use stacklab_traffic::conduct::{Path, conduct};
use stacklab_traffic::message::{Answer, Request};
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long both ends of a closed loop poll before they sleep, where they have processors of their own. Waking a
/// sleeping processor takes several times as long as the stack under test, and now more, now less.
const POLL_NS: u64 = 1_000_000;
/// What the hosts of a testbed are, in the record.
const HOST_KIND: &str = "namespace";

/// A testbed with agents on its hosts that have said hello.
pub struct Lab {
    testbed: Testbed,
    sender: AgentClient,
    receiver: AgentClient,
    /// Whether the hosts' receive work is done by their own processors in streams: where a link of known rate is to be
    /// filled. Else the sender's processor does both hosts' work, and is the limit.
    steers: bool,
}

impl Lab {
    /// Builds the testbed of a study. Call it from the main thread: the hosts end with the thread that made them.
    ///
    /// # Errors
    /// When this machine cannot make it, or an agent does not speak.
    pub fn build(bed: &Bed, interrupted: &'static AtomicBool) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|reason| Failure::Output {
            what: "an agent: this program's own file cannot be found".to_owned(),
            reason,
        })?;
        let mut testbed = Testbed::build(bed, &program, &["agent", "--stdio"])?;
        let [sender, receiver] = testbed.hosts_mut().each_mut().map(|host| {
            let (input, output) = host.take_streams().expect("a new host's streams have not been taken");
            AgentClient::new(host.role().name(), output, input, interrupted)
        });
        let steers = bed.rate.is_some() && testbed.can_steer();
        let mut lab = Lab { testbed, sender, receiver, steers };
        lab.sender.hello()?;
        lab.receiver.hello()?;
        Ok(lab)
    }

    /// The testbed in a sentence.
    pub fn describe(&self) -> String {
        self.testbed.describe()
    }

    /// Each host's facts.
    pub fn hosts(&mut self) -> Result<Vec<HostRow>, Failure> {
        let since_unix_ns = now_unix_ns();
        let row = |role: Role, agent: &mut AgentClient| -> Result<HostRow, AgentError> {
            let facts: HostFacts =
                match agent.ask(Request::Facts, "tell its facts", Duration::from_secs(30))? {
                    (_, Answer::Facts(facts)) => *facts,
                    _ => return Err(agent.confused("tell its facts")),
                };
            Ok(HostRow { name: role.name().to_owned(), kind: HOST_KIND.to_owned(), since_unix_ns, facts })
        };
        Ok(vec![row(Role::Sender, &mut self.sender)?, row(Role::Receiver, &mut self.receiver)?])
    }

    /// Whose CPU the hosts' CPU figures are in all of a study's runs.
    pub fn cpu_scope(&self, study: &Study) -> CpuScope {
        let own = |cell| settings::cpu_scope(cell, self.steers) == CpuScope::Processors;
        if study.cells.iter().all(own) { CpuScope::Processors } else { CpuScope::Shared }
    }

    /// Tries what a study asks of the processors, so that no trial fails for it.
    ///
    /// # Errors
    /// When this machine cannot do it.
    pub fn try_processors(&mut self, study: &Study) -> Result<(), Failure> {
        for cell in study.cells.iter().filter(|cell| cell.settings.contains_key(&Factor::Pinning)) {
            self.place(Pinning::of(cell, Probe::Stream, false, false))?;
        }
        Ok(())
    }

    /// Puts the hosts and their receive work on processors.
    fn place(&mut self, pinning: Pinning) -> Result<(), TestbedError> {
        self.testbed.divide(pinning.divided)?;
        self.testbed.steer(pinning.steered).map_err(|reason| TestbedError::Setup {
            host: Role::Receiver,
            attempted: "have the host's own processors do its receive work".to_owned(),
            reason,
        })
    }

    /// Runs one trial.
    fn measure(&mut self, study: &Study, seed: u64, trial: &Trial) -> Result<RunRecord, Failure> {
        let cell = &trial.cell;
        let probe = study.probe(trial.probe).expect("the plan holds only the study's probes").clone();
        let message_bytes = TrialSpec::message_bytes(cell.family, cell.transport, cell.framing, cell.size)
            .expect("a checked study's sizes hold their headers");
        let [sender, receiver] = self.testbed.hosts().each_ref().map(|host| host.address(cell.family));
        let path = Path {
            sender,
            receiver,
            mtu: study.bed.mtu_of(cell),
            offloads: study.bed.offloads,
            rate: study.bed.rate,
        };
        let pinning = Pinning::of(cell, trial.probe, self.testbed.has_own_processors(), self.steers);
        let spec = TrialSpec {
            token: token(seed, trial),
            family: cell.family,
            transport: cell.transport,
            framing: cell.framing,
            message_bytes,
            cpu_scope: settings::cpu_scope(cell, self.steers),
            poll_ns: if trial.probe == Probe::Echo && pinning.divided { POLL_NS } else { 0 },
            io: settings::io(&study.bed, cell, &probe),
            // Only streams have several; other probes have one message or connection under way.
            flows: if trial.probe.streams() { settings::level(cell, Factor::Flows).unwrap_or(1) } else { 1 },
            tuning: settings::tuning(cell),
            clock_offset_ns: 0,
            probe,
        };
        self.testbed
            .set_link(settings::level(cell, Factor::Mtu), settings::level(cell, Factor::QueueLength))?;
        self.place(pinning)?;
        let direction = settings::level(cell, Factor::Direction).unwrap_or(Direction::Forward);
        Ok(conduct(&mut self.sender, &mut self.receiver, &path, trial, spec, direction)?)
    }
}

/// A number that differs from those of the trials before and after.
fn token(seed: u64, trial: &Trial) -> u32 {
    (seed as u32)
        ^ trial.block.wrapping_mul(0x9e37_79b1).wrapping_add(trial.position.wrapping_mul(0x85eb_ca6b))
}

/// Measures until the campaign has ended; runs that the record holds already are not measured again.
///
/// # Errors
/// When the user interrupts, a host is gone or the record cannot be written; what was committed is kept.
pub fn measure(
    study: &Study,
    plan: &Plan,
    lab: &mut Lab,
    record: &mut Record,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut runs = record.runs()?;
    let measured: HashSet<(u32, u32)> = runs.iter().map(key).collect();
    let mut course = Course::new(study, plan);
    loop {
        let trials = course.trials();
        if trials.is_empty() {
            return Ok(());
        }
        progress.block(study, &course, &trials);
        for trial in &trials {
            if measured.contains(&(trial.block, trial.position)) {
                progress.kept();
                continue;
            }
            progress.trial(trial);
            let mut run = lab.measure(study, plan.seed(), trial).map_err(|error| match error {
                Failure::Agent(AgentError::Interrupted) => Failure::Interrupted(record.path().to_owned()),
                failure => failure,
            })?;
            record.put_run(&run)?;
            // What the hosts saw is in the record; a long campaign need not carry it along.
            run.sides = Vec::new();
            progress.done(&run);
            runs.push(run);
        }
        course.advance(&runs);
    }
}
