//! State shared by the routes.

use crate::serve::guard::Guard;
use crate::serve::library::Library;
use crate::serve::metrics::Exporter;
use std::sync::Arc;

/// The shared state.
pub(super) struct Server {
    pub library: Library,
    pub guard: Guard,
    /// Gauges for monitoring systems.
    pub exporter: Exporter,
    /// Whether Prometheus may read them.
    pub metrics: bool,
    /// Limits the number of concurrent event streams.
    pub streams: Arc<tokio::sync::Semaphore>,
}

/// Maximum number of concurrent event streams.
pub(super) const STREAMS: usize = 64;
