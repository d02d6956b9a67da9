//! Where testbeds of routers can be built: on this kernel, or inside a guest that has what this kernel lacks.

use crate::ability::{Ability, abilities};
use crate::error::{Attempt, Fault, TestbedError};
use crate::find::program_in_path;
use crate::folder::Folder;
use crate::host::{Guest, Place, Running, Streams};
use crate::image::{Image, built};
use crate::mechanism::translate::{Translates, tayga};
use crate::mux;
use crate::part::{Greeting, LabPart, Part};
use crate::prepare::prepare;
use crate::qemu::emulator;
use crate::routed::{Carried, RowPlan};
use stacklab_model::{
    LinkConfig, Links, Mechanism, Method, RowKind, System, Translator, UnknownSystem, once_each,
};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// What of its routers' kernels a row needs, by the name of its [`Ability`].
fn kernel_need(row: &RowKind) -> Option<&'static str> {
    match &row.mechanism.definition().method {
        Method::Forwarding => None,
        Method::Tunnel(tunnel) => Some(tunnel.device.ability),
        Method::Translation(_) => Some(match row.translator {
            Some(Translator::Jool) => JOOL,
            Some(Translator::Tayga) | None => "tun",
        }),
    }
}

/// Translators in the kernel, as an ability of it.
const JOOL: &str = "jool";

/// What the guests' kernels lack of that: user-mode Linux as Debian builds it some, one that was built here what it was built
/// without, and what is no part of a kernel all but those that it was built into; the others nothing. Of a disk image of the
/// user's own it shows when it is used.
fn lacks(system: &System, need: &str) -> bool {
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

/// What a study's testbeds of routers need.
#[derive(Debug, Clone)]
pub struct Needs {
    /// Its rows of hosts.
    pub rows: Vec<RowKind>,
    /// What its links have in common.
    pub link_config: LinkConfig,
    /// What each has for itself.
    pub links: Links,
    /// Whether all that is measured begins at the sender.
    pub forward_only: bool,
}

impl Needs {
    /// How packets cross between the routers: each mechanism once.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        once_each(self.rows.iter().map(|row| row.mechanism))
    }

    /// Its rows with what translates in them, on this kernel and in guests of it, or all inside one guest.
    pub fn plans(&self, inside: Option<&System>) -> Vec<RowPlan> {
        let plan = |kind: &RowKind| {
            let translates =
                kind.routers.0.each_ref().map(|system| {
                    Translates::on(inside.unwrap_or(system), kind.translator, self.forward_only)
                });
            RowPlan {
                kind: kind.clone(),
                translates,
                link_config: self.link_config.clone(),
                links: self.links,
            }
        };
        self.rows.iter().map(plan).collect()
    }

    /// What hosts run that are guests of this kernel's: each system once.
    pub fn guests(&self) -> Vec<&System> {
        once_each(self.rows.iter().flat_map(|row| row.clients.guests().chain(row.routers.guests())))
    }

    fn of_kernel(&self) -> Vec<&'static str> {
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

    /// What this kernel has not of it: what was tried, and the answer.
    fn missing_here(&self) -> Vec<Ability> {
        let needs = self.of_kernel();
        abilities().into_iter().filter(|a| needs.contains(&a.name) && a.result.is_err()).collect()
    }

    /// What this kernel has not, in words: what needs it, and what it is.
    fn said(&self, ability: &Ability) -> String {
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
        let lacks = missing.iter().any(|ability| lacks(&System::Uml, ability.name));
        let router = if lacks { "uml-full" } else { "uml" };
        format!("; or let the routers be guests that have it: factors.routers = [\"{router}\"]")
    }

    /// Sees that rows can be on this kernel, some of whose hosts are guests of it, and that the guests have images and what
    /// they need as routers.
    fn check_guests(&self, missing: &[Ability]) -> Result<(), TestbedError> {
        for row in &self.rows {
            for system in row.routers.guests() {
                if let Some(need) = kernel_need(row).filter(|need| lacks(system, need)) {
                    let lacking = format!("{}: {need}", row.mechanism);
                    return Err(TestbedError::RouterLacks { router: system.clone(), lacking });
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
        let said: Vec<String> = missing.iter().map(|ability| self.said(ability)).collect();
        let remedies: Vec<&str> = missing.iter().map(|ability| ability.remedy).collect();
        Err(TestbedError::Guests {
            guests: guests.join(", "),
            missing: said.join("; "),
            remedy: remedies.join("; ") + &self.other_routers(missing),
        })
    }
}

/// Guests that can hold a lab, the fastest first.
fn candidates() -> Vec<System> {
    let series = ["6.1", "6.12", "7.2", "5.10"].map(|series| System::Linux(series.to_owned()));
    [System::Uml].into_iter().chain(built()).chain(series).collect()
}

/// Where the testbeds of a study with routers are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inside {
    /// `where-needed`: inside a guest only where this kernel lacks what a mechanism needs.
    WhereNeeded,
    /// `any`: inside a guest, the fastest that is here and has what they need.
    Any,
    /// Inside this guest.
    Guest(System),
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inside::WhereNeeded => f.write_str("where-needed"),
            Inside::Any => f.write_str("any"),
            Inside::Guest(system) => write!(f, "{system}"),
        }
    }
}

