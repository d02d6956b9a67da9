//! NAT64, SIIT, 464XLAT and MAP-T: translate addresses and headers of one family to the other, with the router's
//! translator. The record names it.
//!
//! * Jool: kernel modules that intercept incoming packets, translate them, and send the result. There is no device and
//!   no route into one. The configuration vanishes with the namespace.
//! * tayga: a program with a TUN device. It translates each packet separately and maps one IPv6 address to one IPv4
//!   address, even where a NAT64 would share addresses between connections.

use crate::addressing::{POOL, POOL_HOST, POOL_OWN, SHARED, TRANSLATED, TUNNEL, XLAT, XLAT_HOST};
use crate::kernel::namespace::in_new_namespace;
use crate::kernel::netlink::{Route, raise};
use crate::kernel::sys::create_lasting;
use crate::mechanism::softwires::{CUSTOMER, customer_host};
use crate::mechanism::translates_at;
use crate::{
    Attempt, CustomerId, Fault, MIDDLE, Router, Site, TestbedError, bundled_command, find, program_in_path,
};
use stacklab_model::{Family, Mechanism, Translation, Translator};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, io};

/// The translator on a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translates {
    /// The kind of translator.
    pub by: Translator,
    /// Its version, if known.
    pub version: Option<String>,
}

impl Translates {
    /// A mechanism's translator for routers whose kernel has this version of Jool, or none: the requested one. Without
    /// a request, Jool if the kernel has it and all connections start at the sender (`forward_only`), else tayga.
    /// Always tayga if the mechanism cannot have another one.
    pub fn choose(
        mechanism: Mechanism,
        jool: Option<String>,
        asked: Option<Translator>,
        forward_only: bool,
    ) -> Self {
        if !mechanism.has_any_translator() {
            return Translates { by: Translator::Tayga, version: None };
        }
        let by = asked.unwrap_or(match jool {
            Some(_) if forward_only => Translator::Jool,
            _ => Translator::Tayga,
        });
        Translates { by, version: jool.filter(|_| by == Translator::Jool) }
    }
}

impl fmt::Display for Translates {
    /// `Jool 4.1.13`, `tayga`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.by, &self.version) {
            (Translator::Tayga, _) => f.write_str("tayga"),
            (Translator::Jool, Some(version)) => write!(f, "Jool {version}"),
            (Translator::Jool, None) => f.write_str("Jool"),
        }
    }
}

pub(crate) fn build(router: &Router) -> Result<(), Fault> {
    if translates_at(router.mechanism, router.site) {
        match router.translator {
            Translator::Tayga => build_tayga(router)?,
            Translator::Jool => build_jool(router)?,
        }
    }
    let to: (IpAddr, u8) = match (router.mechanism.translation(), router.site) {
        (Some(Translation::Far), Site::Far) | (Some(Translation::Near), Site::Near) => {
            router.other_network(Family::Ipv6)
        }
        (Some(Translation::Both), Site::Far) => TwiceTranslated::of(router.mechanism).network,
        _ => (TRANSLATED.0.into(), TRANSLATED.1),
    };
    Route { to, device: MIDDLE, via: Some(router.other_outer(Family::Ipv6)), mtu: None }.add()
}

/// A sender whose packets both routers translate: its addresses behind its router, on the middle link, and at the
/// receiver.
struct TwiceTranslated {
    near: IpAddr,
    middle: Ipv6Addr,
    /// The network of its address on the middle link.
    network: (IpAddr, u8),
    far: IpAddr,
    /// The network of its address at the receiver.
    pool: (IpAddr, u8),
}

