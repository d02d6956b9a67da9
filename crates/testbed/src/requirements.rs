//! What a study's routed testbeds need of the kernels that they are built on, and whether those support it.

use crate::error::TestbedError;
use crate::host::vm::qemu::emulator;
use crate::image::installed::{Image, no_image};
use crate::kernel::capability::{Ability, abilities};
use crate::mechanism::translate::Translates;
use crate::testbed::spec::RoutedSpec;
use stacklab_model::{LinkConfig, Links, Mechanism, Method, RoutedKind, System, Translator, once_each};

/// What a routed testbed needs of its routers' kernels, by the name of its [`Ability`]; `None` where it needs nothing.
pub(crate) fn kernel_need(kind: &RoutedKind) -> Option<&'static str> {
    match &kind.mechanism.definition().method {
        Method::Forwarding => None,
        Method::Tunnel(tunnel) => Some(tunnel.device.ability),
        Method::Translation(_) => Some(match kind.translator {
            Some(Translator::Jool) => JOOL,
            Some(Translator::Tayga) | None => "tun",
        }),
    }
}

/// Translators in the kernel, as an ability of it.
pub(crate) const JOOL: &str = "jool";

/// Whether a guest's kernel does not support what is needed. Debian's user-mode Linux lacks some modules, and one that was built
/// here the options that it was built without. Jool is in the kernels only that it was built into. Of a disk image of the user's
/// own it shows when it is used.
pub(crate) fn is_unsupported(system: &System, need: &str) -> bool {
    let devices = Mechanism::devices();
    let device = devices.iter().find(|(_, device)| device.ability == need).map(|(_, device)| device);
    match system {
        // One that is still to be built has it.
        System::OwnUml(_) => Image::find(system).is_ok_and(|image| match device {
            Some(device) => image.lacks_options(device.options),
            None => need == JOOL && image.jool.is_none(),
        }),
        System::Uml | System::Linux(_) if need == JOOL => true,
        System::Uml => device.is_some_and(|device| !device.in_debian_uml),
        System::Linux(_) | System::Disk(_) => false,
        System::Namespace | System::Gvisor | System::Here | System::Ssh(_) => true,
    }
}

/// What a host that is a guest needs of this kernel.
const TAPPED: [&str; 2] = ["bridge", "tun"];

/// What a study's routed testbeds need.
#[derive(Debug, Clone)]
pub struct Requirements {
    /// The kinds of testbeds.
    pub rows: Vec<RoutedKind>,
    /// What its links have in common.
    pub link_config: LinkConfig,
    /// What each link has of its own.
    pub links: Links,
    /// Whether all that is measured begins at the sender.
    pub forward_only: bool,
}

