//! Drives a program in the two hosts of a testbed: the server first, then the client, whose end is the end of the run.

use crate::foreign::{RunFailure, UNDER_WAY, explain, quote_end};
use crate::program::rate::Samples;
use crate::{CampaignError, own_program};
use stacklab_model::{ProgramArguments, ProgramSpec, print_duration};
use stacklab_testbed::{
    ChildCpu, Host, InterfaceBytes, NamespaceCpu, TestbedError, Tool, Watch, Workdir, clear, is_listening,
};
use stacklab_traffic::foreign::now_ns;
use stacklab_traffic::protocol::AgentError;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

/// How often the bytes of the client's interface are read.
const INTERVAL: Duration = Duration::from_millis(2);
/// How long the server may take until it is ready, and until it has ended when it should.
const READY_LIMIT: Duration = Duration::from_secs(10);
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Most bytes that are kept of what a program printed, and of its errors.
const MAX_OUTPUT_BYTES: usize = 32 << 10;
/// Bytes of the end of each of them that an error may quote.
const LAST_BYTES: usize = 800;

/// The emulators that execute a run's programs: each one's command up to the program. By default there are none.
#[derive(Debug, Default)]
pub struct Emulators {
    /// That of the client; empty without one.
    pub client: Vec<OsString>,
    /// That of the server.
    pub server: Vec<OsString>,
    /// How many times longer than elsewhere the programs may take.
    pub slowness: u32,
}

impl Emulators {
    fn slowness(&self) -> u32 {
        self.slowness.max(1)
    }
}

/// What was observed from the start of the client to its end.
#[derive(Debug)]
pub(super) struct Observed {
    pub duration_ns: u64,
    /// Of the client's interface.
    pub samples: Samples,
    pub client_cpu: ChildCpu,
    /// `None` if a process of the server has ended, and nobody waited for it.
    pub server_cpu: Option<ChildCpu>,
}

/// A run of a program.
pub(super) struct Driven {
    /// What was observed, or why the run says nothing.
    pub observed: Result<Observed, String>,
    /// What client and server printed; `None` if it was not started.
    pub printed: [Option<String>; 2],
}

/// Ends whatever a run has left in its hosts, also what has left its process group.
struct Cleared([u32; 2]);

