//! Queries to each service as a client on the sender sends them, with checks of the answers.

pub(crate) mod dhcp;
pub(crate) mod directory;
pub(crate) mod dns;

use stacklab_model::{Family, Service};
use std::io;
use std::time::Duration;

/// The only name in DNS. `.test` is reserved by RFC 6761.
pub(crate) const NAME: &str = "server.test";
/// The suffix of the directory's entries.
pub(crate) const SUFFIX: &str = "cn=stacklab";
/// The number of entries in addition to the suffix entry.
pub(crate) const ENTRIES: u32 = 100;
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) fn entry(number: u32) -> String {
    format!("user{}", number % ENTRIES)
}

pub(crate) fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(crate) fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(strange(what)) }
}

/// Sends a query over a family from the calling thread's namespace, and waits for its answer. The number selects what
/// the query asks for. `interface` is the index of the link's interface, for link-local addresses.
pub(super) fn ask(service: Service, family: Family, number: u32, interface: u32) -> io::Result<()> {
    match service {
        Service::Dns => dns::ask(family, number),
        Service::Dhcp => dhcp::ask(family, number, interface),
        Service::Directory => directory::ask(family, number),
    }
}
