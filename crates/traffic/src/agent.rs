//! The agent: does on its host what it is asked until its input ends, several things at once where they take time.

use crate::lines::{LONGEST_REQUEST, Lines};
use crate::message::{Answer, Numbered, Request, VERSIONS};
use crate::receiver::Receiver;
use crate::{facts, sender};
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
    let desk = Arc::new(Desk { output: Mutex::new(output), given: Mutex::default() });
    let mut agent = Agent::default();
    for line in Lines::new(input, LONGEST_REQUEST) {
        let line = match line {
            // No message, and so answered as what is not understood.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
            Err(_) => break,
            Ok(line) => line,
        };
        match serde_json::from_str(&line) {
            Ok(request) => agent.attend(request, &desk)?,
            Err(error) => {
                // The id may still be legible, so that the coordinator learns which request was not understood.
                let id = serde_json::from_str::<serde_json::Value>(&line).ok().and_then(|v| v["id"].as_u64());
                let reason = format!("this agent does not understand the request: {error}");
                desk.write(&Numbered { id: id.unwrap_or(0), body: Answer::Failed { reason } })?;
            }
        }
    }
    Ok(())
}

/// Says that this process is on a host whose kernel is no other host's: a guest. CPU time is then its own, whatever a
/// trial says.
pub fn alone() {
    crate::cpu::alone();
}

/// Has this agent leave the noise floor out of its facts: for a single measurement, which would take longer for it and load
/// both processors before it begins.
pub fn brief() {
    facts::brief();
}

/// What this host is and can do, as its agent would say it.
pub fn facts() -> HostFacts {
    facts::gather()
}

/// Where answers leave, one at a time.
struct Desk<W> {
    output: Mutex<W>,
    given: Mutex<Given>,
}

/// What was asked: being done, or done with this answer.
#[derive(Default)]
struct Given {
    under_way: BTreeSet<u64>,
    answers: VecDeque<Numbered<Answer>>,
}

/// What became of a request that arrives.
enum Known {
    /// It is new, and from now on under way.
    New,
    /// It is being done; its answer will do for both.
    UnderWay,
    /// It was answered so.
    Answered(Box<Numbered<Answer>>),
}

impl<W: Write> Desk<W> {
    fn admit(&self, id: u64) -> Known {
        let mut given = locked(&self.given);
        if let Some(answer) = given.answers.iter().find(|answer| answer.id == id) {
            return Known::Answered(Box::new(answer.clone()));
        }
        if given.under_way.insert(id) { Known::New } else { Known::UnderWay }
    }

    fn answer(&self, id: u64, done: Result<Answer, String>) -> io::Result<()> {
        let answer = Numbered { id, body: done.unwrap_or_else(|reason| Answer::Failed { reason }) };
        {
            let mut given = locked(&self.given);
            given.under_way.remove(&id);
            given.answers.push_back(answer.clone());
            if given.answers.len() > KEPT {
                given.answers.pop_front();
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

/// Something to do: at once, or on a thread of its own because it lasts as long as a trial.
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
        desk: &Arc<Desk<W>>,
    ) -> io::Result<()> {
        let id = request.id;
        match desk.admit(id) {
            Known::New => {}
            Known::UnderWay => return Ok(()),
            Known::Answered(answer) => return desk.write(&answer),
        }
        match self.perform(id, request.body) {
            Ok(Work::Done(answer)) => desk.answer(id, Ok(answer)),
            Err(reason) => desk.answer(id, Err(reason)),
            Ok(Work::Lasting(work)) => {
                let theirs = Arc::clone(desk);
                let run = move || {
                    // A coordinator that is gone ends the input too, which is where that is noticed.
                    let _ = theirs.answer(id, completed(work));
                };
                match thread::Builder::new().name(format!("request {id}")).spawn(run) {
                    Ok(_) => Ok(()),
                    Err(error) => desk.answer(id, Err(format!("could not start a thread: {error}"))),
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
            Request::Facts => Ok(Work::Done(Answer::Facts(Box::new(facts::gather())))),
            Request::Count { interface } => Ok(Work::Done(Answer::Counted {
                counters: crate::counters::Snapshot::take(&interface).into_counters(),
                cpu: crate::cpu::so_far(),
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
