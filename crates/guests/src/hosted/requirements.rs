//! What a study's routed testbeds need from the kernels that they are built on, and whether these support it.

use crate::kind::vm::machine::emulator;
use crate::{Image, no_image};
use stacklab_model::{LinkConfig, Links, Mechanism, Method, RoutedKind, System, Translator, once_each};
use stacklab_testbed::mechanism::translate::jool_here;
use stacklab_testbed::{Ability, RoutedSpec, TestbedError, Translates, abilities};
use std::sync::OnceLock;

/// The name of the [`Ability`] that the routers' kernels need for a routed testbed. `None` if they need none.
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

/// The name of the ability for translation in the kernel.
pub(crate) const JOOL: &str = "jool";

/// Whether a guest's kernel does not support the ability. Debian's user-mode Linux does not have some modules. A
/// kernel that was built here does not support the options that were left out. Jool is only in kernels that were
/// built with it. For a user's disk image, this is only known when it is used.
pub(crate) fn is_unsupported(system: &System, need: &str) -> bool {
    let devices = Mechanism::devices();
    let device = devices.iter().find(|(_, device)| device.ability == need).map(|(_, device)| device);
    match system {
        // A kernel that is not built yet will have it.
        System::OwnUml(_) => Image::find(system).is_ok_and(|image| match device {
            Some(device) => image.lacks_options(device.options),
            None => need == JOOL && image.jool.is_none(),
        }),
        System::Uml | System::Linux(_) if need == JOOL => true,
        System::Uml => device.is_some_and(|device| !device.in_debian_uml),
        System::Linux(_) | System::Disk(_) => false,
        System::Namespace | System::Gvisor | System::Localhost | System::Ssh(_) => true,
    }
}

/// The translator for routers of a system: the requested one, or a choice ([`Translates::choose`]).
fn translator_on(system: &System, asked: Option<Translator>, forward_only: bool) -> Translates {
    // Every row needs the result; test this kernel only once.
    static HERE: OnceLock<Option<String>> = OnceLock::new();
    let jool = || match system {
        System::Namespace => HERE.get_or_init(|| jool_here().ok()).clone(),
        System::Uml | System::OwnUml(_) | System::Linux(_) => Image::find(system).ok()?.jool,
        System::Gvisor | System::Disk(_) | System::Localhost | System::Ssh(_) => None,
    };
    Translates::choose(jool(), asked, forward_only)
}

/// The abilities that this kernel needs to run a host as a guest.
const TAPPED: [&str; 2] = ["bridge", "tun"];

/// The requirements of a study's routed testbeds.
#[derive(Debug, Clone)]
pub struct Requirements {
    /// The kinds of testbeds.
    pub rows: Vec<RoutedKind>,
    /// The settings that its links share.
    pub link_config: LinkConfig,
    /// The settings of each link.
    pub links: Links,
    /// Whether all measured connections start at the sender.
    pub forward_only: bool,
}

impl Requirements {
    /// The mechanisms between the routers, each once.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        once_each(self.rows.iter().map(|row| row.mechanism))
    }

    /// The specifications of its testbeds with their translators: on this kernel and its guests, or all in one guest.
    pub fn specs(&self, inside: Option<&System>) -> Vec<RoutedSpec> {
        let spec = |kind: &RoutedKind| {
            let translates =
                kind.routers.0.each_ref().map(|system| {
                    translator_on(inside.unwrap_or(system), kind.translator, self.forward_only)
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

    /// The guest systems on this kernel, each once.
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
        // A router in a guest uses the guest's kernel.
        let here = self.rows.iter().filter(|row| row.routers.0.contains(&System::Namespace));
        needs.extend(here.filter_map(kernel_need));
        needs
    }

    /// The required abilities that this kernel does not support, with the attempted step and the kernel's answer.
    pub(crate) fn missing_here(&self) -> Vec<Ability> {
        let needs = self.of_kernel();
        abilities().into_iter().filter(|a| needs.contains(&a.name) && a.result.is_err()).collect()
    }

    /// Describes everything that this kernel lacks.
    pub fn describe_all_missing(&self) -> String {
        let missing: Vec<String> =
            self.missing_here().iter().map(|ability| self.describe_missing(ability)).collect();
        missing.join("; ")
    }

    /// Describes an ability that this kernel does not have: what needs it, and what it is.
    pub(crate) fn describe_missing(&self, ability: &Ability) -> String {
        let users = self.rows.iter().filter(|row| kernel_need(row) == Some(ability.name));
        let users: Vec<&str> = once_each(users.map(|row| row.mechanism.name()));
        let users = if users.is_empty() { ability.what_for.to_owned() } else { users.join(", ") };
        format!("{users} needs {}, which this kernel does not support", ability.name)
    }

    /// Advice to use other routers, if only the routers need what is missing.
    fn other_routers(&self, missing: &[Ability]) -> String {
        let theirs = |ability: &Ability| self.rows.iter().any(|row| kernel_need(row) == Some(ability.name));
        if !missing.iter().all(theirs) {
            return String::new();
        }
        let any_unsupported = missing.iter().any(|ability| is_unsupported(&System::Uml, ability.name));
        let router = if any_unsupported { "uml-full" } else { "uml" };
        format!("; or use guests that support it as routers: factors.router_os = [\"{router}\"]")
    }

    /// Checks that this kernel can have testbeds with guests, and that the guests can be hosts and routers.
    pub(crate) fn check_guests(&self, missing: &[Ability]) -> Result<(), TestbedError> {
        for row in &self.rows {
            for system in row.routers.guests() {
                if let Some(need) = kernel_need(row).filter(|need| is_unsupported(system, need)) {
                    return Err(TestbedError(format!(
                        "{system} as a router lacks features for a mechanism ({}: {need}): build one that has them \
                         (stacklab image build uml-full, then factors.router_os = [\"uml-full\"]), or use linux-6.1, \
                         which has all but jool",
                        row.mechanism
                    )));
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
        Err(TestbedError(format!(
            "testbeds with guests as hosts ({}) also use this kernel: {}; to add it: {}{}; or remove factors.os and \
             factors.router_os, so that the whole testbed can be built in one guest",
            guests.join(", "),
            said.join("; "),
            remedies.join("; "),
            self.other_routers(missing)
        )))
    }
}

/// Checks that a system can be started here and can be, or host, a router.
pub(crate) fn router_image(system: &System) -> Result<(), TestbedError> {
    if !matches!(system, System::Disk(_)) {
        let image = Image::find(system)?;
        // Images that were fetched before guests could host testbeds have no modules.
        if *system == System::Uml && !image.file("modules.cpio").exists() {
            let reason = "its image is outdated: it has no tunnel modules".to_owned();
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
        // Jool is not part of Debian's kernels. A kernel that is not built yet will contain it.
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
