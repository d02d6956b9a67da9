//! Records that change, as server-sent events.

use super::Server;
use super::library::Stamp;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use stacklab_report::page::Changed;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What a stream has told.
struct Told {
    server: Arc<Server>,
    /// The record; `None` for the folder.
    name: Option<String>,
    stamps: Option<Vec<(String, Stamp)>>,
    _place: OwnedSemaphorePermit,
}

/// One event now, and one whenever the record, or any of the folder, has changed.
pub fn events(
    server: Arc<Server>,
    name: Option<String>,
    place: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let told = Told { server, name, stamps: None, _place: place };
    let stream = stream::unfold(told, |mut told| async move {
        loop {
            if told.stamps.is_some() {
                tokio::time::sleep(LOOK).await;
            }
            let (server, name) = (told.server.clone(), told.name.clone());
            let seen = tokio::task::spawn_blocking(move || match &name {
                None => server.library.files(),
                Some(name) => {
                    server.library.stamp(name).map(|stamp| (name.clone(), stamp)).into_iter().collect()
                }
            });
            let Ok(stamps) = seen.await else { return None };
            if told.stamps.as_ref() == Some(&stamps) {
                continue;
            }
            let (server, name, files) = (told.server.clone(), told.name.clone(), stamps.len());
            told.stamps = Some(stamps);
            let counted = tokio::task::spawn_blocking(move || match &name {
                None => Some(files),
                Some(name) => server.library.run_count(name),
            });
            // A record that cannot be read in this moment is looked at again when it has changed again.
            let Ok(Some(count)) = counted.await else { continue };
            let data = serde_json::to_string(&Changed { count }).unwrap_or_default();
            return Some((Ok(Event::default().event("changed").data(data)), told));
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}