impl TwiceTranslated {
    fn of(mechanism: Mechanism) -> Self {
        // A NAT has changed the address before: one customer has it, so the far router's translator knows whose it is.
        if mechanism.sharing().is_some() {
            return TwiceTranslated {
                near: SHARED.into(),
                middle: customer_host(),
                network: (CUSTOMER.0.into(), CUSTOMER.1),
                far: SHARED.into(),
                pool: (SHARED.into(), 32),
            };
        }
        TwiceTranslated {
            near: Site::Near.client_address(CustomerId::FIRST, mechanism, Family::Ipv4),
            middle: XLAT_HOST,
            network: (XLAT.0.into(), XLAT.1),
            far: POOL_HOST.into(),
            pool: (POOL.0.into(), POOL.1),
        }
    }
}

/// The folder of Jool's programs in a guest, below the root.
pub const JOOL_FOLDER: &str = "jool";
const INSTANCE: &str = "stacklab";
/// The programs that configure the two modules of these names: stateful NAT64 and stateless SIIT.
const STATEFUL: &str = "jool";
const STATELESS: &str = "jool_siit";

/// The version of Jool in this kernel, after a test in a temporary namespace that loads no module.
pub fn jool_here() -> Result<String, Fault> {
    let path = format!("/sys/module/{STATEFUL}/version");
    let loaded = fs::metadata(format!("/sys/module/{STATELESS}")).and_then(|_| fs::read_to_string(&path));
    let version = loaded.attempt("find the modules jool and jool_siit in the kernel")?;
    in_new_namespace(|| [STATEFUL, STATELESS].into_iter().try_for_each(add_instance))
        .attempt("make a namespace")??;
    Ok(version.trim().to_owned())
}

pub(crate) fn build_jool(router: &Router) -> Result<(), Fault> {
    let client = |site: Site, family| site.client_address(router.customer, router.mechanism, family);
    match (router.mechanism.translation(), router.site) {
        // The sender sees the receiver's IPv6 address as an address of the pool.
        (Some(Translation::Near), _) => {
            stateless(POOL_HOST.into(), client(router.site.other(), Family::Ipv6))
        }
        (Some(Translation::Both), Site::Near) => {
            stateless(client(Site::Near, Family::Ipv4), XLAT_HOST.into())
        }
        // The receiver sees IPv6 clients as ports of one address of the pool.
        _ => stateful(POOL_HOST),
    }
}

fn stateless(v4: IpAddr, v6: IpAddr) -> Result<(), Fault> {
    add_instance(STATELESS)?;
    configure(STATELESS, &["-i", INSTANCE, "eamt", "add", &v4.to_string(), &v6.to_string()])
}

fn stateful(pool: Ipv4Addr) -> Result<(), Fault> {
    add_instance(STATEFUL)?;
    ["--udp", "--tcp", "--icmp"].into_iter().try_for_each(|protocol| {
        configure(STATEFUL, &["-i", INSTANCE, "pool4", "add", protocol, &pool.to_string(), "1024-65535"])
    })
}

/// Adds an instance of a module to this namespace. It translates packets with an address of the prefix.
fn add_instance(module: &str) -> Result<(), Fault> {
    let prefix = format!("{}/{}", TRANSLATED.0, TRANSLATED.1);
    configure(module, &["instance", "add", INSTANCE, "--netfilter", "--pool6", &prefix])
}

fn configure(program: &str, words: &[&str]) -> Result<(), Fault> {
    let attempted = format!("run {program} {}", words.join(" "));
    let result = jool_command(program).and_then(|mut command| command.args(words).output());
    let done = result.attempt(attempted.as_str())?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stderr, done.stdout].concat();
    Err(String::from_utf8_lossy(&said).trim()).attempt(attempted)
}

/// The program: from a guest's image, with the bundled libraries, or the system's program.
fn jool_command(program: &str) -> io::Result<Command> {
    if let Ok(command) = bundled_command(JOOL_FOLDER, program) {
        return Ok(command);
    }
    match program_in_path(program) {
        Some(file) => Ok(Command::new(file)),
        None => Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no program `{program}`"))),
    }
}

/// The near router's translator's own address. This translator must not answer for the pool.
const OWN_NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 65, 1);

