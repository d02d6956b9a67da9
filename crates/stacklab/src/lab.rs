//! Two hosts with agents that have said hello: one pair of systems, on a testbed or as real machines, with or without services
//! on the receiver.

use crate::clocks::{Known, one_clock, one_machine};
use crate::failure::Failure;
use crate::outside;
use crate::remote::Machine;
use crate::row::{self, Origin, Row};
use crate::served;
use crate::settings::{self, Pinning};
use crate::sources::now_unix_ns;
use stacklab_model::{
    Cell, CpuScope, Direction, Factor, Family, HostFacts, Io, LinkConfig, Metric, Probe, ProbeSpec, Role,
    RowKind, RunRecord, Services, System, Systems, Trial, TrialSpec,
};
use stacklab_store::HostRow;
use stacklab_study::Study;
use stacklab_testbed::routed::Node;
use stacklab_testbed::services::Serving;
use stacklab_testbed::{Testbed, TestbedError, Ticks};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::stats::clock::Offset;
use stacklab_traffic::trial::measure_offset;
use stacklab_traffic::trial::{Path, run_trial};
use std::sync::atomic::AtomicBool;

/// How long both ends of a closed loop poll before they sleep, where they have processors of their own. Waking a
/// sleeping processor takes several times as long as the stack under test, and now more, now less.
const POLL_NS: u64 = 1_000_000;

/// Two hosts with agents.
pub struct Lab {
    systems: Systems,
    services: Services,
    place: Place,
    sender: AgentClient,
    receiver: AgentClient,
    /// Each host's facts, sender first; known once they were asked for.
    facts: Vec<HostFacts>,
    /// The last comparison of the hosts' clocks in a family, where they have two.
    compared: Option<(Family, Offset)>,
    /// Whether the hosts' receive work is done by their own processors in streams: where a link of known rate is to be
    /// filled. Else the sender's processor does both hosts' work, and is the limit.
    steers: bool,
}

/// Where the hosts are.
enum Place {
    /// On a link that was built for them.
    Built(Box<Testbed>),
    /// On networks that are as they are.
    Real([Machine; 2]),
    /// Behind two routers.
    Row(Box<Row>),
}

impl Lab {
    /// Builds the testbed for a pair of systems with the receiver's services, or takes the machines that were reached. Call it
    /// from the main thread: the hosts end with the thread that made them.
    ///
    /// # Errors
    /// When this machine cannot make it, a machine cannot be reached, or an agent does not speak.
    pub fn build(
        study: &Study,
        (systems, services): &(Systems, Services),
        machines: Option<[Machine; 2]>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let names = names(systems, services);
        let client = |name: &str, (output, input): stacklab_testbed::Streams| {
            AgentClient::new(name, output, input, interrupted)
        };
        let (place, [sender, receiver]) = if let Some(mut machines) = machines {
            let [sender, receiver] = machines.each_mut().map(Machine::take_streams);
            (Place::Real(machines), [client(&names[0], sender), client(&names[1], receiver)])
        } else {
            let program = std::env::current_exe().map_err(|reason| Failure::Output {
                what: "an agent: this program's own file cannot be found".to_owned(),
                reason,
            })?;
            let mut testbed = Testbed::of(systems, &study.link_config, &program, &["agent", "--stdio"])?;
            let [sender, receiver] = testbed.hosts_mut().each_mut().map(|host| host.meet());
            let agents = [client(&names[0], sender?), client(&names[1], receiver?)];
            testbed.serve(services)?;
            (Place::Built(Box::new(testbed)), agents)
        };
        let steers = match &place {
            Place::Built(testbed) => study.link_config.rate.is_some() && testbed.can_steer(),
            Place::Real(_) | Place::Row(_) => false,
        };
        let (systems, services) = (systems.clone(), services.clone());
        let mut lab =
            Lab { systems, services, place, sender, receiver, facts: Vec::new(), compared: None, steers };
        lab.sender.hello()?;
        lab.receiver.hello()?;
        Ok(lab)
    }

