//! How a coordinator and agents reach each other: byte streams, over Unix sockets on one machine or over NATS.

pub(crate) mod conversation;
pub mod local;
pub mod nats;
pub(crate) mod nats_stream;

use crate::FleetError;
use crate::message::Presence;
use stacklab_testbed::Streams;
use std::collections::BTreeSet;
use std::time::Duration;

/// The way to the agents of a fleet.
pub trait Wire: Send + Sync {
    /// The agents that answer now, but for `busy` ones: who measures is not disturbed.
    fn present(&self, busy: &BTreeSet<String>) -> Result<Vec<Presence>, FleetError>;

    /// What was checked of the way itself, and for each whether it is safe.
    fn safety(&self) -> Vec<(bool, String)>;

    /// A stream to an agent. Reading from it fails after a silence of `limit`.
    fn open(&self, agent: &str, limit: Duration) -> Result<Streams, FleetError>;

    /// Serves every stream that is opened to this agent, each in a thread, until `interrupted`. Calls `ready` when it
    /// can be reached.
    /// Fails if another agent of this name is there, this one cannot be reached by its name, or the wire is lost.
    fn serve(
        &self,
        agent: &str,
        handle: &(dyn Fn(Streams) + Sync),
        ready: &(dyn Fn() + Sync),
        interrupted: &std::sync::atomic::AtomicBool,
    ) -> Result<(), FleetError>;
}
