//! Where a study's routed testbeds are built: on this kernel, or in a guest that supports what this kernel does not
//! support.

use crate::hosted::needs::{JOOL, lacks_support, list_kernel_needs};
use crate::image::{GET_QEMU, built, check_architecture, emulator, how_to_get, lacks_emulator};
use crate::{Image, no_image};
use stacklab_model::{LinkConfig, Links, Mechanism, RoutedKind, System, once_each};
use stacklab_testbed::kernel::memory::WatchesMemory;
use stacklab_testbed::mechanism::translate::jool_here;
use stacklab_testbed::{Ability, FLOWTABLES, FORWARDING, RoutedSpec, TestbedError, Translates, abilities};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Guests that can host testbeds, fastest first.
fn candidates() -> Vec<System> {
    let series = ["6.1", "6.12", "7.2", "5.10"].map(|series| System::Linux(series.to_owned()));
    [System::Uml].into_iter().chain(built()).chain(series).collect()
}

/// Where to build the testbeds of a study with routers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// `where-needed`: in a guest only if this kernel does not support what a mechanism needs.
    WhereNeeded,
    /// `any`: in the fastest guest that is installed here and supports what they need.
    Any,
    /// In this guest.
    Guest(System),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::WhereNeeded => f.write_str("where-needed"),
            Placement::Any => f.write_str("any"),
            Placement::Guest(system) => write!(f, "{system}"),
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "where-needed" => Ok(Placement::WhereNeeded),
            "any" => Ok(Placement::Any),
            system => match system.parse()? {
                holds @ (System::Uml | System::OwnUml(_) | System::Linux(_)) => Ok(Placement::Guest(holds)),
                other => {
                    Err(format!("{other} cannot host a testbed: expected uml, uml-NAME or linux-SERIES"))
                }
            },
        }
    }
}

/// Finds where the testbeds of a study can be built: on this kernel (`None`), or in a guest. If some hosts are
/// guests, only this kernel is possible, because a guest hosts whole testbeds. Starts nothing. An error says what is
/// missing here, which mechanism needs it, and how to get it.
pub fn find_placement(needs: &Requirements, placement: &Placement) -> Result<Option<System>, TestbedError> {
    let place = place(needs, placement)?;
    let containers = needs.rows.iter().find(|row| row.mechanism.publisher().is_some());
    if let (Some(guest), Some(row)) = (&place, containers) {
        return Err(TestbedError(format!(
            "{} needs a testbed on this kernel, where its host's own count proves each run, and this one would be in \
             {guest}: leave --in-vm out, or take out of the study what this kernel lacks{}",
            row.mechanism,
            needs.list_missing()
        )));
    }
    for spec in needs.specs(place.as_ref()) {
        spec.programs()?;
    }
    Ok(place)
}

fn place(needs: &Requirements, placement: &Placement) -> Result<Option<System>, TestbedError> {
    let missing = needs.missing_here();
    if !needs.guests().is_empty() {
        return needs.check_guests(&missing).map(|()| None);
    }
    let candidates = match placement {
        Placement::WhereNeeded if missing.is_empty() => return Ok(None),
        Placement::WhereNeeded | Placement::Any => candidates(),
        Placement::Guest(system) => vec![system.clone()],
    };
    let wanted = needs.of_kernel();
    if let Placement::Guest(guest) = placement {
        let unsupported = list_lacks(guest, &wanted);
        if !unsupported.is_empty() {
            let unsupported = Vec::from_iter(unsupported).join(", ");
            let other = choose_guest(wanted.contains(&JOOL));
            return Err(TestbedError(format!(
                "{guest} lacks features for the study ({unsupported}): {}, then --in-vm={other}",
                how_to_get(&other)
            )));
        }
    }
    for system in &candidates {
        if list_lacks(system, &wanted).is_empty() && router_image(system).is_ok() {
            return Ok(Some(system.clone()));
        }
    }
    let system = match placement {
        Placement::Guest(system) => system.clone(),
        Placement::WhereNeeded | Placement::Any => choose_guest(wanted.contains(&JOOL)),
    };
    let why: Vec<String> = missing.iter().map(|ability| needs.describe_missing(ability)).collect();
    let why = if why.is_empty() { "--in-vm asks for a guest".to_owned() } else { why.join("; ") };
    check_architecture().map_err(|error| TestbedError(format!("{why}; {error}")))?;
    if lacks_emulator(&system) && Image::find(&system).is_ok() {
        return Err(no_emulator(&system, &why));
    }
    Err(no_image(&system, format!("{why}; no installed guest supports it")))
}

