//! Services on the receiver, in addition to the measured traffic. The receiver is then a server and the sender its
//! client: real daemons run in the receiver's namespace, and a light load of queries comes from the sender's
//! namespace.

use crate::kernel::cpus;
use crate::kernel::namespace::enter_namespace;
use crate::kernel::netlink::index;
use crate::kernel::sys::limit;
use crate::services::ask::ask;
use crate::services::program::{PROGRAMS, Program, with_own_libraries};
use crate::{
    Ability, AtHost, Attempt, Fault, INTERFACE, Node, Process, TestbedError, Workdir, in_namespace,
    last_words, spawn_in_namespace,
};
use nix::sys::resource::Resource;
use stacklab_model::{Family, Service, Services};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) mod ask;
pub(crate) mod program;

/// Timeout from a daemon's start to its first answers, which normally take a tenth of a second.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

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
    /// What they serve.
    pub services: Services,
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
        // Daemons must be watched from the thread that started them.
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
    let until = Instant::now() + TIMEOUT;
    for service in services.iter() {
        for family in Family::ALL {
            loop {
                let asked = in_namespace(sender, || ask(service, *family, 0, interface));
                let Err(reason) = asked.and_then(|answer| answer) else { break };
                daemons.iter_mut().try_for_each(Daemon::check)?;
                if Instant::now() > until {
                    let daemon = daemons.iter().find(|daemon| daemon.program.services.contains(&service));
                    let what = format!("did not answer {service} over {family} in {TIMEOUT:?} ({reason})");
                    return Err(daemon.expect("it was started").fault(&what));
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
    Ok(())
}

pub(crate) struct ServiceEnds<'a> {
    pub namespaces: [u32; 2],
    pub processors: [&'a [usize]; 2],
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pub program: &'static Program,
    pub version: String,
    process: Process,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn start(
        program: &'static Program,
        services: &Services,
        workdir: &Workdir,
        ends: &ServiceEnds<'_>,
    ) -> Result<Self, TestbedError> {
        let file = program.find()?;
        let own = workdir.path().join(program.name);
        let mut command = write_command(program, services, &file, &own).at(Node::Receiver)?;
        let process = spawn_in_namespace(ends.namespaces[1], &mut command, ends.processors[1]);
        let process = process.at(Node::Receiver)?;
        Ok(Daemon { program, version: program.version(&file), process, log: own.join(LOG) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn check(&mut self) -> Result<(), TestbedError> {
        match self.process.status() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.fault(&format!("ended ({status})"))),
            Err(error) => Err(self.fault(&format!("cannot be looked at: {error}"))),
        }
    }

    pub(crate) fn fault(&self, what: &str) -> TestbedError {
        let version = &self.version;
        let remedy = self.program.remedy;
        let words = last_words(&self.log);
        TestbedError(format!("the {version} on the receiver {what}{words}; to get another one: {remedy}"))
    }
}

/// What a daemon prints, in its folder.
const LOG: &str = "log";

/// Makes a daemon's folder. Returns the command that runs this file of its program there.
fn write_command(program: &Program, services: &Services, file: &Path, own: &Path) -> Result<Command, Fault> {
    fs::create_dir(own).attempt(format!("create {}", own.display()))?;
    let mut command = (program.command)(file, services, own)?;
    let log = own.join(LOG);
    let output = File::create(&log).attempt(format!("write {}", log.display()))?;
    let errors = output.try_clone().attempt(format!("write {}", log.display()))?;
    prepare(&mut command, file, own);
    command.stdout(output).stderr(errors);
    Ok(command)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Fault> {
    fs::write(path, text).attempt(format!("write {}", path.display()))
}

/// Gives the daemon none of this machine's settings, and a low limit of open files.
pub(crate) fn prepare(command: &mut Command, file: &Path, own: &Path) {
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("TMPDIR", own)
        // Ignore the configuration files of libldap and libsasl2.
        .env("LDAPNOINIT", "1")
        .env("SASL_CONF_PATH", own)
        .current_dir(own)
        .stdin(Stdio::null());
    with_own_libraries(command, file);
    // Some daemons allocate a table as large as the limit.
    limit(command, Resource::RLIMIT_NOFILE, 1024);
}

const PERIOD: Duration = Duration::from_millis(100);

/// The number of queries to a service, and of correct answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Queries.
    pub asked: u64,
    /// Queries with a correct answer.
    pub answered: u64,
}

#[derive(Debug)]
pub(crate) struct Load {
    state: Arc<LoadState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct LoadState {
    /// Whether to ask. Each query holds it, so that changing it waits for the queries under way.
    asking: RwLock<bool>,
    asked: Mutex<BTreeMap<Service, Asked>>,
    ended: AtomicBool,
}

impl Load {
    /// Starts the threads. They send nothing before [`Load::begin`].
    pub(crate) fn start(
        services: &Services,
        interface: u32,
        namespace: u32,
        processors: &[usize],
    ) -> io::Result<Self> {
        let mut load = Load { state: Arc::default(), threads: Vec::new() };
        for service in services.iter() {
            let state = Arc::clone(&load.state);
            let processors = processors.to_vec();
            let (sender, heard) = channel();
            let thread = Builder::new().name(format!("ask {service}")).spawn(move || {
                let ready = enter_namespace(namespace).and_then(|()| cpus::stay_on(&processors));
                let is_ready = ready.is_ok();
                if sender.send(ready).is_ok() && is_ready {
                    state.work(service, interface);
                }
            })?;
            load.threads.push(thread);
            heard.recv().map_err(|_| io::Error::other("the thread that asks has ended"))??;
        }
        Ok(load)
    }

    pub(crate) fn begin(&self) {
        self.take();
        self.set(true);
    }

    /// Stops the queries. On return, no query is waiting for an answer. Returns the counts since [`Load::begin`].
    pub(crate) fn end(&self) -> BTreeMap<Service, Asked> {
        self.set(false);
        self.take()
    }

    fn take(&self) -> BTreeMap<Service, Asked> {
        std::mem::take(&mut *self.state.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, asking: bool) {
        *self.state.asking.write().unwrap_or_else(PoisonError::into_inner) = asking;
        self.threads.iter().for_each(|handle| handle.thread().unpark());
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Release);
        self.set(false);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl LoadState {
    fn work(&self, service: Service, interface: u32) {
        let mut number = 0_u32;
        while !self.ended.load(Ordering::Acquire) {
            let began = Instant::now();
            let asking = self.asking.read().unwrap_or_else(PoisonError::into_inner);
            if !*asking {
                drop(asking);
                thread::park();
                continue;
            }
            let family = Family::ALL[number as usize % Family::ALL.len()];
            let answered = ask(service, family, number / 2, interface).is_ok();
            number = number.wrapping_add(1);
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let counts = asked.entry(service).or_default();
            counts.asked += 1;
            counts.answered += u64::from(answered);
            drop((asked, asking));
            thread::park_timeout(PERIOD.saturating_sub(began.elapsed()));
        }
    }
}
