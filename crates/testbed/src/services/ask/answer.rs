//! The data that queries ask for, and checks of answers.

use std::io;
use std::time::Duration;

/// The only name in DNS. `.test` is reserved by RFC 6761.
pub(crate) const NAME: &str = "server.test";
/// The suffix of the directory's entries.
pub(crate) const SUFFIX: &str = "cn=stacklab";
/// The number of entries in addition to the suffix entry.
pub(crate) const ENTRIES: u32 = 100;
/// Timeout for an answer.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

/// The name of an entry of the directory.
pub(crate) fn entry(number: u32) -> String {
    format!("user{}", number % ENTRIES)
}

/// An error for an answer that does not match the query.
pub(crate) fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Checks a condition on an answer.
pub(crate) fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(strange(what)) }
}
