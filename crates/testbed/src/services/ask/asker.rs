//! One query to a service.

use crate::error::Fault;
use crate::kernel::netlink::{interface, with_netlink};
use crate::link::addressing::INTERFACE;
use crate::services::ask::{dhcp, directory, dns};
use stacklab_model::{Family, Service};
use std::io;

/// Asks from the namespace that the calling thread is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
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
