//! The agent: serves requests until its input ends. Long requests run concurrently.

mod perform;
mod permission;
mod ports;

pub use crate::engine::peers::{DataPorts, Network, Peers};
pub use permission::{Limits, Permission};

use crate::agent::permission::{Activity, lasts};
use crate::engine::allowance::Allowance;
use crate::engine::many_ports::ManyPorts;
use crate::engine::opening::WaitingSender;
use crate::engine::receiver::Receiver;
use crate::engine::socket_options;
use crate::host::cpu::{self, CpuWatch};
use crate::host::facts;
use crate::protocol::message::{Answer, Numbered, Request};
use crate::protocol::{Lines, MAX_REQUEST_LENGTH, json_line};
use crate::sys;
use stacklab_model::{ArmSchedule, HostFacts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufRead, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// How many recent answers are kept for duplicate requests.
const KEPT: usize = 16;
/// Maximum number of requests under way, and of receivers not collected: those of the arms of two trials.
const MAX_AT_ONCE: usize = 8;
const MAX_RECEIVERS: usize = 2 * ArmSchedule::MAX_ARMS;
/// Memory of the process of a coordinator that reached a listening agent, bytes.
const MAX_MEMORY: u64 = 4 << 30;

/// Serves a coordinator until `input` ends. Requests in progress then continue, and their answers are lost. A process
/// that serves one coordinator exits when this returns, even during a trial. `end` is called with the reason, on
/// another thread, when a limit in time has passed: it ends the process.
pub fn serve(
    input: impl BufRead,
    output: impl Write + Send + 'static,
    permission: Permission,
    end: impl FnOnce(&str) + Send + 'static,
) -> io::Result<()> {
    let responder = Responder::new(output);
    let mut agent = Agent::new(permission);
    if let Some(limits) = &agent.permission.limits {
        agent.activity.watch(limits, end);
        // Beyond all trials that are accepted: an error elsewhere does not take the host's memory. It may be refused.
        let _ = sys::bound_memory(MAX_MEMORY);
        if !limits.tuning {
            socket_options::renounce_privileges();
        }
    }
    let mut lines = Lines::new(input, MAX_REQUEST_LENGTH);
    for line in lines.by_ref() {
        let line = match line {
            // Not a message: answered like a request that was not understood.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
            Err(_) => break,
            Ok(line) => line,
        };
        match Numbered::<Request>::read(&line) {
            Ok(request) => agent.attend(request, &responder)?,
            Err(answer) => responder.write(&answer)?,
        }
    }
    lines.drop_rest();
    Ok(())
}

/// Declares that this host is a guest: CPU time is counted for it alone, whatever the trial says.
pub fn alone() {
    cpu::alone();
}

/// The facts of this host with its noise floor, as its agent would report them.
pub fn facts() -> HostFacts {
    HostFacts { noise: Some(facts::floor()), ..facts::collect() }
}

/// Writes answers, and keeps what a duplicate request needs. A write may block: requests are looked up meanwhile.
struct Responder<W> {
    output: Mutex<W>,
    cache: Mutex<AnswerCache>,
}

#[derive(Default)]
struct AnswerCache {
    in_progress: BTreeSet<u64>,
    answers: VecDeque<Numbered<Answer>>,
}

impl<W: Write> Responder<W> {
    fn new(output: W) -> Arc<Self> {
        Arc::new(Responder { output: Mutex::new(output), cache: Mutex::default() })
    }

    fn answer(&self, id: u64, done: Result<Answer, String>) -> io::Result<()> {
        let answer = Numbered { id, body: done.unwrap_or_else(|reason| Answer::Failed { reason }) };
        {
            let mut cache = lock(&self.cache);
            cache.in_progress.remove(&id);
            cache.answers.push_back(answer.clone());
            if cache.answers.len() > KEPT {
                cache.answers.pop_front();
            }
        }
        self.write(&answer)
    }

    fn write(&self, answer: &Numbered<Answer>) -> io::Result<()> {
        let line = json_line(answer)?;
        let mut output = lock(&self.output);
        output.write_all(&line)?;
        output.flush()
    }
}

/// Locks a mutex, even after a panic: the data is consistent between two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Done at once, or until it is collected, or on its own thread because it lasts as long as a trial.
enum RequestWork {
    Done(Answer),
    Listening(Answer),
    Lasting(LastingWork),
}

type LastingWork = Box<dyn FnOnce() -> Result<Answer, String> + Send>;

struct Agent {
    receivers: BTreeMap<u64, Receiver>,
    waiting: BTreeMap<u64, WaitingSender>,
    stops: BTreeMap<u64, Weak<AtomicBool>>,
    /// Sockets for many connections, by the requests that opened them.
    ports: BTreeMap<u64, Arc<Mutex<ManyPorts>>>,
    /// The readings of the processor times that are under way.
    cpu_watch: Option<CpuWatch>,
    activity: Activity,
    /// What all trials together may send, if that has a limit.
    allowance: Option<Arc<Allowance>>,
    permission: Permission,
}

impl Agent {
    fn new(permission: Permission) -> Self {
        Agent {
            receivers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            stops: BTreeMap::new(),
            ports: BTreeMap::new(),
            cpu_watch: None,
            activity: Activity::new(),
            allowance: permission.most_bits_per_second().map(|most| Arc::new(Allowance::new(most))),
            permission,
        }
    }

    fn attend<W: Write + Send + 'static>(
        &mut self,
        request: Numbered<Request>,
        responder: &Arc<Responder<W>>,
    ) -> io::Result<()> {
        let id = request.id;
        let answer = |done| responder.answer(id, done);
        let under_way = {
            let mut cache = lock(&responder.cache);
            if let Some(answer) = cache.answers.iter().find(|answer| answer.id == id).cloned() {
                drop(cache);
                return responder.write(&answer);
            }
            if !cache.in_progress.insert(id) {
                // One answer serves both copies.
                return Ok(());
            }
            cache.in_progress.len()
        };
        self.activity.note_request();
        if self.receivers.contains_key(&id) || self.waiting.contains_key(&id) {
            let reason = "refused a request with the number of a receiver or a waiting sender";
            return answer(Err(reason.to_owned()));
        }
        // Before anything is begun that could not be completed.
        if under_way > MAX_AT_ONCE {
            return answer(Err(format!("refused a request: {MAX_AT_ONCE} are running")));
        }
        let lasts = lasts(&request.body);
        let takes = permission::takes(&request.body);
        let request = self.permission.in_own_addresses(request.body);
        let permitted = self.permission.check(&request, self.activity.bits_per_second());
        match permitted.and_then(|()| self.perform(id, request)) {
            Ok(RequestWork::Done(done)) => answer(Ok(done)),
            Err(reason) => answer(Err(reason)),
            Ok(RequestWork::Listening(listening)) => {
                self.activity.begin(id, lasts, takes);
                answer(Ok(listening))
            }
            Ok(RequestWork::Lasting(work)) => {
                self.activity.begin(id, lasts, takes);
                self.spawn(id, work, responder)
            }
        }
    }

    /// Does the work on another thread, which then answers.
    fn spawn<W: Write + Send + 'static>(
        &self,
        id: u64,
        work: LastingWork,
        responder: &Arc<Responder<W>>,
    ) -> io::Result<()> {
        let theirs = Arc::clone(responder);
        let activity = self.activity.clone();
        let thread = thread::Builder::new().name(format!("request {id}")).spawn(move || {
            let done = complete(work);
            activity.end(id);
            // A coordinator that is gone also ends the input. The input loop handles that.
            let _ = theirs.answer(id, done);
        });
        if let Err(error) = thread {
            self.activity.end(id);
            return responder.answer(id, Err(format!("could not start a thread: {error}")));
        }
        Ok(())
    }
}

