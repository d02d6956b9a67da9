//! The coordinator's end of an agent's byte stream.

use crate::protocol::message::{Answer, Numbered, Request, VERSIONS};
use crate::protocol::{AgentError, Lines, MAX_ANSWER_LENGTH, json_line};
use crate::stats::clock::{self, Offset};
use crate::sys;
use crate::waiting::WaitNotice;
use stacklab_model::{Exchange, HostFacts, NoiseFloor};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of answers that wait to be taken.
const MAX_WAITING: usize = 2;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The coordinator's connection to an agent.
pub struct AgentClient {
    host: String,
    output: Box<dyn Write + Send>,
    /// Answers; for an unparsable line, its start or the number that is out of bounds.
    answers: Receiver<Result<Numbered<Answer>, String>>,
    /// Why its byte stream has ended, if that was an error.
    end: Arc<OnceLock<io::Error>>,
    next_id: u64,
    /// Requests that were started and not finished, each with its answer once it has arrived.
    started: BTreeMap<u64, Option<Answer>>,
    /// Requests that were given up before their answer came.
    abandoned: BTreeSet<u64>,
    patience: u32,
    /// Processors of its host, once it was asked for the facts.
    processors: Option<u32>,
    /// When no answer is waited for any more.
    ends: Option<Instant>,
    /// Whether an interrupt ends a trial early instead of giving it up.
    keeps_figures: bool,
    interrupted: &'static AtomicBool,
}

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a byte stream that takes nothing any more ends.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// Time limits for an agent's facts and noise floor: it tests some capabilities, and may be emulated.
const FACTS_LIMIT: Duration = Duration::from_secs(30);
/// Readings of an agent's clock, of which the fastest counts.
const CLOCK_READINGS: usize = 16;
const NOISE_FLOOR_LIMIT: Duration = Duration::from_secs(30);

/// A request in progress at an agent. Finish it at the client that started it.
#[derive(Debug)]
#[must_use = "its answer is kept until it is finished"]
pub struct Pending {
    id: u64,
    asked: String,
    on_interrupt: OnInterrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnInterrupt {
    /// Its answer is not waited for.
    GiveUp,
    /// The agent ends it early, and its answer is waited for.
    Stop,
    /// Its answer is waited for.
    GoOn,
}

impl Pending {
    /// The request's id, which other requests may name.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl AgentClient {
    /// Wraps an agent's byte stream. Waits end early once `interrupted` is set.
    pub fn new(
        host: impl Into<String>,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        interrupted: &'static AtomicBool,
    ) -> Self {
        // An agent that says more than it is asked waits, and takes no memory here.
        let (sender, answers) = mpsc::sync_channel(MAX_WAITING);
        let end = Arc::new(OnceLock::new());
        let ended = Arc::clone(&end);
        thread::spawn(move || {
            for line in Lines::new(BufReader::new(input), MAX_ANSWER_LENGTH) {
                match line {
                    Ok(line) if sender.send(Numbered::<Answer>::read(&line)).is_ok() => {}
                    Ok(_) => break,
                    Err(error) => {
                        let _ = ended.set(error);
                    }
                }
            }
            // It counts as gone when the reason is there.
            drop(sender);
        });
        let started = BTreeMap::new();
        let abandoned = BTreeSet::new();
        let host = host.into();
        let output = Box::new(output);
        AgentClient {
            host,
            output,
            answers,
            end,
            next_id: 1,
            started,
            abandoned,
            patience: 1,
            processors: None,
            ends: None,
            keeps_figures: false,
            interrupted,
        }
    }

    /// Multiplies all limits by this, for a host whose time is virtual.
    pub fn be_patient(&mut self, times: u32) {
        self.patience = times.max(1);
    }

    /// Lets an interrupt end a trial that sends early; what was sent until then is reported as a whole trial.
    pub fn keep_figures(&mut self) {
        self.keeps_figures = true;
    }

    /// Waits for no answer after this time.
    pub fn must_end(&mut self, at: Instant) {
        self.ends = Some(at);
    }

