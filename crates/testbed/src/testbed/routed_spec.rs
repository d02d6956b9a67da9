//! The specification of a routed testbed.

use crate::kernel::memory::WatchesMemory;
use crate::mechanism::esp::ip_program;
use crate::mechanism::nat::nft_program;
use crate::mechanism::publish::publisher_program;
use crate::mechanism::translate::tayga_program;
use crate::mechanism::translates_at;
use crate::{Site, TestbedError, Translates};
use stacklab_model::{Header, LinkConfig, Links, Mechanism, Publisher, RoutedKind, Translator};
use std::path::PathBuf;

/// The specification of a routed testbed to build.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutedSpec {
    /// The mechanism between the routers, and the systems of the hosts.
    pub kind: RoutedKind,
    /// The translator of each router, if the mechanism translates; the sender's first.
    pub translates: [Translates; 2],
    /// The settings that its links share.
    pub link_config: LinkConfig,
    /// The settings of each link.
    pub links: Links,
    /// Whether the memory that entries of tables take is watched while they are added.
    pub watches_memory: WatchesMemory,
}

impl RoutedSpec {
    /// Four namespaces with equal links, and programs as translators.
    pub fn of_namespaces(mechanism: Mechanism, link_config: &LinkConfig) -> Self {
        let tayga = Translates { by: Translator::Tayga, version: None };
        let kind = RoutedKind::of_namespaces(mechanism);
        let links = Links::default();
        RoutedSpec {
            kind,
            translates: [tayga.clone(), tayga],
            link_config: link_config.clone(),
            links,
            watches_memory: WatchesMemory::No,
        }
    }

    /// The translators, the sender's router first. Empty if the mechanism does not translate.
    pub fn translators(&self) -> Vec<&Translates> {
        let sites = [Site::Near, Site::Far].into_iter().zip(&self.translates);
        let translating = sites.filter(|(site, _)| translates_at(self.kind.mechanism, *site));
        translating.map(|(_, translates)| translates).collect()
    }

    /// Whether a router keeps connection state: connections start at the sender only, and their ports may change.
    pub fn keeps_state(&self) -> bool {
        let mechanism = self.kind.mechanism;
        mechanism.begins_at_sender() || self.translates[1].by.keeps_state(mechanism)
    }

    /// Whether each router translates with tayga, the sender's first.
    pub fn tayga_routers(&self) -> [bool; 2] {
        [Site::Near, Site::Far].map(|site| {
            let by = self.translates[usize::from(site == Site::Far)].by;
            by == Translator::Tayga && translates_at(self.kind.mechanism, site)
        })
    }

    fn runs_tayga(&self) -> bool {
        self.tayga_routers().contains(&true)
    }

    /// Whether a router has rules of nftables.
    fn uses_nftables(&self) -> bool {
        let mechanism = self.kind.mechanism;
        mechanism.changes_source() || mechanism.publisher() == Some(Publisher::Dnat) || self.kind.filters()
    }

    /// The programs that its routers run beside this one. The error names the one that is missing.
    pub fn programs(&self) -> Result<Vec<PathBuf>, TestbedError> {
        let mut programs = Vec::new();
        if self.runs_tayga() {
            programs.push(tayga_program()?);
        }
        if let Some(publisher) = self.kind.mechanism.publisher() {
            programs.extend(publisher_program(publisher)?);
        }
        if self.uses_nftables() {
            programs.push(nft_program()?);
        }
        if self.kind.mechanism.tunnel().is_some_and(|tunnel| tunnel.headers.contains(&Header::Esp)) {
            programs.push(ip_program()?);
        }
        Ok(programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_translates_is_told_of_the_routers_that_do() {
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
        let jool = Translates { by: Translator::Jool, version: Some("4.1.13".to_owned()) };
        for (mechanism, jool_place, names, keeps_state, runs_tayga) in [
            (Mechanism::Native, 1, "", false, false),
            (Mechanism::Nat64, 1, "Jool 4.1.13", true, false),
            (Mechanism::Nat64, 0, "tayga", false, true),
            (Mechanism::Siit, 0, "Jool 4.1.13", false, false),
            (Mechanism::Xlat464, 1, "tayga, Jool 4.1.13", true, true),
            (Mechanism::Dnat, 1, "", true, false),
            (Mechanism::Xlat464, 0, "Jool 4.1.13, tayga", false, true),
        ] {
            let mut spec = RoutedSpec::of_namespaces(mechanism, &link_config);
            spec.translates[jool_place] = jool.clone();
            let translators: Vec<String> = spec.translators().iter().map(ToString::to_string).collect();
            assert_eq!(translators.join(", "), names, "{mechanism}");
            assert_eq!(spec.keeps_state(), keeps_state, "{mechanism}");
            assert_eq!(spec.runs_tayga(), runs_tayga, "{mechanism}");
        }
    }
}
