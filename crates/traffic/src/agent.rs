//! The agent: serves requests until its input ends; lasting requests run concurrently.

use crate::engine::receiver::Receiver;
use crate::engine::sender;
use crate::host::facts;
use crate::protocol::lines::{LONGEST_REQUEST, Lines};
use crate::protocol::message::{Answer, Numbered, Request, VERSIONS};
use stacklab_model::HostFacts;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Answers kept for requests that arrive twice.
const KEPT: usize = 16;

/// Serves a coordinator until `input` ends. What is under way then goes on with nobody to report to: a process that
/// serves one coordinator ends when this returns, in the middle of a trial too.
///
/// # Errors
/// When an answer cannot be written.
pub fn serve(input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
    let responder = Arc::new(Responder { output: Mutex::new(output), cache: Mutex::default() });
    let mut agent = Agent::default();
    for line in Lines::new(input, LONGEST_REQUEST) {
        let line = match line {
            // No message, and so answered as what is not understood.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
            Err(_) => break,
            Ok(line) => line,
        };
        match serde_json::from_str(&line) {
            Ok(request) => agent.attend(request, &responder)?,
            Err(error) => {
                // The id may still be legible, so that the coordinator learns which request was not understood.
                let id = serde_json::from_str::<serde_json::Value>(&line).ok().and_then(|v| v["id"].as_u64());
                let reason = format!("this agent does not understand the request: {error}");
                responder.write(&Numbered { id: id.unwrap_or(0), body: Answer::Failed { reason } })?;
            }
        }
    }
    Ok(())
}

/// Says that this process is on a host whose kernel is no other host's: a guest. CPU time is then its own, whatever a
/// trial says.
pub fn alone() {
    crate::host::cpu::alone();
}

/// Has this agent leave the noise floor out of its facts: for a single measurement, which would take longer for it and load
/// both processors before it begins.
pub fn brief() {
    facts::brief();
}

/// What this host is and can do, as its agent would say it.
pub fn facts() -> HostFacts {
    facts::collect()
}

/// Writes answers, one at a time.
struct Responder<W> {
    output: Mutex<W>,
    cache: Mutex<AnswerCache>,
}

/// Requests in progress, and the last answers.
#[derive(Default)]
struct AnswerCache {
    in_progress: BTreeSet<u64>,
    answers: VecDeque<Numbered<Answer>>,
}

/// The state of an incoming request.
enum Admission {
    /// New; now in progress.
    New,
    /// In progress: one answer serves both copies.
    InProgress,
    /// It was answered so.
    Answered(Box<Numbered<Answer>>),
}

impl<W: Write> Responder<W> {
    fn admit(&self, id: u64) -> Admission {
        let mut cache = locked(&self.cache);
        if let Some(answer) = cache.answers.iter().find(|answer| answer.id == id) {
            return Admission::Answered(Box::new(answer.clone()));
        }
        if cache.in_progress.insert(id) { Admission::New } else { Admission::InProgress }
    }

    fn answer(&self, id: u64, done: Result<Answer, String>) -> io::Result<()> {
        let answer = Numbered { id, body: done.unwrap_or_else(|reason| Answer::Failed { reason }) };
        {
            let mut cache = locked(&self.cache);
            cache.in_progress.remove(&id);
            cache.answers.push_back(answer.clone());
            if cache.answers.len() > KEPT {
                cache.answers.pop_front();
            }
        }
        self.write(&answer)
    }

    fn write(&self, answer: &Numbered<Answer>) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        let mut output = locked(&self.output);
        output.write_all(&line)?;
        output.flush()
    }
}

/// A thread that panicked has said why; what it held is whole between two statements.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work done at once, or on its own thread because it lasts as long as a trial.
enum Work {
    Done(Answer),
    Lasting(Box<dyn FnOnce() -> Result<Answer, String> + Send>),
}

#[derive(Default)]
struct Agent {
    receivers: BTreeMap<u64, Receiver>,
}

impl Agent {
    fn attend<W: Write + Send + 'static>(
        &mut self,
        request: Numbered<Request>,
        responder: &Arc<Responder<W>>,
    ) -> io::Result<()> {
        let id = request.id;
        match responder.admit(id) {
            Admission::New => {}
            Admission::InProgress => return Ok(()),
            Admission::Answered(answer) => return responder.write(&answer),
        }
        match self.perform(id, request.body) {
            Ok(Work::Done(answer)) => responder.answer(id, Ok(answer)),
            Err(reason) => responder.answer(id, Err(reason)),
            Ok(Work::Lasting(work)) => {
                let theirs = Arc::clone(responder);
                let run = move || {
                    // A coordinator that is gone ends the input too, which is where that is noticed.
                    let _ = theirs.answer(id, completed(work));
                };
                match thread::Builder::new().name(format!("request {id}")).spawn(run) {
                    Ok(_) => Ok(()),
                    Err(error) => responder.answer(id, Err(format!("could not start a thread: {error}"))),
                }
            }
        }
    }

    fn perform(&mut self, id: u64, request: Request) -> Result<Work, String> {
        match request {
            Request::Hello { oldest, newest } => {
                let version = newest.min(VERSIONS.1);
                if version < oldest.max(VERSIONS.0) {
                    return Err(format!(
                        "this agent speaks versions {} to {}, the coordinator {oldest} to {newest}: install the same stacklab on both",
                        VERSIONS.0, VERSIONS.1
                    ));
                }
                let program = env!("CARGO_PKG_VERSION").to_owned();
                Ok(Work::Done(Answer::Hello { version, program }))
            }
            Request::Facts => Ok(Work::Done(Answer::Facts(Box::new(facts::collect())))),
            Request::Count { interface } => Ok(Work::Done(Answer::Counted {
                counters: crate::host::counters::Snapshot::take(&interface).into_counters(),
                cpu: crate::host::cpu::so_far(),
            })),
            Request::Listen { spec, address } => {
                let receiver = Receiver::listen(*spec, address).map_err(|error| error.to_string())?;
                let address = receiver.address;
                self.receivers.insert(id, receiver);
                Ok(Work::Done(Answer::Listening { address }))
            }
            Request::Send { spec, from, to } => Ok(Work::Lasting(Box::new(move || {
                let side = sender::run(&spec, from, to).map_err(|error| error.to_string())?;
                Ok(Answer::Done(Box::new(side)))
            }))),
            Request::Collect { listen } => {
                let receiver =
                    self.receivers.remove(&listen).ok_or("no such receiver: it was never asked to listen")?;
                Ok(Work::Lasting(Box::new(move || {
                    let side = receiver.collect().map_err(|error| error.to_string())?;
                    Ok(Answer::Done(Box::new(side)))
                })))
            }
        }
    }
}

/// Does it; a panic, which would leave the request without an answer, is a failure like others.
fn completed(work: Box<dyn FnOnce() -> Result<Answer, String> + Send>) -> Result<Answer, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("broke off: see what the agent wrote to its standard error".to_owned()))
}