fn list_lacks<'a>(system: &System, wanted: &[&'a str]) -> BTreeSet<&'a str> {
    wanted.iter().copied().filter(|need| lacks_support(system, need)).collect()
}

/// An error: the image of a guest is here, and QEMU is not.
fn no_emulator(system: &System, why: &str) -> TestbedError {
    TestbedError(format!(
        "{system} cannot run here: {why}; its image is here, but QEMU is not installed; get it with: {GET_QEMU}"
    ))
}

/// The guest that is here soonest of those that have what is needed.
fn choose_guest(needs_jool: bool) -> System {
    if needs_jool { System::OwnUml("full".to_owned()) } else { System::Linux("6.1".to_owned()) }
}

fn translator_on(system: &System, kind: &RoutedKind, forward_only: bool) -> Translates {
    static HERE: OnceLock<Option<String>> = OnceLock::new();
    let jool = match system {
        System::Namespace => HERE.get_or_init(|| jool_here().ok()).clone(),
        System::Uml | System::OwnUml(_) | System::Linux(_) => {
            Image::find(system).ok().and_then(|image| image.jool)
        }
        System::Gvisor | System::Smoltcp | System::Disk(_) | System::Localhost | System::Ssh(_) => None,
    };
    Translates::choose(kind.mechanism, jool, kind.translator, forward_only)
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
    /// Whether the memory that entries of tables take is measured.
    pub watches_memory: bool,
}

