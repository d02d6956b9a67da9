//! What the routes share.

use crate::serve::guard::Guard;
use crate::serve::library::Library;
use std::sync::Arc;

/// What every answer is made of.
pub struct Server {
    pub library: Library,
    pub guard: Guard,
    /// Streams of events at once are counted, so that nobody holds too many.
    pub streams: Arc<tokio::sync::Semaphore>,
}

/// Streams of events at once.
pub const STREAMS: usize = 64;
