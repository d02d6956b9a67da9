//! The specification of a routed testbed.

use crate::mechanism::esp::ip_program;
use crate::mechanism::nat::nft_program;
use crate::mechanism::translate::tayga_program;
use crate::mechanism::translates_at;
use crate::{Site, TestbedError, Translates};
use stacklab_model::{LinkConfig, Links, Mechanism, RoutedKind, Setup, Translator};
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
}

impl RoutedSpec {
    /// Four namespaces with equal links, and programs as translators.
    pub fn of_namespaces(mechanism: Mechanism, link_config: &LinkConfig) -> Self {
        let tayga = Translates { by: Translator::Tayga, version: None };
        let kind = RoutedKind::of_namespaces(mechanism);
        let links = Links::default();
        RoutedSpec { kind, translates: [tayga.clone(), tayga], link_config: link_config.clone(), links }
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
        mechanism.changes_source() || self.translates[1].by.keeps_state(mechanism)
    }

    /// Whether a router translates with tayga.
    pub fn runs_tayga(&self) -> bool {
        self.translators().iter().any(|translates| translates.by == Translator::Tayga)
    }

    /// The programs that its routers run beside this one. The error names the one that is missing.
    pub fn programs(&self) -> Result<Vec<PathBuf>, TestbedError> {
        let mut programs = Vec::new();
        if self.runs_tayga() {
            programs.push(tayga_program()?);
        }
        if self.kind.mechanism.changes_source() || self.kind.filters() {
            programs.push(nft_program()?);
        }
        if self.kind.mechanism.tunnel().is_some_and(|tunnel| tunnel.device.setup == Setup::Esp) {
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
        let said = |mechanism, far_is_jool: bool| {
            let plain = RoutedSpec::of_namespaces(mechanism, &link_config);
            let [near, far] = plain.translates.clone();
            let [near, far] = if far_is_jool { [near, jool.clone()] } else { [jool.clone(), far] };
            let spec = RoutedSpec { translates: [near, far], ..plain };
            let names: Vec<String> = spec.translators().iter().map(ToString::to_string).collect();
            (names.join(", "), spec.keeps_state(), spec.runs_tayga())
        };
        let text = str::to_owned;
        assert_eq!(said(Mechanism::Native, true), (String::new(), false, false));
        assert_eq!(said(Mechanism::Nat64, true), (text("Jool 4.1.13"), true, false));
        assert_eq!(said(Mechanism::Nat64, false), (text("tayga"), false, true));
        assert_eq!(said(Mechanism::Siit, false), (text("Jool 4.1.13"), false, false));
        assert_eq!(said(Mechanism::Xlat464, true), (text("tayga, Jool 4.1.13"), true, true));
        assert_eq!(said(Mechanism::Xlat464, false), (text("Jool 4.1.13, tayga"), false, true));
    }
}
