//! What agents answer: results of blocks that the coordinator waited for, and those that they kept. A result is
//! committed only if it is what was ordered.

use crate::FleetError;
use crate::checked::{CheckedStudy, MAX_AHEAD, Times};
use crate::coordinator::{ALIVE, Coordinator, Event, ns};
use crate::message::{Answer, BlockResult, Presence, Request};
use crate::pairs::now_ns;
use crate::store::{BlockKey, Committed, Lease};
use crate::study::study_of;
use crate::wire::Wire;
use crate::wire::conversation::ask;
use stacklab_analysis::block_summary;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Time limit for an agent to hand over or forget a kept result.
const FETCH_LIMIT: Duration = Duration::from_secs(20);
/// How many results that an agent keeps are looked at in one answer: the next ones come with the next answer.
const MAX_KEPT: usize = 1000;

impl Coordinator<'_> {
    /// Commits the result of a block, or fails its attempt.
    pub(super) fn settle(
        &mut self,
        lease: &Lease,
        result: Result<Box<BlockResult>, FleetError>,
        committed: &Sender<()>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        self.measured.remove(&lease.key);
        let agents = [lease.sender.as_str(), lease.receiver.as_str()];
        match result {
            Ok(result) => {
                self.take(lease, &result, tell)?;
                self.forgetting += usize::from(committed.send(()).is_ok());
                self.store.keep_alive(&agents, now_ns() + ns(ALIVE))
            }
            Err(error) => {
                self.fail(&lease.key, &error.to_string(), tell)?;
                // Until they answer again.
                self.store.keep_alive(&agents, now_ns())
            }
        }
    }

    /// Releases an attempt that failed. A pair of which a block was given up before any had a result is left out: its
    /// other blocks would fail alike.
    fn fail(
        &mut self,
        key: &BlockKey,
        reason: &str,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        tell(Event::Failed(key, reason));
        let given_up = self.store.fail(key, now_ns(), reason)?;
        if given_up && self.store.summaries(&key.campaign, key.pair)?.is_empty() {
            self.store.skip_pair(&key.campaign, key.pair, reason)?;
        }
        Ok(())
    }

    /// The study of a campaign. It may be another one than that which runs: an agent kept a result of it.
    fn study(&mut self, campaign: &str) -> Result<&CheckedStudy, FleetError> {
        if !self.studies.contains_key(campaign) {
            let Some(row) = self.store.campaign(Some(campaign))? else {
                return Err(FleetError::Usage(format!("the campaign {campaign} is gone")));
            };
            self.studies.insert(row.id.clone(), CheckedStudy::new(&study_of(&row)?)?);
        }
        Ok(&self.studies[campaign])
    }

    fn commit(
        &mut self,
        key: &BlockKey,
        result: &BlockResult,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        let summary = block_summary(&self.study(&key.campaign)?.study.questions(), &result.runs);
        let result = serde_json::to_string(result).expect("names and numbers are JSON");
        let summary = serde_json::to_string(&summary).expect("names and numbers are JSON");
        if self.store.commit(key, now_ns(), &result, &summary)? == Committed::Counted {
            tell(Event::Committed(key));
        }
        Ok(())
    }

    /// Commits what an agent keeps: the coordinator was gone when it had measured, or its answer was lost.
    pub(super) fn collect(
        &mut self,
        presence: &Presence,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        let agent = &presence.agent.name;
        for key in presence.kept.iter().take(MAX_KEPT) {
            // It may be of another store's campaign.
            if self.is_waited_for(key) {
                continue;
            }
            let Some(lease) = self.store.lease(key)? else { continue };
            if lease.sender != *agent {
                let reason =
                    format!("{agent} has a result, but {} measures it: it is not used", lease.sender);
                tell(Event::Failed(key, &reason));
                continue;
            }
            self.measured.remove(key);
            let Ok(Answer::Measured(result)) =
                ask(&*self.wire, agent, &Request::Fetch(key.clone()), FETCH_LIMIT)
            else {
                continue;
            };
            match self.take(&lease, &result, tell) {
                Ok(()) => forget(&*self.wire, agent, key.clone()),
                // Its campaign may be of another version. The agent keeps the result for that one.
                Err(error @ (FleetError::Usage(_) | FleetError::Campaign(_))) => {
                    tell(Event::Failed(key, &error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Commits a result if it is what was ordered, or fails its attempt.
    fn take(
        &mut self,
        lease: &Lease,
        result: &BlockResult,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), FleetError> {
        // Until it has said what its clock is, that may be as wrong as that of any usable agent.
        let ahead_ns = self.ahead_ns.get(&lease.sender).copied().unwrap_or(-ns(MAX_AHEAD));
        let times = Times { now_ns: now_ns(), ahead_ns };
        let Err(reason) = self.study(&lease.key.campaign)?.check(lease, result, times) else {
            return self.commit(&lease.key, result, tell);
        };
        let sender = &lease.sender;
        let reason = format!("{sender}: its result is not that of the order and is refused: {reason}");
        self.fail(&lease.key, &reason, tell)
    }
}

/// Asks an agent to forget a result that is committed or refused. If it does not hear this, it is asked again.
pub(super) fn forget(wire: &dyn Wire, agent: &str, key: BlockKey) {
    let _ = ask(wire, agent, &Request::Forget(key), FETCH_LIMIT);
}