impl FromStr for Inside {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "where-needed" => Ok(Inside::WhereNeeded),
            "any" => Ok(Inside::Any),
            system => match system.parse().map_err(|error: UnknownSystem| error.to_string())? {
                holds @ (System::Uml | System::OwnUml(_) | System::Linux(_)) => Ok(Inside::Guest(holds)),
                other => Err(format!("{other} holds no testbed: expected uml, uml-NAME or linux-SERIES")),
            },
        }
    }
}

/// Where the testbeds of a study can be: on this kernel (`None`), or in a guest. Where some hosts are guests it is on this
/// kernel or nowhere: a guest holds whole rows of hosts.
///
/// # Errors
/// What is missing here, which mechanism needs it, and how to get it; nothing is started before that is known.
pub fn possible(needs: &Needs, inside: &Inside) -> Result<Option<System>, TestbedError> {
    let place = place(needs, inside)?;
    if needs.plans(place.as_ref()).iter().any(RowPlan::runs_tayga) {
        tayga::program()?;
    }
    Ok(place)
}

fn place(needs: &Needs, inside: &Inside) -> Result<Option<System>, TestbedError> {
    let missing = needs.missing_here();
    if !needs.guests().is_empty() {
        return needs.check_guests(&missing).map(|()| None);
    }
    let candidates = match inside {
        Inside::WhereNeeded if missing.is_empty() => return Ok(None),
        Inside::WhereNeeded | Inside::Any => candidates(),
        Inside::Guest(system) => vec![system.clone()],
    };
    let wanted = needs.of_kernel();
    let fits = |system: &System| !wanted.iter().any(|need| lacks(system, need));
    if let Inside::Guest(guest) = inside {
        let lacking: BTreeSet<&str> = wanted.iter().copied().filter(|need| lacks(guest, need)).collect();
        if !lacking.is_empty() {
            let lacking = lacking.into_iter().collect::<Vec<_>>().join(", ");
            return Err(TestbedError::GuestLacks { guest: guest.clone(), lacking });
        }
    }
    let runs = |system: &System| router_image(system).is_ok();
    if let Some(system) = candidates.iter().find(|system| fits(system) && runs(system)).cloned() {
        return Ok(Some(system));
    }
    let system = candidates.into_iter().find(fits).unwrap_or_else(|| {
        if wanted.contains(&JOOL) {
            System::OwnUml("full".to_owned())
        } else {
            System::Linux("6.1".to_owned())
        }
    });
    let why: Vec<String> = missing.iter().map(|ability| needs.said(ability)).collect();
    let why = if why.is_empty() { "--in-vm asks for a guest".to_owned() } else { why.join("; ") };
    let qemu = !system.is_uml() && emulator().is_err();
    let also = if qemu { ", and qemu-system-x86 is to be installed" } else { "" };
    Err(TestbedError::NoImage { reason: format!("{why}; a guest that has it is not here{also}"), system })
}

/// Sees that a system can be started here that has routers in it or is one.
fn router_image(system: &System) -> Result<(), TestbedError> {
    if !matches!(system, System::Disk(_)) {
        let image = Image::find(system)?;
        // Images that were fetched before there were testbeds inside have no modules.
        if *system == System::Uml && !image.file("modules.cpio").exists() {
            let reason = "its image here is an old one, without the modules of tunnels".to_owned();
            return Err(TestbedError::NoImage { system: system.clone(), reason });
        }
    }
    if system.is_uml() { Ok(()) } else { emulator().map(drop) }
}

/// Testbeds of routers inside a guest. Dropping it ends the guest, and all of them.
#[derive(Debug)]
pub struct GuestLab {
    guest: Running,
    version: String,
    _folder: Folder,
}

/// Programs that a virtual machine, which does not see this machine's files, is given for use by hand.
const TOOLS: [&str; 12] =
    ["sh", "ip", "ping", "tracepath", "tcpdump", "iperf3", "iperf", "ss", "tc", "nstat", "cat", "ls"];

/// What the agents of a testbed inside a guest write and read, in their order on the path, and what was seen of packets.
pub type GuestTestbed = (RowPlan, Vec<Carried>, [Streams; 4]);