/// Runs the work. A panic becomes a failure answer; otherwise the request would get no answer.
fn complete(work: LastingWork) -> Result<Answer, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("panicked: see the agent's standard error".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_under_way_and_kept_answers_are_bounded() {
        let responder = Responder::new(Vec::new());
        let mut agent = Agent::new(Permission::default());
        for id in 1..=MAX_AT_ONCE as u64 {
            assert!(lock(&responder.cache).in_progress.insert(id));
        }
        let refused = ask(&mut agent, &responder, 20);
        assert!(refused.contains("refused a request: 8 are running"), "{refused}");
        responder.answer(1, Err("ended".to_owned())).unwrap();
        assert!(ask(&mut agent, &responder, 21).contains("clock"));
        for id in 100..200 {
            responder.answer(id, Err("ended".to_owned())).unwrap();
        }
        assert_eq!(lock(&responder.cache).answers.len(), KEPT);
    }

    /// What the agent writes when it is asked for its clock.
    fn ask(agent: &mut Agent, responder: &Arc<Responder<Vec<u8>>>, id: u64) -> String {
        agent.attend(Numbered { id, body: Request::Clock }, responder).unwrap();
        String::from_utf8(std::mem::take(&mut *lock(&responder.output))).unwrap()
    }

    #[test]
    fn work_that_panics_has_an_answer() {
        let said = complete(Box::new(|| panic!("as the test wants it"))).unwrap_err();
        assert!(said.contains("panicked"), "{said}");
    }
}
