//! Changes of records, as server-sent events.

use crate::Server;
use crate::cached::{RunningCampaigns, Stamp};
use crate::library::Library;
use crate::to_json;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use stacklab_report::page::Changed;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

const POLL_INTERVAL: Duration = Duration::from_secs(1);

struct Follower {
    server: Arc<Server>,
    /// The record; `None` for the folder.
    name: Option<String>,
    seen: Option<FilesState>,
    _place: OwnedSemaphorePermit,
}

/// The state of the files: their stamps, and whether a campaign is writing one of them.
type FilesState = (Vec<(String, Stamp)>, bool);

enum FileChange {
    /// Already reported, or unreadable at the moment.
    NothingNew,
    /// A new state of the files, and the current number of runs or records.
    Changed(FilesState, usize),
    Gone,
}

/// One event at once, and one whenever the record, or any record of the folder, has changed. The stream ends when the
/// record is removed.
pub(super) fn events(
    server: Arc<Server>,
    name: Option<String>,
    place: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let follower = Follower { server, name, seen: None, _place: place };
    let stream = stream::unfold(follower, |mut follower| async move {
        let mut is_first = follower.seen.is_none();
        loop {
            if !is_first {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            is_first = false;
            let server = follower.server.clone();
            let name = follower.name.clone();
            let reported = follower.seen.clone();
            let change =
                tokio::task::spawn_blocking(move || look(&server.library, name.as_deref(), reported));
            match change.await {
                Ok(FileChange::NothingNew) => {}
                Ok(FileChange::Changed(seen, count)) => {
                    let running = seen.1;
                    follower.seen = Some(seen);
                    let event = Event::default().event("changed").data(to_json(&Changed { count, running }));
                    return Some((Ok(event), follower));
                }
                Ok(FileChange::Gone) | Err(_) => return None,
            }
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}

/// Compares the files with the reported state. A change that could not be reported counts as new at the next check
/// too.
fn look(library: &Library, name: Option<&str>, reported: Option<FilesState>) -> FileChange {
    let stamps = match name {
        None => library.files(),
        Some(name) => match library.stamp(name) {
            Some(stamp) => vec![(name.to_owned(), stamp)],
            None => return FileChange::Gone,
        },
    };
    let running = RunningCampaigns::now();
    let is_running = stamps.iter().any(|(_, stamp)| running.has(*stamp));
    let seen = (stamps, is_running);
    if reported.as_ref() == Some(&seen) {
        return FileChange::NothingNew;
    }
    let count = match name {
        None => Some(seen.0.len()),
        Some(name) => library.run_count(name, seen.0[0].1),
    };
    count.map_or(FileChange::NothingNew, |count| FileChange::Changed(seen, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::tests::{folder, lock_record};

    #[test]
    fn change_that_could_not_be_told_is_told_later() {
        let (_folder, path, library) = folder();
        let look = |last| look(&library, Some("a.stacklab"), last);
        let writer = lock_record(&path);
        assert!(matches!(look(None), FileChange::NothingNew));
        drop(writer);
        let FileChange::Changed(seen, 0) = look(None) else { panic!("the change is new") };
        assert!(matches!(look(Some(seen.clone())), FileChange::NothingNew));
        std::fs::remove_file(path).unwrap();
        assert!(matches!(look(Some(seen)), FileChange::Gone));
    }
}
