//! `stacklab serve`: the page over a folder of records.
//!
//! * `library`: the records of the folder, by name only
//! * `cached`: what was read of a record, while its file does not change
//! * `metrics`: findings as gauges for Prometheus
//! * `guard`: access control
//! * `connections`: how many, and for how long they may be silent
//! * `routes`: the answers
//! * `running`: which records a campaign is writing
//! * `events`: changes of records, as server-sent events
//!
//! It only reads, and never writes. A campaign can run at the same time: only the requested parts of its record are
//! read, and while the record changes only for a tenth of the time.

mod cached;
mod connections;
mod events;
pub mod fuzzing;
mod guard;
mod library;
mod metrics;
pub mod page;
mod routes;
mod running;

use guard::Guard;
use library::Library;
use metrics::Exporter;
use serde::Serialize;
use stacklab_agent::advice::listen_advice;
use stacklab_campaign::CampaignError;
use stacklab_published::ReferenceError;
use stacklab_report::page::NoPage;
use stacklab_store::StoreError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of concurrent event streams.
const STREAMS: usize = 64;

/// What is served, and where.
#[derive(Debug)]
pub struct Settings {
    /// The folder with the records.
    pub folder: PathBuf,
    /// The address and port to listen on; port 0 for any free one.
    pub listen: SocketAddr,
    /// The token that requests need; default: a random one.
    pub token: Option<String>,
    /// Whether Prometheus is answered at /metrics.
    pub metrics: bool,
}

/// Why a record cannot be shown, or nothing be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A record cannot be used.
    #[error("{0}")]
    Campaign(#[from] CampaignError),
    /// Settings that do not fit, or a record that is not read.
    #[error("{0}")]
    Usage(String),
    /// A table of published figures is invalid. This does not occur in an installed program.
    #[error("{0}")]
    Reference(#[from] ReferenceError),
    /// The program was built without its web page.
    #[error("{0}")]
    NoPage(#[from] NoPage),
    /// The page cannot be served on this address.
    #[error(
        "could not serve the page on {address}: {reason}{}",
        listen_advice(reason, "another program", "--listen :8100")
    )]
    Serve {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        reason: io::Error,
    },
}

impl From<StoreError> for ServeError {
    fn from(error: StoreError) -> Self {
        CampaignError::from(error).into()
    }
}

/// State shared by the routes.
struct Server {
    library: Library,
    guard: Guard,
    /// Gauges for monitoring systems.
    exporter: Exporter,
    /// Whether Prometheus may read them.
    metrics: bool,
    /// Limits the number of concurrent event streams.
    streams: Arc<tokio::sync::Semaphore>,
}

/// A value as JSON text.
fn to_json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("names and finite numbers become JSON")
}

/// Serves until it is interrupted.
///
/// # Errors
/// When the folder cannot be read, or the address is already in use.
pub fn serve(options: &Settings) -> Result<(), ServeError> {
    stacklab_report::page::shell()?;
    let library = Library::open(&options.folder)?;
    let address = options.listen;
    let failed = |reason| ServeError::Serve { address, reason };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Threads that read records. More of them would only take processor time from a running campaign.
        .max_blocking_threads(2)
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let guard = Guard::new(bound, options.token.as_deref())?;
        eprintln!("{} at {}  (Ctrl-C ends it)", options.folder.display(), guard.entry(bound));
        let streams = Arc::new(tokio::sync::Semaphore::new(STREAMS));
        let exporter = Exporter::default();
        let server = Arc::new(Server { library, guard, exporter, metrics: options.metrics, streams });
        connections::serve(listener, routes::routes(server)).await;
        Ok(())
    })
}
