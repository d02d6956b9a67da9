//! An agent of a fleet: it measures the blocks that it is asked for, keeps their results until they are committed, and
//! is the last to refuse two blocks at the same time.

mod fence;
mod join;
mod kept;

use crate::FleetError;
use crate::block;
use crate::message::{Answer, LONGEST_REQUEST, Order, Request};
use crate::presence::Presence;
use crate::store::AgentInfo;
use crate::wire::Wire;
use fence::Fence;
use kept::Kept;
use stacklab_testbed::{Streams, write_message};
use stacklab_traffic::agent::Network;
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::protocol::Lines;
use std::io::{self, BufReader};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An agent.
pub struct FleetAgent {
    info: AgentInfo,
    wire: Arc<dyn Wire>,
    fence: Fence,
    kept: Kept,
    /// The networks of the hosts that it exchanges traffic with; `None`: any.
    allowed: Option<Vec<Network>>,
    interrupted: &'static AtomicBool,
}

impl FleetAgent {
    /// An agent that keeps results in this folder.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new(
        info: AgentInfo,
        wire: Arc<dyn Wire>,
        folder: &Path,
        allowed: Option<Vec<Network>>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, FleetError> {
        let kept = Kept::new(folder)?;
        Ok(FleetAgent { info, wire, fence: Fence::default(), kept, allowed, interrupted })
    }

    /// Serves until it is interrupted. Calls `ready` when it can be reached.
    ///
    /// # Errors
    /// Those of [`Wire::serve`].
    pub fn run(&self, ready: &(dyn Fn() + Sync)) -> Result<(), FleetError> {
        self.wire.serve(&self.info.name, &|streams| self.handle(streams), ready, self.interrupted)
    }

    fn handle(&self, (reader, mut writer): Streams) {
        let mut reader = BufReader::new(reader);
        let line = Lines::new(&mut reader, LONGEST_REQUEST).next();
        let Some(Ok(line)) = line else { return };
        let answer = match Request::read(&line) {
            Ok(Request::Join(order)) => {
                let joined = self.take_part(&order, reader, writer);
                return joined.unwrap_or_else(|reason| eprintln!("stacklab: block {}: {reason}", order.key));
            }
            Ok(request) => self.answer(request),
            Err(error) => {
                self.failure(FleetError::Usage(format!("{error}; it is stacklab {}", self.info.version)))
            }
        };
        // A coordinator that is gone asks again.
        let _ = write_message(&mut writer, &answer);
    }

    fn answer(&self, request: Request) -> Answer {
        let answered = match request {
            Request::Describe => self.presence().map(Answer::Presence),
            Request::Measure(order) => self.measure(&order),
            Request::Fetch(key) => self.kept.get(&key).map(|result| Answer::Measured(Box::new(result))),
            Request::Forget(key) => self.kept.forget(&key).map(|()| Answer::Forgotten),
            Request::Join(_) => Err(FleetError::Usage("a stream is joined once".to_owned())),
        };
        answered.unwrap_or_else(|error| self.failure(error))
    }

    fn failure(&self, error: FleetError) -> Answer {
        match error {
            FleetError::Agent { agent, reason } => Answer::Failed { agent, reason },
            error => Answer::Failed { agent: self.info.name.clone(), reason: error.to_string() },
        }
    }

    fn presence(&self) -> Result<Presence, FleetError> {
        let now_ns = i64::try_from(now_unix_ns()).unwrap_or(i64::MAX);
        // In this order: a block that ends in between is in one of both.
        let held = self.fence.keys();
        Ok(Presence { agent: self.info.clone(), now_ns, held, kept: self.kept.keys()? })
    }

    fn measure(&self, order: &Order) -> Result<Answer, FleetError> {
        let _lease = self.fence.take(&order.key, order.class, order.lease)?;
        self.check_allowed(order.receiver.addresses.values())?;
        let result = block::measure(order, &self.info, &*self.wire, self.interrupted)?;
        self.kept.put(&order.key, &result)?;
        Ok(Answer::Measured(Box::new(result)))
    }

    /// Whether these addresses are all in the networks that its operator allows.
    fn check_allowed<'a>(&self, addresses: impl IntoIterator<Item = &'a String>) -> Result<(), FleetError> {
        let Some(allowed) = &self.allowed else { return Ok(()) };
        for text in addresses {
            let address: Option<IpAddr> = text.parse().ok();
            if !address.is_some_and(|address| allowed.iter().any(|network| network.holds(address))) {
                return Err(FleetError::Agent {
                    agent: self.info.name.clone(),
                    reason: format!("it refuses traffic with {text}: its --allow-target does not have it"),
                });
            }
        }
        Ok(())
    }
}

fn failed(attempted: &'static str) -> impl Fn(io::Error) -> FleetError {
    move |reason| FleetError::System { attempted, reason }
}