    /// The hosts at the ends of a row, whose agents speak by the first and the last of these streams and whose routers' do
    /// by those between.
    ///
    /// # Errors
    /// When an agent does not speak.
    pub fn of_row(
        origin: Origin,
        streams: [stacklab_testbed::Streams; 4],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let RowKind { mechanism, clients, routers, .. } = origin.plan.kind.clone();
        let client = |node: Node, (output, input): stacklab_testbed::Streams| {
            let system = match node {
                Node::Sender => &clients.0[0],
                Node::Router1 => &routers.0[0],
                Node::Router2 => &routers.0[1],
                Node::Receiver => &clients.0[1],
            };
            let system = if *system == System::Namespace { String::new() } else { format!("{system}, ") };
            AgentClient::new(format!("{node} ({system}{mechanism})"), output, input, interrupted)
        };
        let [sender, one, other, receiver] = streams;
        let row = Row::new(origin, [client(Node::Router1, one), client(Node::Router2, other)])?;
        let mut lab = Lab {
            place: Place::Row(Box::new(row)),
            sender: client(Node::Sender, sender),
            receiver: client(Node::Receiver, receiver),
            systems: clients.clone(),
            services: Services::default(),
            facts: Vec::new(),
            compared: None,
            steers: false,
        };
        lab.sender.hello()?;
        lab.receiver.hello()?;
        Ok(lab)
    }

    /// Whether it has routers.
    pub fn is_row(&self) -> bool {
        matches!(self.place, Place::Row(_))
    }

    /// Whether a cell is measured here.
    pub fn is_for(&self, cell: &Cell) -> bool {
        match &self.place {
            Place::Row(row) => *row.kind() == RowKind::of(cell),
            Place::Built(_) | Place::Real(_) => {
                Systems::of(cell) == self.systems && Services::of(cell) == self.services
            }
        }
    }

    /// The place in a sentence.
    pub fn describe(&self, link_config: &LinkConfig) -> String {
        match &self.place {
            Place::Built(testbed) => testbed.describe(),
            Place::Row(row) => row.describe(link_config),
            Place::Real([sender, receiver]) => {
                let rate = link_config.rate.map_or_else(String::new, |rate| format!(", {rate}"));
                format!("{sender} and {receiver} on their own network, MTU {}{rate}", link_config.mtu)
            }
        }
    }

    /// Each host's facts, for the record.
    pub fn hosts(&mut self) -> Result<Vec<HostRow>, Failure> {
        let since_unix_ns = now_unix_ns();
        let names = names(&self.systems, &self.services);
        let mut rows = Vec::new();
        let agents = [&mut self.sender, &mut self.receiver];
        for (number, (agent, name)) in agents.into_iter().zip(names).enumerate() {
            let facts = agent.facts()?;
            let more = match &mut self.place {
                Place::Built(testbed) => match testbed.serving() {
                    Some(serving) if number == 1 => Some(serving.describe()),
                    _ => testbed.guests()[number].clone(),
                },
                Place::Real(_) | Place::Row(_) => None,
            };
            let kind = self.systems.0[number].kind();
            let kind = more.map_or_else(|| kind.to_owned(), |more| format!("{kind}: {more}"));
            let (name, kind) = match &self.place {
                Place::Row(row) => (name, row.client_kind(number)),
                _ => (name, kind),
            };
            self.facts.push(facts.clone());
            rows.push(HostRow { name, kind, since_unix_ns, facts });
        }
        if let Place::Row(row) = &mut self.place {
            rows.extend(row.hosts(since_unix_ns)?);
        }
        Ok(rows)
    }

    /// Whose CPU the hosts' CPU figures are in all of a study's runs here.
    pub fn cpu_scope(&self, study: &Study) -> CpuScope {
        if self.systems.0[0].counts_cpu() != self.systems.0[1].counts_cpu() {
            return CpuScope::Various;
        }
        let mut scopes = study.cells.iter().filter(|cell| self.is_for(cell));
        let Some(first) = scopes.next().map(|cell| self.scope_of(cell)) else { return CpuScope::Shared };
        if scopes.all(|cell| self.scope_of(cell) == first) { first } else { CpuScope::Shared }
    }