/// The path of the program. The error says how to get it.
pub fn tayga_program() -> Result<PathBuf, TestbedError> {
    find("tayga", "sudo apt-get install --no-install-recommends tayga (it starts nothing by itself)")
}

/// The command that runs a router's translator, with its configuration written to a folder. `None` if the router has
/// no such translator. Run it in the router's namespace or its guest, after `build` has created its device.
pub fn tayga_command(router: &Router, folder: &Path) -> Result<Option<Command>, Fault> {
    if router.translator != Translator::Tayga || !translates_at(router.mechanism, router.site) {
        return Ok(None);
    }
    let path = folder.join(format!("tayga-{}-{}.conf", router.mechanism, router.site.number()));
    fs::write(&path, tayga_settings(router)).attempt(format!("write {}", path.display()))?;
    let program = tayga_program().attempt("find the translator")?;
    let mut command = Command::new(program);
    command.arg("--nodetach").arg("--config").arg(path);
    let console = tayga_console(folder);
    let said = File::options().create(true).append(true).open(&console);
    let said = said.attempt(format!("write {}", console.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    Ok(Some(command))
}

pub(crate) fn tayga_console(folder: &Path) -> PathBuf {
    folder.join("tayga.log")
}

fn tayga_settings(router: &Router) -> String {
    let other = router.site.other().client_address(router.customer, router.mechanism, Family::Ipv6);
    let twice = TwiceTranslated::of(router.mechanism);
    let (own, v4, v6): (Ipv4Addr, IpAddr, IpAddr) = match (router.mechanism.translation(), router.site) {
        // One end sees the other's IPv6 address as an address of the pool.
        (Some(Translation::Far | Translation::Near), _) => (POOL_OWN, POOL_HOST.into(), other),
        (_, Site::Near) => (OWN_NEAR, twice.near, twice.middle.into()),
        (_, Site::Far) => (POOL_OWN, twice.far, twice.middle.into()),
    };
    let (prefix, bits) = TRANSLATED;
    format!("tun-device {TUNNEL}\nipv4-addr {own}\nprefix {prefix}/{bits}\nmap {v4} {v6}\n")
}

pub(crate) fn build_tayga(router: &Router) -> Result<(), Fault> {
    create_lasting(TUNNEL, libc::IFF_TUN).attempt(format!("create the TUN device {TUNNEL}"))?;
    raise(TUNNEL, router.mtu)?;
    let translated = (TRANSLATED.0.into(), TRANSLATED.1);
    let twice = TwiceTranslated::of(router.mechanism);
    let into: [(IpAddr, u8); 2] = match (router.mechanism.translation(), router.site) {
        (Some(Translation::Both), Site::Near) => [router.other_network(Family::Ipv4), twice.network],
        _ => [translated, twice.pool],
    };
    into.into_iter().try_for_each(|to| {
        // Packets that become IPv6 must leave room for the longer header.
        let narrow = to.0.is_ipv4().then(|| Mechanism::Siit.leaves(Family::Ipv4, router.mtu)).flatten();
        Route { to, device: TUNNEL, via: None, mtu: narrow }.add()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jool_is_chosen_where_present_and_lets_all_through() {
        use Translator::{Jool, Tayga};
        let there = Some("4.1.13");
        for (version, asked, forward_only, chosen) in [
            (there, None, true, "Jool 4.1.13"),
            // Without connection state, traffic can also start at the other end.
            (there, None, false, "tayga"),
            (None, None, true, "tayga"),
            (there, Some(Tayga), true, "tayga"),
            (there, Some(Jool), false, "Jool 4.1.13"),
            (None, Some(Jool), true, "Jool"),
        ] {
            let version = version.map(str::to_owned);
            let choice = Translates::choose(Mechanism::Nat64, version.clone(), asked, forward_only);
            assert_eq!(choice.to_string(), chosen);
            let behind_nat = Translates::choose(Mechanism::MapTranslation, version, asked, forward_only);
            assert_eq!(behind_nat.to_string(), "tayga");
        }
    }
}
