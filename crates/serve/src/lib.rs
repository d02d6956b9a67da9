//! `stacklab serve`: the page over a folder of records.
//!
//! It only reads, and never writes. A campaign can run at the same time: only the requested parts of its record are
//! read, and while the record changes only for a tenth of the time.

mod cached;
mod events;
#[cfg_attr(not(feature = "fleet"), path = "no_fleet.rs")]
mod fleet;
mod guard;
mod library;
mod metrics;
pub mod page;
mod places;
mod routes;
mod timed;

/// Access control on untrusted requests, for the fuzz targets (`fuzz/`).
pub mod fuzzing {
    pub use crate::guard::admits_request;
}

use axum::{Extension, Router};
use fleet::Fleet;
pub use fleet::FleetError;
use futures_util::future::select;
use guard::Guard;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use library::Library;
use metrics::Exporter;
use places::Places;
use serde::Serialize;
use stacklab_agent::listen_advice;
use stacklab_campaign::CampaignError;
use stacklab_model::say;
use stacklab_store::StoreError;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use timed::TimedStream;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Maximum number of concurrent event streams.
const STREAMS: usize = 64;
/// Time limit for the header of a request, from the connection or the answer before.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted, as without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What is served, and where.
#[derive(Debug)]
pub struct Settings {
    /// The folder with the records.
    pub folder: PathBuf,
    /// A fleet store to show beside them.
    pub fleet: Option<String>,
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
    /// A fleet store, or a campaign in it, cannot be used.
    #[error("{0}")]
    Fleet(#[from] FleetError),
    /// Settings that do not fit, or a record that is not read.
    #[error("{0}")]
    Usage(String),
    /// The page cannot be made, or not served on its address.
    #[error("{0}")]
    Other(String),
}

fn other(error: impl Display) -> ServeError {
    ServeError::Other(error.to_string())
}

impl From<StoreError> for ServeError {
    fn from(error: StoreError) -> Self {
        CampaignError::from(error).into()
    }
}

struct Server {
    library: Library,
    fleet: Option<Fleet>,
    /// One program thread reads the fleet store, so that records are read even if the store does not answer.
    fleet_turn: Arc<Semaphore>,
    guard: Guard,
    /// Gauges, if Prometheus may read them.
    exporter: Option<Exporter>,
    streams: Arc<Semaphore>,
}

fn to_json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("names and finite numbers become JSON")
}

/// Serves until it is interrupted.
pub fn serve(options: &Settings) -> Result<(), ServeError> {
    stacklab_report::page::shell().map_err(other)?;
    let library = Library::open(&options.folder)?;
    let fleet = options.fleet.as_deref().map(Fleet::open).transpose()?;
    let address = options.listen;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Threads that read records. More of them would only take processor time from a running campaign.
        .max_blocking_threads(2)
        .build()
        .map_err(|reason| fail_to_listen(address, reason))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(|reason| fail_to_listen(address, reason))?;
        let bound = listener.local_addr().map_err(|reason| fail_to_listen(address, reason))?;
        let guard = Guard::new(bound, options.token.as_deref())?;
        let shown =
            fleet.as_ref().map_or_else(String::new, |fleet| format!(", and the fleet of {}", fleet.place()));
        // `.` says little of where that is.
        let folder = options.folder.canonicalize().unwrap_or_else(|_| options.folder.clone());
        say!("{}{shown} at {}  (Ctrl-C ends it)", folder.display(), guard.entry(bound));
        let server = Arc::new(Server {
            library,
            fleet,
            fleet_turn: Arc::new(Semaphore::new(1)),
            guard,
            exporter: options.metrics.then(Exporter::default),
            streams: Arc::new(Semaphore::new(STREAMS)),
        });
        answer(listener, routes::routes(server)).await;
        Ok(())
    })
}

fn fail_to_listen(address: SocketAddr, reason: std::io::Error) -> ServeError {
    let advice = listen_advice(&reason, "another program", "--listen :8100");
    other(format!("could not serve the page on {address}: {reason}{advice}"))
}

async fn answer(listener: TcpListener, routes: Router) {
    let places = Arc::new(Places::default());
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Without a place the connection is closed.
        let Some(taken) = places.take(peer.ip()) else { continue };
        let service = TowerToHyperService::new(routes.clone().layer(Extension(Arc::clone(&taken.place))));
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_LIMIT);
            let served = http.serve_connection(TokioIo::new(TimedStream::new(stream)), service);
            // A connection that fails is its client's.
            let _ = select(pin!(served), pin!(taken.place.wait_to_give_way())).await;
        });
    }
}