impl Requirements {
    /// How packets cross between the routers: each mechanism once.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        once_each(self.rows.iter().map(|row| row.mechanism))
    }

    /// Its testbeds with what translates in them, on this kernel and in guests of it, or all inside one guest.
    pub fn specs(&self, inside: Option<&System>) -> Vec<RoutedSpec> {
        let spec = |kind: &RoutedKind| {
            let translates =
                kind.routers.0.each_ref().map(|system| {
                    Translates::on(inside.unwrap_or(system), kind.translator, self.forward_only)
                });
            RoutedSpec {
                kind: kind.clone(),
                translates,
                link_config: self.link_config.clone(),
                links: self.links,
            }
        };
        self.rows.iter().map(spec).collect()
    }

    /// What hosts run that are guests of this kernel's: each system once.
    pub fn guests(&self) -> Vec<&System> {
        once_each(self.rows.iter().flat_map(|row| row.clients.guests().chain(row.routers.guests())))
    }

    pub(crate) fn of_kernel(&self) -> Vec<&'static str> {
        let mut needs = vec!["network namespace", "ipv6", "veth"];
        if !self.guests().is_empty() {
            needs.extend(TAPPED);
        }
        if self.link_config.rate.is_some() {
            needs.push("tbf");
        }
        if self.links.all().iter().any(|(_, link)| link.impairs()) {
            needs.push("netem");
        }
        // A router that is a guest has a kernel of its own for it.
        let here = self.rows.iter().filter(|row| row.routers.0.contains(&System::Namespace));
        needs.extend(here.filter_map(kernel_need));
        needs
    }

    /// What this kernel does not support of it: what was tried, and the answer.
    pub(crate) fn missing_here(&self) -> Vec<Ability> {
        let needs = self.of_kernel();
        abilities().into_iter().filter(|a| needs.contains(&a.name) && a.result.is_err()).collect()
    }

    /// What this kernel has not, in words: what needs it, and what it is.
    pub(crate) fn describe_missing(&self, ability: &Ability) -> String {
        let users = self.rows.iter().filter(|row| kernel_need(row) == Some(ability.name));
        let users: Vec<&str> = once_each(users.map(|row| row.mechanism.name()));
        let users = if users.is_empty() { ability.what_for.to_owned() } else { users.join(", ") };
        format!("{users} needs {}, which this kernel has not", ability.name)
    }

    /// The advice to have other routers, where what is missing here is all theirs.
    fn other_routers(&self, missing: &[Ability]) -> String {
        let theirs = |ability: &Ability| self.rows.iter().any(|row| kernel_need(row) == Some(ability.name));
        if !missing.iter().all(theirs) {
            return String::new();
        }
        let any_unsupported = missing.iter().any(|ability| is_unsupported(&System::Uml, ability.name));
        let router = if any_unsupported { "uml-full" } else { "uml" };
        format!("; or let the routers be guests that have it: factors.routers = [\"{router}\"]")
    }

    /// Checks that testbeds can be on this kernel, some of whose hosts are guests of it, and that the guests have images and what
    /// they need as routers.
    pub(crate) fn check_guests(&self, missing: &[Ability]) -> Result<(), TestbedError> {
        for row in &self.rows {
            for system in row.routers.guests() {
                if let Some(need) = kernel_need(row).filter(|need| is_unsupported(system, need)) {
                    let unsupported = format!("{}: {need}", row.mechanism);
                    return Err(TestbedError::RouterUnsupported { router: system.clone(), unsupported });
                }
            }
        }
        if missing.is_empty() {
            let routers = once_each(self.rows.iter().flat_map(|row| row.routers.guests()));
            routers.into_iter().try_for_each(router_image)?;
            return self.guests().into_iter().try_for_each(|system| match system {
                System::Disk(_) => Ok(()),
                system => Image::find(system).map(drop),
            });
        }
        let guests: Vec<String> = self.guests().into_iter().map(ToString::to_string).collect();
        let said: Vec<String> = missing.iter().map(|ability| self.describe_missing(ability)).collect();
        let remedies: Vec<&str> = missing.iter().map(|ability| ability.remedy).collect();
        Err(TestbedError::Guests {
            guests: guests.join(", "),
            missing: said.join("; "),
            remedy: remedies.join("; ") + &self.other_routers(missing),
        })
    }
}

/// Checks that a system can be started here that has routers in it or is one.
pub(crate) fn router_image(system: &System) -> Result<(), TestbedError> {
    if !matches!(system, System::Disk(_)) {
        let image = Image::find(system)?;
        // Images that were fetched before there were testbeds inside have no modules.
        if *system == System::Uml && !image.file("modules.cpio").exists() {
            let reason = "its image here is an old one, without the modules of tunnels".to_owned();
            return Err(no_image(system, reason));
        }
    }
    if system.is_uml() { Ok(()) } else { emulator().map(drop) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Systems;

    #[test]
    fn a_translator_in_the_kernel_is_needed_where_it_is_asked_for() {
        let needs = |translator| {
            let row = RoutedKind { translator, ..RoutedKind::of_namespaces(Mechanism::Nat64) };
            let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
            Requirements { rows: vec![row], link_config, links: Links::default(), forward_only: true }
                .of_kernel()
        };
        assert!(needs(Some(Translator::Jool)).contains(&JOOL));
        for other in [None, Some(Translator::Tayga)] {
            assert!(needs(other).contains(&"tun") && !needs(other).contains(&JOOL));
        }
        // It is no part of Debian's kernels, and of one that is still to be built.
        let own = System::OwnUml("of which there is no image".to_owned());
        assert!(is_unsupported(&System::Uml, JOOL) && is_unsupported(&System::Linux("6.1".to_owned()), JOOL));
        assert!(!is_unsupported(&own, JOOL) && !is_unsupported(&own, "wireguard"));
    }

    #[test]
    fn a_router_that_is_a_guest_needs_no_module_of_this_kernel() {
        let needs = |routers: &str| {
            let routers: Systems = routers.parse().unwrap();
            let row = RoutedKind { routers, ..RoutedKind::of_namespaces(Mechanism::SixInFour) };
            let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
            Requirements { rows: vec![row], link_config, links: Links::default(), forward_only: true }
                .of_kernel()
        };
        let has = |needs: &[&str], one: &str| needs.contains(&one);
        let (plain, mixed, guests) = (needs("namespace"), needs("namespace -> uml"), needs("uml"));
        assert!(has(&plain, "sit") && !has(&plain, "bridge"), "{plain:?}");
        assert!(has(&mixed, "sit") && has(&mixed, "bridge"), "{mixed:?}");
        assert!(!has(&guests, "sit") && has(&guests, "bridge"), "{guests:?}");
    }
}