impl GuestLab {
    /// Boots a guest and has it build a testbed for each mechanism; waits until they stand. So many commands can run at once
    /// on the hosts of the first one, by the streams that come last ([`crate::shell`]).
    ///
    /// # Errors
    /// When the guest does not come up, or what it says failed in it.
    pub fn boot(
        system: &System,
        needs: &Needs,
        program: &Path,
        doors: usize,
    ) -> Result<(Self, Vec<GuestTestbed>, Vec<Streams>), TestbedError> {
        let folder = Folder::create()?;
        let plans = needs.plans(Some(system));
        let runs_tayga = plans.iter().any(RowPlan::runs_tayga);
        let mut others = if runs_tayga { vec![tayga::program()?] } else { Vec::new() };
        if doors > 0 && !system.is_uml() {
            others.extend(TOOLS.iter().filter_map(|tool| program_in_path(tool)));
        }
        let guest = prepare(system, program, &others, &folder)?;
        let guest: Box<dyn Guest> = guest.ok_or_else(|| TestbedError::NotBuilt(system.clone()))?;
        let version = guest.version();
        let failed = |fault: Fault| TestbedError::Lab { guest: version.clone(), reason: fault.to_string() };
        let mechanisms = plans.iter().map(|plan| (plan.kind.mechanism, plan.translates[0].by)).collect();
        let lab = LabPart { link_config: needs.link_config.clone(), links: needs.links, mechanisms, doors };
        let place = Place {
            name: "lab",
            // Its network is its own: it joins no link here.
            namespace: std::process::id(),
            processors: &[],
            offloads: needs.link_config.offloads,
            program,
            folder: &folder.for_host("lab")?,
            part: Part::Lab(lab),
        };
        let mut running = guest.start(&place).map_err(failed)?;
        let (greeting, read, write) = running.meet_lab().map_err(failed)?;
        let Greeting::Built { carried } = greeting else {
            let fault: Result<(), Fault> =
                Err(std::io::Error::other("it built no testbeds")).attempt("have it build testbeds");
            return Err(failed(fault.unwrap_err()));
        };
        let count = plans.len() * 4 + doors;
        let mut streams = mux::open(read, write, count).into_iter();
        let mut four =
            || -> [Streams; 4] { std::array::from_fn(|_| streams.next().expect("there are four of each")) };
        let testbeds = plans.into_iter().zip(carried).map(|(plan, seen)| (plan, seen, four()));
        let testbeds = testbeds.collect();
        Ok((GuestLab { guest: running, version, _folder: folder }, testbeds, streams.collect()))
    }

    /// The guest's process.
    pub fn process(&self) -> u32 {
        self.guest.pid()
    }

    /// What it runs in: `user-mode Linux 7.2`.
    pub fn version(&self) -> &str {
        &self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Systems;

    #[test]
    fn a_translator_in_the_kernel_is_needed_where_it_is_asked_for() {
        let needs = |translator| {
            let row = RowKind { translator, ..RowKind::of_namespaces(Mechanism::Nat64) };
            let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
            Needs { rows: vec![row], link_config, links: Links::default(), forward_only: true }.of_kernel()
        };
        assert!(needs(Some(Translator::Jool)).contains(&JOOL));
        for other in [None, Some(Translator::Tayga)] {
            assert!(needs(other).contains(&"tun") && !needs(other).contains(&JOOL));
        }
        // It is no part of Debian's kernels, and of one that is still to be built.
        let own = System::OwnUml("of which there is no image".to_owned());
        assert!(lacks(&System::Uml, JOOL) && lacks(&System::Linux("6.1".to_owned()), JOOL));
        assert!(!lacks(&own, JOOL) && !lacks(&own, "wireguard"));
    }

    #[test]
    fn a_router_that_is_a_guest_needs_no_module_of_this_kernel() {
        let needs = |routers: &str| {
            let routers: Systems = routers.parse().unwrap();
            let row = RowKind { routers, ..RowKind::of_namespaces(Mechanism::SixInFour) };
            let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
            Needs { rows: vec![row], link_config, links: Links::default(), forward_only: true }.of_kernel()
        };
        let has = |needs: &[&str], one: &str| needs.contains(&one);
        let (plain, mixed, guests) = (needs("namespace"), needs("namespace -> uml"), needs("uml"));
        assert!(has(&plain, "sit") && !has(&plain, "bridge"), "{plain:?}");
        assert!(has(&mixed, "sit") && has(&mixed, "bridge"), "{mixed:?}");
        assert!(!has(&guests, "sit") && has(&guests, "bridge"), "{guests:?}");
    }
}
