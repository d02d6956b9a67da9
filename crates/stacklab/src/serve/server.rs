//! What the routes share.

use crate::serve::guard::Guard;
use crate::serve::library::Library;
use std::sync::Arc;

/// What every answer is made of.
pub struct Server {
    pub library: Library,
    pub guard: Guard,
    /// Limits how many streams of events are open at once.
    pub streams: Arc<tokio::sync::Semaphore>,
}

/// Streams of events at once.
pub const STREAMS: usize = 64;
