//! A light load: during a trial, each service is queried every tenth of a second, over both families in turn.

use crate::kernel::cpus;
use crate::kernel::namespace::enter_namespace;
use crate::services::ask::ask;
use stacklab_model::{Family, Service, Services};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(100);

/// The number of queries to a service, and of correct answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Queries.
    pub asked: u64,
    /// Queries with a correct answer.
    pub answered: u64,
}

/// Threads in the sender's namespace, one for each service. Dropping it ends the threads.
#[derive(Debug)]
pub(crate) struct Load {
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Turn {
    phase: Phase,
    /// Queries that are still waiting for an answer.
    under_way: usize,
    asked: BTreeMap<Service, Asked>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Paused,
    Asking,
    Ended,
}

impl Load {
    /// Starts the threads. They send nothing before [`Load::begin`].
    pub(super) fn start(
        services: &Services,
        interface: u32,
        namespace: u32,
        processors: &[usize],
    ) -> io::Result<Self> {
        let mut load = Load { state: Arc::default(), threads: Vec::new() };
        for service in services.iter() {
            let (state, processors) = (Arc::clone(&load.state), processors.to_vec());
            let (told, heard) = channel();
            let work = move || {
                let ready = enter_namespace(namespace).and_then(|()| cpus::stay_on(&processors));
                let is_ready = ready.is_ok();
                if told.send(ready).is_ok() && is_ready {
                    state.work(service, interface);
                }
            };
            load.threads.push(Builder::new().name(format!("ask {service}")).spawn(work)?);
            heard.recv().map_err(|_| io::Error::other("the thread that asks has ended"))??;
        }
        Ok(load)
    }

    /// Starts the queries, and resets the counters.
    pub(super) fn begin(&self) {
        let mut turn = self.state.turn();
        turn.asked.clear();
        turn.phase = Phase::Asking;
        self.state.changed.notify_all();
    }

    /// Stops the queries. On return, no query is waiting for an answer. Returns the counts since [`Load::begin`].
    pub(super) fn end(&self) -> BTreeMap<Service, Asked> {
        let mut turn = self.state.turn();
        turn.phase = Phase::Paused;
        self.state.changed.notify_all();
        let over = |turn: &mut Turn| turn.under_way > 0;
        let mut turn = self.state.changed.wait_while(turn, over).unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut turn.asked)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.state.turn().phase = Phase::Ended;
        self.state.changed.notify_all();
        for thread in self.threads.drain(..) {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

impl State {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, service: Service, interface: u32) {
        let mut number = 0_u32;
        let mut turn = self.turn();
        loop {
            let waits = |turn: &mut Turn| turn.phase == Phase::Paused;
            turn = self.changed.wait_while(turn, waits).unwrap_or_else(PoisonError::into_inner);
            if turn.phase == Phase::Ended {
                return;
            }
            turn.under_way += 1;
            drop(turn);
            let began = Instant::now();
            let family = Family::ALL[number as usize % Family::ALL.len()];
            let answered = ask(service, family, number / 2, interface).is_ok();
            number = number.wrapping_add(1);
            turn = self.turn();
            turn.under_way -= 1;
            let asked = turn.asked.entry(service).or_default();
            asked.asked += 1;
            asked.answered += u64::from(answered);
            self.changed.notify_all();
            let rest = PERIOD.saturating_sub(began.elapsed());
            let goes_on = |turn: &mut Turn| turn.phase == Phase::Asking;
            let waited = self.changed.wait_timeout_while(turn, rest, goes_on);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
