//! Running services, and the load of queries on them.

use crate::kernel::netlink::index;
use crate::services::ask::ask;
use crate::services::daemon::{Daemon, ServiceEnds};
use crate::services::load::{Asked, Load};
use crate::services::program::{PROGRAMS, Program};
use crate::{Ability, AtHost, Attempt, INTERFACE, Node, TestbedError, Workdir, in_namespace};
use stacklab_model::{Family, Service, Services};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout from a daemon's start to its first answers, which normally take a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// Checks that the programs for the services are installed, before anything is built.
pub fn check(services: &Services) -> Result<(), TestbedError> {
    Program::of(services).try_for_each(|program| program.find().map(drop))
}

/// Whether each daemon's program is installed here.
pub fn abilities() -> Vec<Ability> {
    PROGRAMS.map(Program::ability).into()
}

/// Running services, which are queried on request. Dropping it ends them.
#[derive(Debug)]
pub struct Serving {
    services: Services,
    // The drop order: first the queries, then the daemons, then their files.
    load: Load,
    daemons: Vec<Daemon>,
    _workdir: Workdir,
}

impl Serving {
    /// Starts the daemons on the receiver, and returns when each service has answered over both families. Call it
    /// from a thread that lives as long as the daemons should: they are killed when it ends.
    pub(crate) fn start(services: &Services, ends: &ServiceEnds<'_>) -> Result<Self, TestbedError> {
        let workdir = Workdir::create()?;
        let mut daemons = Vec::new();
        for program in Program::of(services) {
            daemons.push(Daemon::start(program, services, &workdir, ends)?);
        }
        // A thread that enters a namespace must be a separate one, and a daemon must be watched from the thread that
        // started it.
        let sender = ends.namespaces[0];
        let interface =
            in_namespace(sender, || index(INTERFACE)).attempt("ask the services").and_then(|index| index);
        let interface = interface.at(Node::Sender)?;
        first_answers(services, interface, sender, &mut daemons)?;
        let load = Load::start(services, interface, sender, ends.processors[0])
            .attempt("ask the services")
            .at(Node::Sender)?;
        Ok(Serving { services: services.clone(), load, daemons, _workdir: workdir })
    }

    /// Starts the queries.
    pub fn begin(&self) {
        self.load.begin();
    }

    /// Stops the queries, and returns the counts of each service since [`Serving::begin`].
    pub fn end(&mut self) -> Result<BTreeMap<Service, Asked>, TestbedError> {
        let asked = self.load.end();
        self.daemons.iter_mut().try_for_each(Daemon::check)?;
        Ok(asked)
    }

    /// The services.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The daemons with their versions, for messages: `dnsmasq 2.90 and slapd 2.5.13`.
    pub fn describe(&self) -> String {
        let names: Vec<&str> = self.daemons.iter().map(|daemon| &*daemon.version).collect();
        names.join(" and ")
    }

    /// The daemons' process IDs.
    pub fn pids(&self) -> Vec<u32> {
        self.daemons.iter().map(Daemon::pid).collect()
    }
}

fn first_answers(
    services: &Services,
    interface: u32,
    sender: u32,
    daemons: &mut [Daemon],
) -> Result<(), TestbedError> {
    let until = Instant::now() + PATIENCE;
    for service in services.iter() {
        for family in Family::ALL {
            loop {
                let asked = in_namespace(sender, || ask(service, *family, 0, interface));
                let Err(reason) = asked.and_then(|answer| answer) else { break };
                daemons.iter_mut().try_for_each(Daemon::check)?;
                if Instant::now() > until {
                    let daemon = daemons.iter().find(|daemon| daemon.program.services.contains(&service));
                    let what = format!("did not answer {service} over {family} in {PATIENCE:?} ({reason})");
                    return Err(daemon.expect("it was started").fault(&what));
                }
                thread::sleep(LOOK);
            }
        }
    }
    Ok(())
}
