//! Checks, once a routed testbed is built, that its routers do with packets what they are for.

use crate::mechanism::conntrack::count_connection_packets;
use crate::mechanism::rules::count_packets;
use crate::path_ends::ends_of;
use crate::testbed::destination_check::check_destinations;
use crate::testbed::offload_check::check_offload;
use crate::testbed::path_check::check_path;
use crate::testbed::same_port::check_customers;
use crate::{AtHost, Attempt, CustomerId, Routed, RoutedSpec, TestbedError};
use stacklab_model::{Family, FlowOffload, Tracking};
use std::time::Instant;

impl Routed {
    /// Checks what the routers do with packets. `inside`: they are guests, whose nftables only they see.
    pub(super) fn check_forwarding(&mut self, spec: &RoutedSpec, inside: bool) -> Result<(), TestbedError> {
        let mtu = spec.link_config.mtu;
        if !self.mechanism.reports_path_mtu() {
            self.fix_path_mtus(mtu)?;
        }
        self.check_paths(mtu)?;
        self.check_publishing()?;
        if spec.kind.rules.count > 0 && !inside {
            self.check_rules()?;
        }
        if spec.kind.tables.destinations > 1 {
            for check in &self.path_checks {
                let path = self.path_of(check.customer);
                check_destinations(&path, self.mechanism, check.family, spec.kind.tables.destinations)?;
            }
        }
        if spec.kind.tables.tracking != Tracking::Off && !inside {
            self.check_tracking()?;
        }
        if spec.kind.tables.offload == FlowOffload::On && !inside {
            for check in &self.path_checks {
                check_offload(&self.path_of(check.customer), self.mechanism, check.family)?;
            }
        }
        Ok(())
    }

    fn check_paths(&mut self, mtu: u32) -> Result<(), TestbedError> {
        let customers = self.spokes.len() as u32 + 1;
        for family in Family::ALL {
            for customer in CustomerId::list(customers) {
                let Some(ends) = ends_of(customer, self.mechanism, *family) else { continue };
                let check = check_path(&self.path_of(customer), self.mechanism, *family, &ends, mtu);
                let check = check.map_err(|error| self.cause_of(error, *family))?;
                self.path_checks.push(check);
            }
            if customers > 1 {
                let [sender, _, _, receiver] = &self.network.hosts;
                check_customers([sender, receiver], self.mechanism, *family, customers)?;
            }
        }
        self.discovered = Instant::now();
        Ok(())
    }

    /// Whether what brings packets from a host to its container carries each family, and counts it.
    fn check_publishing(&self) -> Result<(), TestbedError> {
        let Some(publishing) = &self.publishing else { return Ok(()) };
        for check in &self.path_checks {
            publishing.check(&self.path_of(check.customer), self.mechanism, check.family)?;
        }
        Ok(())
    }

    /// Whether what crossed the near router was compared with all rules of its firewall.
    fn check_rules(&self) -> Result<(), TestbedError> {
        for check in &self.path_checks {
            let [_, router, ..] = self.path_of(check.customer).hosts;
            if router.inside(|| count_packets(check.family))? == 0 {
                let error = format!("no {} packet has passed all rules of its firewall", check.family);
                return Err::<(), _>(error).attempt("check the firewall").at(router.node());
            }
        }
        Ok(())
    }

    /// Whether the near router tracked what crossed it.
    fn check_tracking(&self) -> Result<(), TestbedError> {
        for check in &self.path_checks {
            let [_, router, ..] = self.path_of(check.customer).hosts;
            if router.inside(|| count_connection_packets(check.family))? == 0 {
                let error = format!("no {} packet has been tracked", check.family);
                return Err::<(), _>(error).attempt("check connection tracking").at(router.node());
            }
        }
        Ok(())
    }
}
