//! Connections: a bounded number, none of which is held by a request that is never finished.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Maximum number of connections; further ones wait.
const MOST_CONNECTIONS: usize = 256;
/// Time limit for the header of a request.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted, as without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests until the process ends.
pub(super) async fn serve(listener: TcpListener, routes: Router) {
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await.expect("it is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_LIMIT);
            // A connection that fails is its client's.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(permit);
        });
    }
}
