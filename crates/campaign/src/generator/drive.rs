//! Drives a generator's programs in the two hosts of a testbed: the receiver's end first, then the sender's, each no
//! longer than it may take.

use crate::CampaignError;
use crate::foreign::{RunFailure, explain, quote_end, shorten_output};
use stacklab_model::{Generator, Length, ToolReport};
use stacklab_protocols::generators::{CommandLine, Figures, Output, Tool, Traffic};
use stacklab_testbed::{ChildCpu, Host, Workdir, find_in};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long the receiver's end may take until it listens, and until it has ended when it should.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);
const END_LIMIT: Duration = Duration::from_secs(10);
/// How often it is looked whether it listens.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time for the receiver's end to print its results after the sender's has ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long the sender's end may take beyond its traffic: connecting, telling, waiting for answers.
const SENDER_EXTRA: Duration = Duration::from_secs(15);
/// The slowest messages that are waited for where they are counted, per second.
const SLOWEST: f64 = 1000.0;
/// How long the reading of a log may take.
const DECODE_LIMIT: Duration = Duration::from_secs(120);
/// Most bytes of output that are read.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// The step that fails where the system does not say how a program has ended.
const WAIT: &str = "wait for another program";

pub(super) struct Driven {
    /// What each end printed, the sender's first; `None` if it was not started.
    pub reports: [Option<ToolReport>; 2],
    /// CPU time of each end from start to end; `None` if it was killed.
    pub cpu: [Option<ChildCpu>; 2],
    /// Their figures, or why there are none.
    pub figures: Result<Figures, String>,
}

type RunningTool = stacklab_testbed::Tool;

/// Drives a generator's programs, and leaves nothing of them behind. `stop` says whether the user has interrupted, an
/// error; failures of the programs are part of the result.
pub(super) fn drive(
    hosts: [&Host; 2],
    generator: Generator,
    (tool, version, programs): (&Tool, &str, Option<&str>),
    traffic: &Traffic,
    stop: impl Fn() -> bool + Copy,
) -> Result<Driven, CampaignError> {
    let folder = Workdir::create()?;
    let remedy = generator.definition().remedy;
    let start = |host: &Host, line: &CommandLine| {
        folder.start(host, line.program, &find_in(programs, line.program, remedy)?, &line.arguments)
    };
    let lines = [(tool.sender)(traffic), (tool.receiver)(traffic)];
    let ends = ToolEnds { tool, traffic, stop };
    let mut receiver = start(hosts[1], &lines[1])?;
    let listening = ends.await_listening(&mut receiver);
    let mut sender = None;
    let driven = listening.and_then(|()| {
        let sender = sender.insert(start(hosts[0], &lines[0])?);
        ends.run(sender, &mut receiver)
    });
    let mut decoded = String::new();
    let driven = driven.and_then(|()| {
        let Some(decoder) = tool.decoder else { return Ok(()) };
        let mut decoder = start(hosts[1], &decoder())?;
        ends.end(&mut decoder, DECODE_LIMIT, "did not end, and was killed", false)?;
        decoded = decoder.printed_text(MAX_OUTPUT_BYTES);
        Ok(())
    });
    if stop() {
        return Err(CampaignError::Agent(stacklab_traffic::protocol::AgentError::Interrupted));
    }
    let sent = sender.as_ref().map(|sender| sender.printed_text(MAX_OUTPUT_BYTES)).unwrap_or_default();
    let received = receiver.printed_text(MAX_OUTPUT_BYTES);
    let figures = match driven {
        Ok(()) => tool
            .figures(traffic, &Output { sender: &sent, receiver: &received, decoded: &decoded })
            .map_err(|reason| format!("{generator}: {reason}")),
        Err(ended) => Err(ended.into_reason()?),
    };
    let cpu = [sender.as_ref().and_then(RunningTool::cpu), receiver.cpu()];
    let by_sender = sender.is_some().then(|| report_tool(version, &lines[0], &sent));
    let by_receiver = report_tool(version, &lines[1], &(received + &decoded));
    Ok(Driven { reports: [by_sender, Some(by_receiver)], cpu, figures })
}

fn report_tool(version: &str, line: &CommandLine, output: &str) -> ToolReport {
    ToolReport {
        version: version.to_owned(),
        command: format!("{} {}", line.program, line.arguments.join(" ")),
        output: shorten_output(output),
    }
}

struct ToolEnds<'a, S> {
    tool: &'a Tool,
    traffic: &'a Traffic,
    stop: S,
}

impl<S: Fn() -> bool + Copy> ToolEnds<'_, S> {
    fn await_listening(&self, receiver: &mut RunningTool) -> Result<(), RunFailure> {
        let (transport, port) = (self.tool.port)(self.traffic);
        let until = Instant::now() + LISTEN_LIMIT;
        loop {
            if receiver.is_listening(transport, port) || (self.stop)() {
                return Ok(());
            }
            if let Some(status) = wait(receiver, Instant::now() + POLL_INTERVAL, self.stop)? {
                return Err(badly(receiver, &format!("ended ({status}) before it listened")));
            }
            if Instant::now() > until {
                return Err(badly(receiver, &format!("did not listen on {transport} port {port}")));
            }
        }
    }

    fn run(&self, sender: &mut RunningTool, receiver: &mut RunningTool) -> Result<(), RunFailure> {
        let limit = self.traffic_time() + SENDER_EXTRA;
        self.end(sender, limit, &format!("did not end within {} s and was killed", limit.as_secs()), false)?;
        if !self.tool.ends_itself && wait(receiver, Instant::now() + LAST_WORDS, self.stop)?.is_none() {
            receiver.interrupt().map_err(explain(WAIT))?;
        }
        // Some end with an error when they are interrupted.
        let late = "did not end after the sender's end, and was killed";
        self.end(receiver, END_LIMIT, late, !self.tool.ends_itself)
    }

    /// Waits until a program has ended well, or until the user interrupts.
    fn end(
        &self,
        program: &mut RunningTool,
        limit: Duration,
        late: &str,
        in_any_way: bool,
    ) -> Result<(), RunFailure> {
        match wait(program, Instant::now() + limit, self.stop)? {
            Some(status) if status.success() || in_any_way => Ok(()),
            Some(status) => Err(badly(program, &format!("ended with an error ({status})"))),
            None if (self.stop)() => Ok(()),
            None => Err(badly(program, late)),
        }
    }

    fn traffic_time(&self) -> Duration {
        match self.traffic.length {
            Length::Time(ns) => Duration::from_nanos(ns),
            Length::Packets(messages) => {
                let rate = self.traffic.per_second.unwrap_or(SLOWEST).min(SLOWEST);
                Duration::from_secs_f64((messages as f64 / rate).min(24.0 * 3600.0))
            }
        }
    }
}

fn wait(
    end: &mut RunningTool,
    until: Instant,
    stop: impl Fn() -> bool,
) -> Result<Option<ExitStatus>, RunFailure> {
    end.wait(until, stop).map_err(explain(WAIT))
}

/// The reason that a program gave no figures, with what it printed last. It is killed.
fn badly(end: &mut RunningTool, what: &str) -> RunFailure {
    end.kill();
    let said = end.printed_text(MAX_OUTPUT_BYTES) + &end.errors(MAX_OUTPUT_BYTES);
    RunFailure::Badly(quote_end(&format!("{} {what}", end.name()), &said))
}
