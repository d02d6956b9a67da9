//! The coordinator of a campaign: it hands out blocks and commits their results. All that it must remember is in the
//! store, so that another one can take over at any time.

use crate::FleetError;
use crate::block::BlockResult;
use crate::message::{Answer, Order, Request, ask};
use crate::pairs::Pairs;
use crate::presence::Presence;
use crate::store::{
    AgentInfo, BlockKey, CampaignRow, Class, Committed, Lease, NewCampaign, NewPair, State, Store,
};
use crate::study::FleetStudy;
use crate::wire::Wire;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use stacklab_traffic::host::unix_time::now_unix_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often agents are asked whether they are there, and how long an answer counts.
const ASK_EVERY: Duration = Duration::from_secs(5);
const ALIVE: Duration = Duration::from_secs(30);
/// Time limit for an agent to hand over or forget a kept result.
const FETCH_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);
/// How often a block is leased before it is given up.
const MOST_ATTEMPTS: u32 = 5;
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
    /// Leases of blocks that are being measured.
    measured: BTreeMap<BlockKey, Lease>,
    outcomes: (Sender<Outcome>, Receiver<Outcome>),
    /// What was said of agents that are not used: once each.
    unusable: BTreeSet<String>,
    /// How many blocks may be measured at the same time.
    at_once: usize,
    interrupted: &'static AtomicBool,
}

struct Outcome {
    lease: Lease,
    result: Result<Box<BlockResult>, FleetError>,
}