    /// How many times as long as a limit an answer is waited for.
    pub fn patience(&self) -> u32 {
        self.patience
    }

    /// Processors of its host, as its facts say; `None` before they were asked for.
    pub fn processors(&self) -> Option<u32> {
        self.processors
    }

    /// Negotiates the protocol version.
    pub fn hello(&mut self) -> Result<(), AgentError> {
        let request = Request::Hello { oldest: VERSIONS.0, newest: VERSIONS.1 };
        let limit = HELLO_TIMEOUT * self.patience;
        let _notice = WaitNotice::within(&format!("the agent on {} to say hello", self.host), limit);
        match self.ask(request, "say hello", HELLO_TIMEOUT)? {
            (_, Answer::Hello { version, .. }) if (VERSIONS.0..=VERSIONS.1).contains(&version) => Ok(()),
            (_, Answer::Hello { version, .. }) => {
                let asked = format!("it was asked for versions {} to {}", VERSIONS.0, VERSIONS.1);
                Err(self.faulty(format!(
                    "version {version} of the protocol, and {asked}: is it faulty or hostile?"
                )))
            }
            _ => Err(self.describe_wrong_answer("say hello")),
        }
    }

    /// The facts of the agent's host, without its noise floor.
    pub fn facts(&mut self) -> Result<HostFacts, AgentError> {
        match self.ask(Request::Facts, "tell its facts", FACTS_LIMIT)? {
            (_, Answer::Facts(facts)) => {
                self.processors = Some(facts.cores);
                Ok(*facts)
            }
            _ => Err(self.describe_wrong_answer("tell its facts")),
        }
    }

    /// The noise floor of the agent's host. The first call measures it: not during a trial, not even of another host
    /// there.
    pub fn noise_floor(&mut self) -> Result<NoiseFloor, AgentError> {
        match self.ask(Request::NoiseFloor, "measure its noise floor", NOISE_FLOOR_LIMIT)? {
            (_, Answer::NoiseFloor(floor)) => Ok(*floor),
            _ => Err(self.describe_wrong_answer("measure its noise floor")),
        }
    }

    /// How far the clock of the agent's host is ahead of this one's, with an error of half the shortest round trip.
    pub fn clock_offset(&mut self) -> Result<Offset, AgentError> {
        let mut exchanges = Vec::new();
        for _ in 0..CLOCK_READINGS {
            let sent_ns = sys::now_ns();
            let (_, Answer::Clock { now_ns }) = self.ask(Request::Clock, "tell the time", FACTS_LIMIT)?
            else {
                return Err(self.describe_wrong_answer("tell the time"));
            };
            exchanges.push(Exchange { sent_ns, reflected_ns: now_ns, returned_ns: sys::now_ns() });
        }
        Ok(clock::offset(exchanges).expect("there are several"))
    }

    /// Whether waits end early, because the user has interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// After an interrupt: waits are as long as before it.
    pub fn go_on(&mut self) {
        static NEVER: AtomicBool = AtomicBool::new(false);
        self.interrupted = &NEVER;
    }

    /// Sends a request and waits for its answer. `asked` describes the request in errors.
    pub fn ask(
        &mut self,
        request: Request,
        asked: &str,
        limit: Duration,
    ) -> Result<(u64, Answer), AgentError> {
        let pending = self.start(request, asked)?;
        let id = pending.id();
        Ok((id, self.finish(pending, limit)?))
    }

    /// Sends a request without waiting; any number may be in progress. It may be kept until [`AgentClient::flush`].
    pub fn start(&mut self, request: Request, asked: &str) -> Result<Pending, AgentError> {
        let on_interrupt = match request {
            Request::Send(_) if self.keeps_figures => OnInterrupt::Stop,
            Request::Collect { .. } if self.keeps_figures => OnInterrupt::GoOn,
            _ => OnInterrupt::GiveUp,
        };
        let id = self.write(request, asked)?;
        self.started.insert(id, None);
        Ok(Pending { id, asked: asked.to_owned(), on_interrupt })
    }

