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
pub(crate) mod guard;
mod json;
mod library;
mod metrics;
mod routes;
mod running;
mod server;

use crate::cli::report::ServeOptions;
use crate::failure::Failure;
use guard::Guard;
use library::Library;
use metrics::Exporter;
use server::{STREAMS, Server};
use std::sync::Arc;

/// Serves until it is interrupted.
///
/// # Errors
/// When the folder cannot be read, or the address is already in use.
pub(crate) fn serve(options: &ServeOptions) -> Result<(), Failure> {
    stacklab_report::page::shell()?;
    let library = Library::open(&options.folder)?;
    let address = options.listen;
    let failed = |reason| Failure::Serve { address, reason };
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