impl<'a> Coordinator<'a> {
    /// Makes this program the one coordinator of the store.
    ///
    /// # Errors
    /// If there is one already.
    pub fn new(
        store: &'a mut Store,
        wire: Arc<dyn Wire>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, FleetError> {
        store.coordinate()?;
        let outcomes = mpsc::channel();
        Ok(Coordinator {
            store,
            wire,
            measured: BTreeMap::new(),
            outcomes,
            unusable: BTreeSet::new(),
            at_once: usize::MAX,
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
        Ok(self.present(tell)?.into_iter().map(|presence| presence.agent).collect())
    }

    /// Adds a campaign of all these pairs: `blocks` blocks of each, in random order, so that the time of day is no
    /// confounder.
    pub fn add(
        &mut self,
        id: &str,
        study: &FleetStudy,
        class: Class,
        pairs: &Pairs,
        blocks: u32,
        agents: &[AgentInfo],
    ) -> Result<CampaignRow, FleetError> {
        crate::name::check("a campaign", id)?;
        let (checked, _) = study.check()?;
        let lacks_family = |pair: &[&AgentInfo; 2]| {
            let mut ends = checked.cells.iter().flat_map(|cell| pair.map(|agent| agent.address(cell.family)));
            ends.find_map(Result::err).map(|error| error.to_string())
        };
        let pairs: Vec<NewPair> = pairs
            .of(agents)?
            .into_iter()
            .map(|pair| NewPair {
                skipped: lacks_family(&pair),
                sender: pair[0].clone(),
                receiver: pair[1].clone(),
            })
            .collect();
        if let Some(reason) = pairs.iter().all(|pair| pair.skipped.is_some()).then(|| &pairs[0].skipped) {
            return Err(FleetError::Usage(format!(
                "no pair can be measured; the first one: {}",
                reason.as_deref().unwrap_or_default()
            )));
        }
        let mut generator = Pcg64Mcg::seed_from_u64(study.seed);
        let measurable: Vec<u32> =
            (0..).zip(&pairs).filter(|(_, pair)| pair.skipped.is_none()).map(|(n, _)| n).collect();
        let order = (0..blocks).flat_map(|_| shuffled(&measurable, &mut generator)).collect();
        let campaign = NewCampaign {
            id: id.to_owned(),
            created_ns: now_ns(),
            request: serde_json::to_string(study).expect("a study is JSON"),
            class,
            most_attempts: MOST_ATTEMPTS,
            pairs,
            order,
        };
        self.store.put_campaign(&campaign)?;
        self.store
            .campaign(Some(id))?
            .ok_or_else(|| FleetError::Usage(format!("the campaign {id} is gone again")))
    }

    /// Measures until every block has a result or was given up, or the campaign is stopped.
    ///
    /// # Errors
    /// If the store cannot be used, or the user interrupts.
    pub fn run(&mut self, campaign: &CampaignRow, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), FleetError> {
        let study = study_of(campaign)?;
        let lease = study.lease()?;
        let (mut asked, mut worked) = (None, Instant::now());
        while !self.interrupted.load(Ordering::Relaxed) {
            match self.step(campaign, &study, lease, &mut asked, tell) {
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
        asked: &mut Option<Instant>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, FleetError> {
        if asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
            let present = self.present(tell)?;
            for presence in &present {
                self.collect(presence, tell)?;
            }
            self.release_unknown(&present, tell)?;
            self.expire(tell)?;
            *asked = Some(Instant::now());
        }
        if self.hand_out(campaign, study, lease)? && self.measured.is_empty() {
            return Ok(true);
        }
        match self.outcomes.1.recv_timeout(POLL) {
            Ok(outcome) => self.settle(outcome, tell)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("this holds a sender"),
        }
        Ok(false)
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
            let order = Order {
                key: reserved.key.clone(),
                class: campaign.class,
                lease,
                study: study.clone(),
                receiver,
            };
            let (wire, sender, done) =
                (Arc::clone(&self.wire), reserved.sender.clone(), self.outcomes.0.clone());
            self.measured.insert(reserved.key.clone(), reserved.clone());
            let waits = move || {
                let result = match ask(&*wire, &sender, &Request::Measure(Box::new(order)), lease) {
                    Ok(Answer::Measured(result)) => Ok(result),
                    Ok(Answer::Failed { agent, reason }) => Err(FleetError::Agent { agent, reason }),
                    Ok(_) => {
                        let reason = "its answer is to another question".to_owned();
                        Err(FleetError::Agent { agent: sender, reason })
                    }
                    Err(error) => Err(error),
                };
                let _ = done.send(Outcome { lease: reserved, result });
            };
            let started = thread::Builder::new().stack_size(STACK).spawn(waits);
            started.map_err(|reason| FleetError::System { attempted: "start a thread", reason })?;
        }
        let is_running =
            self.store.campaign(Some(&campaign.id))?.is_some_and(|row| row.state == State::Running);
        Ok(!is_running || self.store.has_ended(&campaign.id)?)
    }

    /// Commits a result, or releases the block.
    fn settle(&mut self, outcome: Outcome, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), FleetError> {
        let Outcome { lease, result } = outcome;
        self.measured.remove(&lease.key);
        match result {
            Ok(result) => {
                self.commit(&lease.sender, &lease.key, &result, tell)?;
                self.store.keep_alive(&[lease.sender.as_str(), lease.receiver.as_str()], now_ns() + ns(ALIVE))
            }
            Err(error) => {
                let reason = error.to_string();
                tell(Event::Failed(&lease.key, &reason));
                let given_up = self.store.fail(&lease.key, now_ns(), &reason)?;
                if given_up && self.store.results(&lease.key.campaign, lease.key.pair)?.is_empty() {
                    // Its other blocks would fail alike.
                    self.store.skip_pair(&lease.key.campaign, lease.key.pair, &reason)?;
                }
                // Until they answer again.
                self.store.keep_alive(&[lease.sender.as_str(), lease.receiver.as_str()], now_ns())
            }
        }
    }

    fn commit(
        &mut self,
        sender: &str,
        key: &BlockKey,
        result: &BlockResult,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        let json = serde_json::to_string(result).expect("a result is JSON");
        if self.store.commit(key, now_ns(), &json)? == Committed::Counted {
            tell(Event::Committed(key));
        }
        // It is asked to forget again if it does not hear this.
        let _ = ask(&*self.wire, sender, &Request::Forget(key.clone()), FETCH_LIMIT);
        Ok(())
    }

    /// Commits what an agent keeps: the coordinator was gone when it had measured.
    fn collect(&mut self, presence: &Presence, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), FleetError> {
        let agent = &presence.agent.name;
        for key in &presence.kept {
            // It may be of another store's campaign.
            if self.measured.contains_key(key) || !self.store.knows(key)? {
                continue;
            }
            if let Ok(Answer::Measured(result)) =
                ask(&*self.wire, agent, &Request::Fetch(key.clone()), FETCH_LIMIT)
            {
                self.commit(agent, key, &result, tell)?;
            }
        }
        Ok(())
    }

    /// Releases the blocks that the senders among these were to measure and know nothing of: they were started again.
    fn release_unknown(
        &mut self,
        present: &[Presence],
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        for (key, sender) in self.store.leased()? {
            let forgets = |presence: &Presence| {
                let known = presence.held.contains(&key) || presence.kept.contains(&key);
                presence.agent.name == sender && !known
            };
            if !self.measured.contains_key(&key) && present.iter().any(forgets) {
                let reason = "its sender was started again, or never got it";
                tell(Event::Failed(&key, reason));
                self.store.fail(&key, now_ns(), reason)?;
            }
        }
        Ok(())
    }

    /// Releases leases that are over, but for those whose agents still may answer.
    fn expire(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), FleetError> {
        for key in self.store.expire(now_ns())? {
            self.measured.remove(&key);
            tell(Event::Failed(&key, "the lease expired without a result"));
        }
        Ok(())
    }

    /// The agents that answer and can be used. They count as alive from now on.
    fn present(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> Result<Vec<Presence>, FleetError> {
        let busy =
            self.measured.values().flat_map(|lease| [lease.sender.clone(), lease.receiver.clone()]).collect();
        let mut usable = Vec::new();
        for presence in self.wire.present(&busy)? {
            let name = &presence.agent.name;
            match presence.unusable(now_ns()) {
                Some(reason) if self.unusable.insert(name.clone()) => tell(Event::Unusable(name, reason)),
                Some(_) => {}
                None => {
                    self.unusable.remove(name);
                    usable.push(presence);
                }
            }
        }
        self.store.put_agents(usable.iter().map(|presence| &presence.agent), now_ns() + ns(ALIVE))?;
        Ok(usable)
    }
}

/// The study of a campaign.
pub fn study_of(campaign: &CampaignRow) -> Result<FleetStudy, FleetError> {
    serde_json::from_str(&campaign.request).map_err(|error| {
        FleetError::Usage(format!(
            "the campaign {} was not made by this version of stacklab: {error}",
            campaign.id
        ))
    })
}

fn shuffled(numbers: &[u32], generator: &mut Pcg64Mcg) -> Vec<u32> {
    let mut numbers = numbers.to_vec();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, (generator.next_u64() % (last as u64 + 1)) as usize);
    }
    numbers
}

fn now_ns() -> i64 {
    i64::try_from(now_unix_ns()).unwrap_or(i64::MAX)
}

fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_in_each_round_of_the_order_once() {
        let mut generator = Pcg64Mcg::seed_from_u64(5);
        let rounds: Vec<Vec<u32>> = (0..20).map(|_| shuffled(&[3, 4, 5, 6], &mut generator)).collect();
        assert!(rounds.iter().all(|round| round.iter().sum::<u32>() == 18 && round.len() == 4));
        assert!(rounds.iter().any(|round| *round != rounds[0]));
    }
}
