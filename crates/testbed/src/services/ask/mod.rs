//! One query to each service, as a client on the sender sends it, and the answer checked.

mod dhcp;
mod directory;
mod dns;

use crate::address::INTERFACE;
use crate::error::Fault;
use crate::netlink::{interface, with_netlink};
use stacklab_model::{Family, Service};
use std::io;
use std::time::Duration;

/// The one name that DNS knows; `.test` is set aside by RFC 6761.
pub(super) const NAME: &str = "server.test";
/// Where the directory's entries are.
pub(super) const SUFFIX: &str = "cn=stacklab";
/// How many there are beside that one.
pub(super) const ENTRIES: u32 = 100;
/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The name of an entry of the directory.
pub(super) fn entry(number: u32) -> String {
    format!("user{}", number % ENTRIES)
}

/// Asks from the namespace that the calling thread is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    /// The link's interface, which addresses that hold on a link only are used with.
    interface: u32,
}

impl Asker {
    /// For the namespace of the calling thread.
    pub fn new() -> Result<Self, Fault> {
        let index = with_netlink(async |netlink| Ok(interface(&netlink, INTERFACE).await?.header.index))?;
        Ok(Asker { interface: index })
    }

    /// Sends a query over a family and waits for its answer; queries of several numbers ask for several things.
    ///
    /// # Errors
    /// Why there is no answer, or that it is none to this query.
    pub fn ask(&self, service: Service, family: Family, number: u32) -> io::Result<()> {
        match service {
            Service::Dns => dns::ask(family, number),
            Service::Dhcp => dhcp::ask(family, number, self.interface),
            Service::Directory => directory::ask(family, number),
        }
    }
}

/// An answer that is none to the query.
fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// That something holds of an answer.
fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(strange(what)) }
}