    fn scope_of(&self, cell: &Cell) -> CpuScope {
        let in_lab = matches!(&self.place, Place::Row(row) if row.is_counted_outside());
        if in_lab || self.systems.0.iter().all(|system| !system.counts_cpu()) {
            return CpuScope::Outside;
        }
        let own_kernel = |system: &System| *system != System::Namespace && system.counts_cpu();
        if self.systems.0.iter().all(own_kernel) {
            return CpuScope::Host;
        }
        settings::cpu_scope(cell, self.steers)
    }

    /// Tries what a study asks of the processors, so that no trial fails for it.
    ///
    /// # Errors
    /// When this machine cannot do it.
    pub fn try_processors(&mut self, study: &Study) -> Result<(), Failure> {
        let pinned: Vec<Pinning> = study
            .cells
            .iter()
            .filter(|cell| self.is_for(cell))
            .filter(|cell| cell.settings.contains_key(&Factor::Pinning))
            .map(|cell| Pinning::of(cell, Probe::Stream, false, false))
            .collect();
        for pinning in pinned {
            self.put(pinning)?;
        }
        Ok(())
    }

    /// Puts the hosts and their receive work on processors.
    fn put(&mut self, pinning: Pinning) -> Result<(), TestbedError> {
        let Place::Built(testbed) = &mut self.place else { return Ok(()) };
        testbed.divide(pinning.divided)?;
        testbed.steer(pinning.steered).map_err(|reason| TestbedError::Setup {
            host: Role::Receiver,
            attempted: "have the host's own processors do its receive work".to_owned(),
            reason,
        })
    }

