//! The coordinator of a campaign: it hands out blocks and commits their results. All that it must remember is in the
//! store, so that another one can take over at any time.

mod results;

use crate::FleetError;
use crate::checked::CheckedStudy;
use crate::coordinator::results::forget;
use crate::message::{Answer, BlockResult, Order, Presence, Request};
use crate::pairs::{Pairs, new_campaign, now_ns};
use crate::store::{AgentInfo, BlockKey, CampaignRow, CampaignState, Class, Lease, Store};
use crate::study::{FleetStudy, study_of};
use crate::wire::Wire;
use crate::wire::conversation::{ask, other_answer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often agents are asked whether they are there, and how long an answer counts.
const ASK_EVERY: Duration = Duration::from_secs(5);
const ALIVE: Duration = Duration::from_secs(30);
/// A block that takes this part of its lease is overdue: more than its estimated duration, and a quarter of a minute.
const OVERDUE: u32 = 4;
const POLL: Duration = Duration::from_millis(100);
/// How long a store or NATS that does not answer is asked again, and how often.
const RETRY_LIMIT: Duration = Duration::from_secs(120);
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Stack of the thread that waits for a block, bytes: there is one for each block that is being measured.
const STACK: usize = 256 << 10;

/// What happens in a campaign.
#[derive(Debug)]
pub enum Event<'a> {
    /// An agent is not used, for this reason.
    Unusable(&'a str, String),
    /// A block was committed.
    Committed(&'a BlockKey),
    /// An attempt failed.
    Failed(&'a BlockKey, &'a str),
    /// The store or NATS did not answer, and is asked again.
    Retried(&'a FleetError),
}

/// The coordinator of a store.
pub struct Coordinator<'a> {
    store: &'a mut Store,
    wire: Arc<dyn Wire>,
    measured: BTreeMap<BlockKey, Measured>,
    heard: (Sender<Heard>, Receiver<Heard>),
    /// When the agents were asked last whether they are there; their answer may be awaited.
    asked: Option<Instant>,
    /// What was said of agents that are not used: once each.
    unusable: BTreeSet<String>,
    /// How much the clock of each agent was ahead of this one when it answered last, nanoseconds. It is rather too
    /// small: an answer takes time.
    ahead_ns: BTreeMap<String, i64>,
    /// The study of each campaign of which a result came.
    studies: BTreeMap<String, CheckedStudy>,
    at_once: usize,
    /// How many senders are being asked to forget a result.
    forgetting: usize,
    interrupted: &'static AtomicBool,
}

struct Measured {
    lease: Lease,
    /// When it takes longer than expected: its sender may have been started again, and is asked.
    overdue: Instant,
}

/// What other threads waited for.
enum Heard {
    /// How a block ended. Its sender may forget the result when `committed` says so.
    Ended {
        lease: Lease,
        result: Result<Box<BlockResult>, FleetError>,
        committed: Sender<()>,
    },
    Forgotten,
    Present(Result<Vec<Presence>, FleetError>),
}

impl<'a> Coordinator<'a> {
    /// Makes this program the one coordinator of the store. Fails if there is one already.
    pub fn new(
        store: &'a mut Store,
        wire: Arc<dyn Wire>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, FleetError> {
        store.coordinate()?;
        Ok(Coordinator {
            store,
            wire,
            measured: BTreeMap::new(),
            heard: mpsc::channel(),
            asked: None,
            unusable: BTreeSet::new(),
            ahead_ns: BTreeMap::new(),
            studies: BTreeMap::new(),
            at_once: usize::MAX,
            forgetting: 0,
            interrupted,
        })
    }

    /// Measures no more than this many blocks at the same time.
    pub fn limit(&mut self, at_once: usize) {
        self.at_once = at_once;
    }

    /// The store.
    pub fn store(&mut self) -> &mut Store {
        self.store
    }

    /// The agents that can be used now. They are added to the store.
    pub fn agents(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> Result<Vec<AgentInfo>, FleetError> {
        let present = self.wire.present(&BTreeSet::new())?;
        Ok(self.usable(present, tell)?.into_iter().map(|presence| presence.agent).collect())
    }

    /// Adds a campaign of all these pairs: the number of blocks of each, and how often one is leased at most, in random
    /// order, so that no pair has another time of day.
    pub fn add(
        &mut self,
        id: &str,
        study: &FleetStudy,
        class: Class,
        pairs: &Pairs,
        blocks: (u32, u32),
        agents: &[AgentInfo],
    ) -> Result<CampaignRow, FleetError> {
        let campaign = new_campaign(id, study, class, pairs, blocks, agents)?;
        self.store.put_campaign(&campaign)?;
        let row = self.store.campaign(Some(id))?;
        row.ok_or_else(|| FleetError::Usage(format!("the campaign {id} is gone again")))
    }

    /// Measures until every block has a result or was given up, or the campaign is stopped.
    pub fn run(&mut self, campaign: &CampaignRow, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), FleetError> {
        let study = study_of(campaign)?;
        let lease = study.lease()?;
        let mut worked = Instant::now();
        while !self.interrupted.load(Ordering::Relaxed) {
            match self.step(campaign, &study, lease, tell) {
                Ok(true) => return Ok(()),
                Ok(false) => worked = Instant::now(),
                // Its transaction was rolled back, or is found to be committed.
                Err(error @ (FleetError::Store { .. } | FleetError::Wire { .. }))
                    if worked.elapsed() < RETRY_LIMIT =>
                {
                    tell(Event::Retried(&error));
                    thread::sleep(RETRY_AFTER);
                }
                Err(error) => return Err(error),
            }
        }
        Err(FleetError::Interrupted)
    }

    /// Does what can be done now. Whether the campaign has ended.
    fn step(
        &mut self,
        campaign: &CampaignRow,
        study: &FleetStudy,
        lease: Duration,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, FleetError> {
        if self.asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
            self.ask_who_is_there()?;
            for key in self.store.expire(now_ns())? {
                self.measured.remove(&key);
                tell(Event::Failed(&key, "the lease expired without a result"));
            }
        }
        if self.hand_out(campaign, study, lease)? && self.measured.is_empty() && self.forgetting == 0 {
            // Agents may still keep results of another coordinator, or those whose answers were lost.
            if let Ok(present) = self.wire.present(&BTreeSet::new()) {
                self.welcome(present, tell)?;
            }
            return Ok(true);
        }
        // All that was heard meanwhile, before blocks are handed out again.
        let mut next = self.heard.1.recv_timeout(POLL).ok();
        while let Some(heard) = next {
            match heard {
                Heard::Ended { lease, result, committed } => self.settle(&lease, result, &committed, tell)?,
                Heard::Forgotten => self.forgetting -= 1,
                Heard::Present(present) => self.welcome(present?, tell)?,
            }
            next = self.heard.1.try_recv().ok();
        }
        Ok(false)
    }

    fn welcome(&mut self, present: Vec<Presence>, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), FleetError> {
        let present = self.usable(present, tell)?;
        for presence in &present {
            self.collect(presence, tell)?;
        }
        self.release_unknown(&present, tell)
    }

    /// Asks the agents that do not measure. Their answers are heard later.
    fn ask_who_is_there(&mut self) -> Result<(), FleetError> {
        // Who measures is not disturbed.
        let now = Instant::now();
        let busy = self.measured.values().filter(|measured| measured.overdue > now);
        let busy = busy.flat_map(|Measured { lease, .. }| [lease.sender.clone(), lease.receiver.clone()]);
        let busy = busy.collect();
        let wire = Arc::clone(&self.wire);
        let heard = self.heard.0.clone();
        self.asked = Some(Instant::now());
        start(move || {
            let _ = heard.send(Heard::Present(wire.present(&busy)));
        })
    }

    /// Hands out every block that can be measured now. Whether nothing is left to hand out.
    fn hand_out(
        &mut self,
        campaign: &CampaignRow,
        study: &FleetStudy,
        lease: Duration,
    ) -> Result<bool, FleetError> {
        while self.measured.len() < self.at_once {
            let Some(reserved) = self.store.reserve(&campaign.id, now_ns(), ns(lease))? else { break };
            let Some(receiver) = self.store.agent(&reserved.receiver)? else {
                self.store.fail(&reserved.key, now_ns(), "its receiver is unknown")?;
                continue;
            };
            let key = reserved.key.clone();
            let class = campaign.class;
            let study = study.clone();
            let order = Order { key, class, lease, study, receiver };
            let wire = Arc::clone(&self.wire);
            let heard = self.heard.0.clone();
            let sender = reserved.sender.clone();
            let measured = Measured { lease: reserved.clone(), overdue: Instant::now() + lease / OVERDUE };
            self.measured.insert(reserved.key.clone(), measured);
            start(move || {
                let answer = ask(&*wire, &sender, &Request::Measure(Box::new(order)), lease);
                let result = answer.and_then(|answer| match answer {
                    Answer::Measured(result) => Ok(result),
                    _ => Err(other_answer(&sender)),
                });
                let (committed, waits) = mpsc::channel();
                let key = reserved.key.clone();
                let _ = heard.send(Heard::Ended { lease: reserved, result, committed });
                if waits.recv().is_ok() {
                    forget(&*wire, &sender, key);
                    let _ = heard.send(Heard::Forgotten);
                }
            })?;
        }
        let row = self.store.campaign(Some(&campaign.id))?;
        Ok(row.is_none_or(|row| row.state == CampaignState::Stopped) || self.store.is_over(&campaign.id)?)
    }

    /// Releases the blocks that the senders among these were to measure and know nothing of: they were started again.
    fn release_unknown(
        &mut self,
        present: &[Presence],
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        for (key, sender) in self.store.list_leases()? {
            if self.is_waited_for(&key) {
                continue;
            }
            let is_forgotten = present.iter().any(|presence| {
                let knows = presence.held.contains(&key) || presence.kept.contains(&key);
                presence.agent.name == sender && !knows
            });
            if is_forgotten {
                self.measured.remove(&key);
                let reason = "its sender was started again, or never got it";
                tell(Event::Failed(&key, reason));
                self.store.fail(&key, now_ns(), reason)?;
            }
        }
        Ok(())
    }

    fn is_waited_for(&self, key: &BlockKey) -> bool {
        self.measured.get(key).is_some_and(|measured| measured.overdue > Instant::now())
    }

    /// Those agents that can be used. They count as alive from now on.
    fn usable(
        &mut self,
        present: Vec<Presence>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<Presence>, FleetError> {
        let mut usable = Vec::new();
        for presence in present {
            let name = &presence.agent.name;
            match presence.unusable(now_ns()) {
                Some(reason) if self.unusable.insert(name.clone()) => tell(Event::Unusable(name, reason)),
                Some(_) => {}
                None => {
                    self.unusable.remove(name);
                    self.ahead_ns.insert(name.clone(), presence.now_ns.saturating_sub(now_ns()));
                    usable.push(presence);
                }
            }
        }
        self.store.put_agents(usable.iter().map(|presence| &presence.agent), now_ns() + ns(ALIVE))?;
        Ok(usable)
    }
}

fn start(waits: impl FnOnce() + Send + 'static) -> Result<(), FleetError> {
    let started = thread::Builder::new().stack_size(STACK).spawn(waits);
    started.map(drop).map_err(|reason| FleetError::System { attempted: "start a thread".to_owned(), reason })
}

fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