impl Requirements {
    /// The mechanisms between the routers, each once.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        once_each(self.rows.iter().map(|row| row.mechanism))
    }

    /// The specifications of its testbeds with their translators: on this kernel and its guests, or all in one guest.
    pub fn specs(&self, inside: Option<&System>) -> Vec<RoutedSpec> {
        let mut specs = Vec::new();
        for kind in &self.rows {
            let translates = kind
                .routers
                .0
                .each_ref()
                .map(|system| translator_on(inside.unwrap_or(system), kind, self.forward_only));
            let kind = kind.clone();
            let link_config = self.link_config.clone();
            let watches_memory = if self.watches_memory { WatchesMemory::Yes } else { WatchesMemory::No };
            specs.push(RoutedSpec { kind, translates, link_config, links: self.links, watches_memory });
        }
        specs
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
        if here.clone().next().is_some() {
            needs.push(FORWARDING);
        }
        needs.extend(here.flat_map(list_kernel_needs));
        needs
    }

    pub(crate) fn missing_here(&self) -> Vec<Ability> {
        let needs = self.of_kernel();
        abilities().into_iter().filter(|a| needs.contains(&a.name) && a.result.is_err()).collect()
    }

    /// What this kernel lacks, for the end of a sentence; empty if that is nothing.
    fn list_missing(&self) -> String {
        let missing = self.describe_all_missing();
        if missing.is_empty() { missing } else { format!(" ({missing})") }
    }

    /// Describes everything that this kernel lacks.
    pub fn describe_all_missing(&self) -> String {
        let missing: Vec<String> =
            self.missing_here().iter().map(|ability| self.describe_missing(ability)).collect();
        missing.join("; ")
    }

    pub(crate) fn describe_missing(&self, ability: &Ability) -> String {
        if ability.name == FORWARDING {
            return format!(
                "routers cannot forward packets here, because /proc/sys is read-only: {}",
                ability.remedy
            );
        }
        if ability.name == FLOWTABLES {
            return format!("flow_offload needs {}, which this kernel does not support", ability.name);
        }
        let users = self.rows.iter().filter(|row| list_kernel_needs(row).contains(&ability.name));
        let users: Vec<&str> = once_each(users.map(|row| row.mechanism.name()));
        let users = if users.is_empty() { ability.what_for.to_owned() } else { users.join(", ") };
        format!("{users} needs {}, which this kernel does not support", ability.name)
    }

    /// Advice to use other routers, if only the routers need what is missing.
    fn other_routers(&self, missing: &[Ability]) -> String {
        for ability in missing {
            if !self.rows.iter().any(|row| list_kernel_needs(row).contains(&ability.name)) {
                return String::new();
            }
        }
        let needs_jool = missing.iter().any(|ability| ability.name == JOOL);
        let router = choose_guest(needs_jool);
        format!("; or use guests that support it as routers: factors.router_os = [\"{router}\"]")
    }

    /// Checks that this kernel can have testbeds with guests, and that the guests can be hosts and routers.
    pub(crate) fn check_guests(&self, missing: &[Ability]) -> Result<(), TestbedError> {
        for row in &self.rows {
            for system in row.routers.guests() {
                let needs = list_kernel_needs(row);
                if let Some(need) = needs.into_iter().find(|need| lacks_support(system, need)) {
                    let router = choose_guest(need == JOOL);
                    return Err(TestbedError(format!(
                        "{system} as a router lacks features for a mechanism ({}: {need}): {}, then \
                         factors.router_os = [\"{router}\"]",
                        row.mechanism,
                        how_to_get(&router),
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
        // Older images have no modules.
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
    use stacklab_model::{Systems, Translator};

    fn list_needs(row: RoutedKind) -> Vec<&'static str> {
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
        Requirements {
            rows: vec![row],
            link_config,
            links: Links::default(),
            forward_only: true,
            watches_memory: false,
        }
        .of_kernel()
    }

    #[test]
    fn kernel_translator_is_needed_where_asked_for() {
        let nat64 = RoutedKind::of_namespaces(Mechanism::Nat64);
        let jool = RoutedKind { translator: Some(Translator::Jool), ..nat64.clone() };
        assert!(list_needs(jool).contains(&JOOL));
        for translator in [None, Some(Translator::Tayga)] {
            let needs = list_needs(RoutedKind { translator, ..nat64.clone() });
            assert!(needs.contains(&"tun") && !needs.contains(&JOOL));
        }
        // Jool is not part of Debian's kernels. A kernel that is not built yet will contain it.
        let own = System::OwnUml("of which there is no image".to_owned());
        assert!(lacks_support(&System::Uml, JOOL) && lacks_support(&System::Linux("6.1".to_owned()), JOOL));
        assert!(!lacks_support(&own, JOOL) && !lacks_support(&own, "wireguard"));
    }

    #[test]
    fn image_without_qemu_names_qemu_alone() {
        let error = no_emulator(&System::Linux("6.1".to_owned()), "6in4 needs sit").to_string();
        assert!(
            error
                .ends_with(&format!("its image is here, but QEMU is not installed; get it with: {GET_QEMU}"))
        );
        assert!(!error.contains("image get"), "{error}");
    }

    #[test]
    fn guest_router_needs_no_module_of_this_kernel() {
        for (routers, sit, bridge) in
            [("namespace", true, false), ("namespace -> uml", true, true), ("uml", false, true)]
        {
            let routers: Systems = routers.parse().unwrap();
            let needs = list_needs(RoutedKind { routers, ..RoutedKind::of_namespaces(Mechanism::SixInFour) });
            assert_eq!(needs.contains(&"sit"), sit, "{needs:?}");
            assert_eq!(needs.contains(&"bridge"), bridge, "{needs:?}");
        }
    }
}