impl Drop for Cleared {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// Runs a program between two hosts, the client's first, and leaves nothing of it behind. `stop` says whether the user
/// has interrupted, which is an error.
pub(super) fn drive(
    hosts: [&Host; 2],
    program: &ProgramSpec,
    [of_client, of_server]: [ProgramArguments; 2],
    emulators: &Emulators,
    stop: impl Fn() -> bool + Copy,
) -> Result<Driven, CampaignError> {
    // If this process is killed, nothing else ends what has gone into the background.
    let _watch = Watch::start(&own_program()?, hosts)?;
    let folder = Workdir::create()?;
    let _cleared = Cleared(hosts.map(Host::pid));
    let command = of_server.fill(&program.server);
    let mut server = folder.start_command(hosts[1], "server", &command, &emulators.server)?;
    let mut client = None;
    let command = of_client.fill(&program.client);
    let program = &extend_limit(program, emulators);
    let limit = READY_LIMIT * emulators.slowness();
    let run = await_ready(&mut server, hosts[1], program, limit, stop).and_then(|()| {
        observe(
            hosts,
            program,
            || folder.start_command(hosts[0], "client", &command, &emulators.client),
            &mut server,
            &mut client,
            stop,
        )
    });
    end_server(&mut server, stop)?;
    if stop() {
        return Err(CampaignError::Agent(AgentError::Interrupted));
    }
    let observed = match run {
        Ok(observed) => Ok(observed),
        Err(ended) => Err(ended.into_reason()?),
    };
    Ok(Driven { observed, printed: [client.as_ref().map(read_output), Some(read_output(&server))] })
}

/// The program, whose client may take as much longer as it is slower.
fn extend_limit(program: &ProgramSpec, emulators: &Emulators) -> ProgramSpec {
    let limit_ns = program.limit_ns.saturating_mul(emulators.slowness().into());
    ProgramSpec { limit_ns, ..program.clone() }
}

/// Starts the client of a server that is ready, and watches both until the client has ended.
fn observe(
    [at_client, at_server]: [&Host; 2],
    program: &ProgramSpec,
    start_client: impl FnOnce() -> Result<Tool, TestbedError>,
    server: &mut Tool,
    client: &mut Option<Tool>,
    stop: impl Fn() -> bool + Copy,
) -> Result<Observed, RunFailure> {
    let mut bytes = InterfaceBytes::of(at_client).map_err(explain("read the counts of an interface"))?;
    let mut samples = Samples::new(INTERVAL);
    samples.add(now_ns(), read(&mut bytes)?);
    let before = NamespaceCpu::of(at_server.pid()).map_err(explain("read the CPU time of a server"))?;
    let began = Instant::now();
    let client = client.insert(start_client()?);
    let ended = match await_end(client, began, program, &mut bytes, &mut samples, stop) {
        Err(RunFailure::Badly(reason)) => {
            // It may be the server's fault.
            let server = describe_end(server, stop)?.map_or_else(String::new, |end| format!("; {end}"));
            return Err(RunFailure::Badly(reason + &server));
        }
        ended => ended?,
    };
    let after = NamespaceCpu::of(at_server.pid()).map_err(explain("read the CPU time of a server"))?;
    if let Some(end) = describe_end(server, stop)? {
        return Err(RunFailure::Badly(end));
    }
    let client_cpu =
        client.cpu().ok_or_else(|| RunFailure::Badly("the client has no CPU time".to_owned()))?;
    thread::sleep(UNDER_WAY);
    samples.add(now_ns(), read(&mut bytes)?);
    let duration_ns = ended.duration_since(began).as_nanos() as u64;
    Ok(Observed { duration_ns, samples, client_cpu, server_cpu: after.since(&before) })
}

/// Waits until a socket of the host waits at the server's port. A server that goes into the background may end well
/// before that.
fn await_ready(
    server: &mut Tool,
    host: &Host,
    program: &ProgramSpec,
    limit: Duration,
    stop: impl Fn() -> bool + Copy,
) -> Result<(), RunFailure> {
    let until = Instant::now() + limit;
    let ProgramSpec { transport, port, .. } = *program;
    while !is_listening(host.pid(), transport, port) {
        if stop() {
            return Err(RunFailure::Failed(CampaignError::Agent(AgentError::Interrupted)));
        }
        if let Some(end) = describe_end(server, stop)? {
            return Err(RunFailure::Badly(format!("{end}; it had not listened on {transport} port {port}")));
        }
        if Instant::now() > until {
            let late = format!("did not listen on {transport} port {port} within {} s", limit.as_secs());
            return Err(RunFailure::Badly(say_of(server, &late)));
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// How a server has ended, if it has, and badly.
fn describe_end(server: &mut Tool, stop: impl Fn() -> bool) -> Result<Option<String>, RunFailure> {
    let status = server.wait(Instant::now(), stop).map_err(explain("wait for a server"))?;
    let failed = status.filter(|status| !status.success());
    Ok(failed.map(|status| say_of(server, &format!("ended with an error ({status})"))))
}

/// Waits for the client, reads the counts of its interface meanwhile, and gives the time of its end.
fn await_end(
    client: &mut Tool,
    began: Instant,
    program: &ProgramSpec,
    bytes: &mut InterfaceBytes,
    samples: &mut Samples,
    stop: impl Fn() -> bool + Copy,
) -> Result<Instant, RunFailure> {
    let until = began + Duration::from_nanos(program.limit_ns);
    let mut unread = None;
    let ended = client.watch(until, INTERVAL, || {
        match read(bytes) {
            Ok(bytes) => samples.add(now_ns(), bytes),
            Err(error) => unread = Some(error),
        }
        if stop() || unread.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let ended = ended.map_err(explain("wait for a client"))?;
    if let Some(error) = unread {
        return Err(error);
    }
    // What arrived since the last look: later ones would spread it over the time until then.
    samples.add(now_ns(), read(bytes)?);
    let status = client.wait(Instant::now(), stop).map_err(explain("wait for a client"))?;
    match (ended, status) {
        (Some(at), Some(status)) if status.success() => Ok(at),
        (Some(_), Some(status)) => {
            Err(RunFailure::Badly(say_of(client, &format!("ended with an error ({status})"))))
        }
        _ => {
            let limit = print_duration(program.limit_ns);
            Err(RunFailure::Badly(say_of(client, &format!("did not end within {limit} and was killed"))))
        }
    }
}

fn read(bytes: &mut InterfaceBytes) -> Result<[u64; 2], RunFailure> {
    bytes.now().map_err(explain("read the counts of an interface"))
}

/// Asks a server to end, and kills it if it does not.
fn end_server(server: &mut Tool, stop: impl Fn() -> bool + Copy) -> Result<(), CampaignError> {
    let ended = server.terminate().and_then(|()| server.wait(Instant::now() + END_LIMIT, stop));
    server.kill();
    ended.map(drop).map_err(|reason| CampaignError::System { attempted: "end a server", reason })
}

fn read_output(of: &Tool) -> String {
    of.printed_text(MAX_OUTPUT_BYTES) + &of.errors(MAX_OUTPUT_BYTES)
}

/// What became of a program, with what it printed last.
fn say_of(of: &Tool, what: &str) -> String {
    quote_end(&format!("the {} {what}", of.name()), &of.printed_last(LAST_BYTES))
}
