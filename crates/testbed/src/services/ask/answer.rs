//! What is asked for, and checks of answers.

use std::io;
use std::time::Duration;

/// The one name that DNS knows; `.test` is set aside by RFC 6761.
pub(crate) const NAME: &str = "server.test";
/// Where the directory's entries are.
pub(crate) const SUFFIX: &str = "cn=stacklab";
/// How many there are beside that one.
pub(crate) const ENTRIES: u32 = 100;
/// How long an answer is waited for.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

/// The name of an entry of the directory.
pub(crate) fn entry(number: u32) -> String {
    format!("user{}", number % ENTRIES)
}

/// An answer that is none to the query.
pub(crate) fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// That something holds of an answer.
pub(crate) fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(strange(what)) }
}