    /// Has every request that was started be on its way.
    pub fn flush(&mut self, asked: &str) -> Result<(), AgentError> {
        self.output.flush().map_err(|_| self.gone(asked))
    }

    /// Waits at most `limit` for the answer. A request that was interrupted or not answered is abandoned.
    pub fn finish(&mut self, pending: Pending, limit: Duration) -> Result<Answer, AgentError> {
        let answer = self.flush(&pending.asked).and_then(|()| self.wait(&pending, limit));
        if let (Some(None), Err(AgentError::Silent { .. } | AgentError::Interrupted)) =
            (self.started.remove(&pending.id), &answer)
        {
            self.abandoned.insert(pending.id);
        }
        match answer? {
            Answer::Failed { reason } => Err(AgentError::Failed { host: self.host.clone(), reason }),
            answer => Ok(answer),
        }
    }

    fn wait(&mut self, pending: &Pending, limit: Duration) -> Result<Answer, AgentError> {
        let began = Instant::now();
        let left = self.ends.map_or(Duration::MAX, |ends| ends.saturating_duration_since(began));
        let limit = (limit * self.patience).min(left);
        let deadline = began + limit;
        let mut on_interrupt = pending.on_interrupt;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                match on_interrupt {
                    OnInterrupt::GiveUp => return Err(AgentError::Interrupted),
                    OnInterrupt::Stop => {
                        let stopping = self.write(Request::Stop { send: pending.id }, "stop")?;
                        self.flush("stop")?;
                        self.abandoned.insert(stopping);
                        on_interrupt = OnInterrupt::GoOn;
                    }
                    OnInterrupt::GoOn => {}
                }
            }
            if let Some(answer) = self.started.get_mut(&pending.id).and_then(Option::take) {
                return Ok(answer);
            }
            match self.answers.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(answer)) => match self.started.get_mut(&answer.id) {
                    Some(place @ None) => *place = Some(answer.body),
                    // What the agent cannot parse has no id for its answer.
                    _ if answer.id == 0 => {
                        let Answer::Failed { reason } = answer.body else {
                            return Err(self.describe_wrong_answer(&pending.asked));
                        };
                        return Err(AgentError::Failed { host: self.host.clone(), reason });
                    }
                    _ if self.abandoned.remove(&answer.id) => {}
                    _ => {
                        let what = "which was not made or already answered: it is faulty or hostile";
                        return Err(self.faulty(format!("an answer to request {}, {what}", answer.id)));
                    }
                },
                Ok(Err(start)) => {
                    return Err(self.faulty(format!("an answer that cannot be parsed: {start}")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone(&pending.asked)),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(AgentError::Silent {
                        host: self.host.clone(),
                        asked: pending.asked.clone(),
                        limit,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The error for an answer whose kind does not match the request.
    pub fn describe_wrong_answer(&self, asked: &str) -> AgentError {
        self.faulty(format!("an unexpected answer to `{asked}`: is it another version of stacklab?"))
    }

    fn faulty(&self, what: String) -> AgentError {
        AgentError::Faulty { host: self.host.clone(), what }
    }

    fn gone(&self, asked: &str) -> AgentError {
        // What cannot be written any more may not have been read to its end yet.
        let until = Instant::now() + END_TIMEOUT;
        while self.answers.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        let end = self.end.get().map(describe_end).unwrap_or_default();
        AgentError::Gone { host: self.host.clone(), asked: asked.to_owned(), end }
    }

    fn write(&mut self, request: Request, asked: &str) -> Result<u64, AgentError> {
        let id = self.next_id;
        self.next_id += 1;
        let line = json_line(&Numbered { id, body: request });
        line.and_then(|line| self.output.write_all(&line)).map_err(|_| self.gone(asked))?;
        Ok(id)
    }
}

/// The reason in brackets, or what a guest's console says, which begins with a semicolon.
fn describe_end(error: &io::Error) -> String {
    let reason = error.to_string();
    if reason.starts_with(';') { reason } else { format!(" ({reason})") }
}

#[cfg(test)]
mod tests;
