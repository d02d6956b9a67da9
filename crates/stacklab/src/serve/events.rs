//! Records that change, as server-sent events.

use super::library::{Library, Stamp};
use super::{Server, to_json};
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

/// What is seen of the files.
enum Seen {
    /// What was told already, or what cannot be read in this moment.
    NothingNew,
    /// Another state of them, and how many runs or records there are now.
    Changed(Vec<(String, Stamp)>, usize),
    /// The record is there no more.
    Gone,
}

/// One event now, and one whenever the record, or any of the folder, has changed. It ends when the record is
/// removed.
pub fn events(
    server: Arc<Server>,
    name: Option<String>,
    place: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let told = Told { server, name, stamps: None, _place: place };
    let stream = stream::unfold(told, |mut told| async move {
        let mut is_first = told.stamps.is_none();
        loop {
            if !is_first {
                tokio::time::sleep(LOOK).await;
            }
            is_first = false;
            let (server, name, known) = (told.server.clone(), told.name.clone(), told.stamps.clone());
            let seen = tokio::task::spawn_blocking(move || look(&server.library, name.as_deref(), known));
            match seen.await {
                Ok(Seen::NothingNew) => {}
                Ok(Seen::Changed(stamps, count)) => {
                    told.stamps = Some(stamps);
                    let event = Event::default().event("changed").data(to_json(&Changed { count }));
                    return Some((Ok(event), told));
                }
                Ok(Seen::Gone) | Err(_) => return None,
            }
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}

/// Compares the files with what was told of them. What could not be told is new still at the next look.
fn look(library: &Library, name: Option<&str>, told: Option<Vec<(String, Stamp)>>) -> Seen {
    let stamps = match name {
        None => library.files(),
        Some(name) => match library.stamp(name) {
            Some(stamp) => vec![(name.to_owned(), stamp)],
            None => return Seen::Gone,
        },
    };
    if told.as_ref() == Some(&stamps) {
        return Seen::NothingNew;
    }
    let count = match name {
        None => Some(stamps.len()),
        Some(name) => library.run_count(name, stamps[0].1),
    };
    count.map_or(Seen::NothingNew, |count| Seen::Changed(stamps, count))
}

#[cfg(test)]
mod tests {
    use super::super::library::tests::{folder, held};
    use super::*;

    #[test]
    fn a_change_that_could_not_be_told_is_told_as_soon_as_it_can_be() {
        let (_folder, path, library) = folder();
        let look = |told| look(&library, Some("a.stacklab"), told);
        let writer = held(&path);
        assert!(matches!(look(None), Seen::NothingNew));
        drop(writer);
        let Seen::Changed(stamps, 0) = look(None) else { panic!("it was not told yet") };
        assert!(matches!(look(Some(stamps.clone())), Seen::NothingNew));
        std::fs::remove_file(path).unwrap();
        assert!(matches!(look(Some(stamps)), Seen::Gone));
    }
}
