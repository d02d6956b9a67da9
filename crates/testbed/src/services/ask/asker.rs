//! One query to a service.

use crate::error::Fault;
use crate::kernel::netlink::{interface, with_netlink};
use crate::link::addressing::INTERFACE;
use crate::services::ask::{dhcp, directory, dns};
use stacklab_model::{Family, Service};
use std::io;

/// Sends queries from the calling thread's namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    /// The index of the link's interface, for link-local addresses.
    interface: u32,
}

impl Asker {
    /// Creates an asker for the calling thread's namespace.
    pub(crate) fn new() -> Result<Self, Fault> {
        let index = with_netlink(async |netlink| Ok(interface(&netlink, INTERFACE).await?.header.index))?;
        Ok(Asker { interface: index })
    }

    /// Sends a query over a family and waits for its answer. The number selects what the query asks for.
    ///
    /// # Errors
    /// There is no answer, or it does not match the query.
    pub(crate) fn ask(&self, service: Service, family: Family, number: u32) -> io::Result<()> {
        match service {
            Service::Dns => dns::ask(family, number),
            Service::Dhcp => dhcp::ask(family, number, self.interface),
            Service::Directory => directory::ask(family, number),
        }
    }
}
