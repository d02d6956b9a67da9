//! A light load: during a trial, each service is queried every tenth of a second, over both families in turn.

use crate::kernel::cpus;
use crate::kernel::namespace::enter_namespace;
use crate::services::ask::ask;
use stacklab_model::{Family, Service, Services};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, Builder, JoinHandle};
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
    pub(super) fn start(
        services: &Services,
        interface: u32,
        namespace: u32,
        processors: &[usize],
    ) -> io::Result<Self> {
        let mut load = Load { state: Arc::default(), threads: Vec::new() };
        for service in services.iter() {
            let (state, processors) = (Arc::clone(&load.state), processors.to_vec());
            let (sender, heard) = channel();
            let work = move || {
                let ready = enter_namespace(namespace).and_then(|()| cpus::stay_on(&processors));
                let is_ready = ready.is_ok();
                if sender.send(ready).is_ok() && is_ready {
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
        self.take();
        self.set(true);
    }

    /// Stops the queries. On return, no query is waiting for an answer. Returns the counts since [`Load::begin`].
    pub(super) fn end(&self) -> BTreeMap<Service, Asked> {
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
            // The thread returns nothing.
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
