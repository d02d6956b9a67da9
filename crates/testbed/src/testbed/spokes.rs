//! The customers after the first: each has a link from the sender, a near router, and a middle link to the far router.

use crate::addressing::{INTERFACE, MIDDLE, Site, customer_hardware_address};
use crate::kernel::memory::MemoryWatch;
use crate::kernel::netlink::wait_until_quiet;
use crate::link::{ClientNetwork, configure_router};
use crate::testbed::network::{HostChain, Link, prepare_host};
use crate::{CustomerId, Host, Node, RoutedSpec, Router, Streams, TestbedError};
use stacklab_model::Family;
use std::ffi::OsStr;
use std::path::Path;

/// The sender's and the far router's places in the chain of the first customer.
const SENDER: usize = 0;
const NEAR_ROUTER: usize = 1;
const FAR_ROUTER: usize = 2;

/// A further customer's near router.
#[derive(Debug)]
pub(crate) struct Spoke {
    pub customer: CustomerId,
    pub router: Host,
    links: [Link; 2],
}

impl Spoke {
    /// Starts the routers of all customers but the first, and creates their links: not up, and without addresses.
    pub(crate) fn build_all(
        spec: &RoutedSpec,
        chain: &HostChain<4>,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Vec<Self>, TestbedError> {
        let mut spokes = Vec::new();
        for customer in CustomerId::list(spec.kind.customers).into_iter().skip(1) {
            let gateways = [Family::Ipv4, Family::Ipv6]
                .map(|family| Site::Near.gateway(customer, spec.kind.mechanism, family));
            let node = Node::CustomerRouter(customer);
            let mut router = Host::start(node, gateways, program, args, chain.processors_of(NEAR_ROUTER))?;
            prepare_host(&mut router, true)?;
            let links = [build_near_link(spec, customer)?, build_middle_link(spec, customer)?];
            let spoke = Spoke { customer, router, links };
            for (link, hosts) in spoke.links.iter().zip(spoke.list_ends(chain)) {
                link.create(hosts, spec.link_config.offloads)?;
                link.raise(hosts)?;
            }
            spokes.push(spoke);
        }
        Ok(spokes)
    }

    /// The hosts at the ends of both links.
    fn list_ends<'a>(&'a self, chain: &'a HostChain<4>) -> [[&'a Host; 2]; 2] {
        [[&chain.hosts[SENDER], &self.router], [&self.router, &chain.hosts[FAR_ROUTER]]]
    }

    /// Configures the router as the first customer's, and the sender's link to it.
    pub(crate) fn configure(&self, sender: &Host, near: &Router) -> Result<(), TestbedError> {
        let router = Router { customer: self.customer, ..*near };
        let Router { site, customer, mechanism, .. } = router;
        sender.inside(|| ClientNetwork { site, customer, mechanism }.configure_client())?;
        self.router.inside(|| configure_router(&router, &mut MemoryWatch::default()))
    }

    pub(crate) fn wait_until_quiet(&self, sender: &Host) -> Result<(), TestbedError> {
        let addresses = self.router.addresses();
        self.router.inside(|| wait_until_quiet(INTERFACE, &addresses))?;
        sender.inside(|| wait_until_quiet(self.customer.uplink(), &[]))
    }

    pub(crate) fn meet(&mut self) -> Result<Streams, TestbedError> {
        self.router.meet()
    }
}

fn build_near_link(spec: &RoutedSpec, customer: CustomerId) -> Result<Link, TestbedError> {
    let interfaces = [customer.uplink(), INTERFACE];
    let hardware =
        [Node::Sender, Node::Router1].map(|node| customer_hardware_address(customer, node, INTERFACE));
    Link::of_path(spec.links.near, &spec.link_config, interfaces, hardware)
}

fn build_middle_link(spec: &RoutedSpec, customer: CustomerId) -> Result<Link, TestbedError> {
    let interfaces = [MIDDLE, customer.middle()];
    let hardware =
        [Node::Router1, Node::Router2].map(|node| customer_hardware_address(customer, node, MIDDLE));
    Link::of_path(spec.links.middle, &spec.link_config, interfaces, hardware)
}
