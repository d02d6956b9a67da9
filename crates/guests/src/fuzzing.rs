//! Parsers of lines of guests and files of packages: untrusted input. Public for the fuzz targets (`fuzz/`) only.

use crate::hosted::mux;
use crate::image::{apt, archive, debian};
use crate::shell::{Ask, ClientFrame, GuestFrame};
use crate::{Greeting, GuestRole};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cmp::Ordering;
use std::io::Read;

/// The lines of a channel with the numbers of their streams.
pub fn mux_lines(channel: impl Read) -> Vec<(usize, Vec<u8>)> {
    let mut lines = Vec::new();
    // Reading ends at an error as at the channel's end.
    let _ = mux::each_line(channel, |number, line| {
        lines.push((number, line.to_vec()));
        Ok(())
    });
    lines
}

/// The line as each message between a coordinator, a guest and its shell, written again: those that it is.
pub fn guest_messages(line: &[u8]) -> Vec<String> {
    fn as_one<T: DeserializeOwned + Serialize>(line: &[u8]) -> Option<String> {
        serde_json::to_string(&serde_json::from_slice::<T>(line).ok()?).ok()
    }
    let messages = [
        as_one::<GuestRole>(line),
        as_one::<Greeting>(line),
        as_one::<ClientFrame>(line),
        as_one::<GuestFrame>(line),
        as_one::<Ask>(line),
    ];
    messages.into_iter().flatten().collect()
}

/// A program without its symbols, and whether it names a loader.
pub fn program(file: &[u8]) -> (Vec<u8>, bool) {
    (archive::without_symbols(file.to_vec()), archive::needs_a_loader(file))
}

/// The modules that a kernel module needs.
pub fn needed_modules(module: &[u8]) -> Vec<String> {
    debian::depends(module)
}

/// The order of two package names by their numbers, and the mirror among apt's addresses.
pub fn packages(one: &str, other: &str) -> (Ordering, Option<String>) {
    (apt::by_numbers(one, other), apt::mirror_among(one))
}
