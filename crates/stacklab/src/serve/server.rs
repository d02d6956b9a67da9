//! State shared by the routes.

use crate::serve::guard::Guard;
use crate::serve::library::Library;
use std::sync::Arc;

/// The shared state.
pub struct Server {
    pub library: Library,
    pub guard: Guard,
    /// Limits the number of concurrent event streams.
    pub streams: Arc<tokio::sync::Semaphore>,
}

/// Maximum number of concurrent event streams.
pub const STREAMS: usize = 64;