    /// The path of a cell's trials.
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let [sender, receiver] = match &self.place {
            Place::Built(testbed) => testbed.hosts().each_ref().map(|host| host.address(cell.family)),
            Place::Real(machines) => machines.each_ref().map(|machine| machine.address(cell.family)),
            Place::Row(row) => return row.path(link_config, cell),
        };
        let (offloads, rate, shared) = (link_config.offloads, link_config.rate, !self.services.is_empty());
        let (mtu, planned_mtu) = (link_config.mtu_of(cell), true);
        Path { sender, receiver, mtu, planned_mtu, offloads, rate, shared, nat: None }
    }

    fn divides(&self) -> bool {
        matches!(&self.place, Place::Built(testbed) if testbed.has_own_processors())
    }

    /// How messages get into the kernel where the study does not say: a guest's may know trains of datagrams in name only.
    fn io(&self, link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Io {
        let own = |system: &System| matches!(system, System::Namespace | System::Here | System::Ssh(_));
        let told = cell.settings.get(&Factor::Io).is_some_and(|level| level != "auto");
        match settings::io(link_config, cell, probe) {
            Io::Segment if !told && !self.systems.0.iter().all(own) => Io::Batch,
            io => io,
        }
    }

    /// Runs one trial.
    ///
    /// # Errors
    /// When a host is gone, or the user interrupts.
    pub fn measure(&mut self, study: &Study, seed: u64, trial: &Trial) -> Result<RunRecord, Failure> {
        let cell = &trial.cell;
        let mut probe = study.probe(trial.probe).expect("the plan holds only the study's probes").clone();
        let message_bytes = TrialSpec::message_bytes(cell.family, cell.transport, cell.framing, cell.size)
            .expect("a checked study's sizes hold their headers");
        let io = self.io(&study.link_config, cell, &probe);
        probe.pacing = settings::pacing(&study.link_config, cell, &probe);
        let path = self.path(&study.link_config, cell);
        let pinning = Pinning::of(cell, trial.probe, self.divides(), self.steers);
        let mut spec = TrialSpec {
            token: token(seed, trial),
            family: cell.family,
            transport: cell.transport,
            framing: cell.framing,
            message_bytes,
            cpu_scope: self.scope_of(cell),
            poll_ns: if trial.probe == Probe::Echo && pinning.divided { POLL_NS } else { 0 },
            io,
            // Only streams have several; other probes have one message or connection under way.
            flows: if trial.probe.streams() { settings::level(cell, Factor::Flows).unwrap_or(1) } else { 1 },
            tuning: settings::tuning(cell),
            clock_offset_ns: 0,
            probe,
        };
        if let Place::Built(testbed) = &mut self.place {
            testbed
                .set_link(settings::level(cell, Factor::Mtu), settings::level(cell, Factor::QueueLength))?;
        }
        self.put(pinning)?;
        let direction = settings::level(cell, Factor::Direction).unwrap_or(Direction::Forward);
        let known = self.clocks(&path, &spec)?;
        spec.clock_offset_ns = known.offset_ns();
        let counted = match &mut self.place {
            Place::Row(row) => {
                row.keep_path_mtus()?;
                Some(row.count()?)
            }
            _ => None,
        };
        let before = self.outside();
        if let Some(serving) = self.serving() {
            serving.begin();
        }
        let ran = run_trial(&mut self.sender, &mut self.receiver, &path, trial, spec.clone(), direction);
        let asked = self.serving().map(Serving::end);
        let mut run = ran?;
        if let Some(asked) = asked {
            served::note(&mut run, &asked?);
        }
        outside::fill_in(&mut run, &path, before, self.outside());
        if let (Place::Row(row), Some(before)) = (&mut self.place, counted) {
            let after = row.count()?;
            row::fill_in(&mut run, row, &study.link_config, &before, &after);
        }
        known.finish(&mut run, || self.compare(&path, &spec))?;
        Ok(run)
    }

    fn serving(&mut self) -> Option<&mut Serving> {
        match &mut self.place {
            Place::Built(testbed) => testbed.serving(),
            Place::Real(_) | Place::Row(_) => None,
        }
    }

    /// What the processes of guests that do not count all of their time themselves have run until now. A whole row inside such
    /// a guest is one of them.
    fn outside(&self) -> [Option<Ticks>; 2] {
        let all = match &self.place {
            Place::Row(row) if row.is_counted_outside() => {
                let ticks = row.lab_ticks();
                return [ticks, ticks];
            }
            _ if self.systems.0.iter().all(System::counts_cpu) => return [None, None],
            Place::Built(testbed) => testbed.hosts().each_ref().map(|host| host.guest_ticks()),
            Place::Row(row) => row.client_ticks(),
            Place::Real(_) => [None, None],
        };
        [0, 1].map(|number| all[number].filter(|_| !self.systems.0[number].counts_cpu()))
    }

    /// What is known of the hosts' clocks before a trial: the comparison after the one before serves, where it was over the
    /// same family.
    fn clocks(&mut self, path: &Path, spec: &TrialSpec) -> Result<Known, AgentError> {
        let [sender, receiver] = &self.facts[..] else { return Ok(Known::One) };
        let delays = spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay);
        if one_clock(sender, receiver) || !delays {
            return Ok(Known::One);
        }
        let one = one_machine(sender, receiver);
        let before = match self.compared {
            Some((family, offset)) if family == spec.family => Ok(offset),
            _ => self.compare(path, spec)?,
        };
        Ok(Known::of(one, before))
    }

    fn compare(&mut self, path: &Path, spec: &TrialSpec) -> Result<Result<Offset, String>, AgentError> {
        let compared = measure_offset(&mut self.sender, &mut self.receiver, path, spec)?;
        self.compared = compared.as_ref().ok().map(|offset| (spec.family, *offset));
        Ok(compared)
    }
}

/// What the hosts are called, sender first.
pub fn names(systems: &Systems, services: &Services) -> [String; 2] {
    let [sender, receiver] = &systems.0;
    let name = |role: Role, system: &System, part: &str| match (system, services.is_empty()) {
        (System::Namespace, true) => role.name().to_owned(),
        (System::Namespace, false) => format!("{role} ({part} of {services})"),
        (system, _) => format!("{role} ({system})"),
    };
    [name(Role::Sender, sender, "client"), name(Role::Receiver, receiver, "server")]
}

/// A number that differs from those of the trials before and after.
fn token(seed: u64, trial: &Trial) -> u32 {
    (seed as u32)
        ^ trial.block.wrapping_mul(0x9e37_79b1).wrapping_add(trial.position.wrapping_mul(0x85eb_ca6b))
}
