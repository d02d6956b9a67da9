//! NAT64, SIIT and 464XLAT: addresses and headers of one family translated to the other's, by `tayga` on a TUN device.
//! It is a program and no part of the kernel, and is named in the record. It translates each packet alone, one IPv6 address
//! to one IPv4 address, also where a NAT64 of the kernel's (Jool) would share addresses among connections.

use super::Router;
use crate::error::{Attempt, Fault, TestbedError};
use crate::find::program_in_path;
use crate::routed::plan::{MIDDLE, POOL, POOL_HOST, POOL_OWN, Site, TRANSLATED, TUNNEL, XLAT, XLAT_HOST};
use crate::routed::wire::{Route, raise};
use crate::sys::create_lasting_tun;
use stacklab_model::{Family, Mechanism};
use std::fmt::Write;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a translator of the near router's, which must not answer for the pool, calls itself.
const OWN_NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 65, 1);

/// Where the program is.
///
/// # Errors
/// When it is not here; says how to get it.
pub(crate) fn program() -> Result<PathBuf, TestbedError> {
    program_in_path("tayga").ok_or(TestbedError::NoProgram {
        program: "tayga",
        remedy: "sudo apt-get install --no-install-recommends tayga (it starts nothing by itself)",
    })
}

/// Whether the mechanism translates on this router.
pub(crate) fn translates_at(mechanism: Mechanism, site: Site) -> bool {
    match mechanism {
        Mechanism::Nat64 => site == Site::Far,
        Mechanism::Siit => site == Site::Near,
        Mechanism::Xlat464 => true,
        _ => false,
    }
}

/// The translator of a router, with its settings written into a folder; `None` where it has none. To be started in the
/// router's namespace, or its guest, once [`lay`] has made its device.
pub(crate) fn command(router: &Router, folder: &Path) -> Result<Option<Command>, Fault> {
    if !translates_at(router.mechanism, router.site) {
        return Ok(None);
    }
    let path = folder.join(format!("tayga-{}-{}.conf", router.mechanism, router.site.number()));
    fs::write(&path, settings(router)).attempt(format!("write {}", path.display()))?;
    let program = program().map_err(std::io::Error::other).attempt("find the translator")?;
    let mut command = Command::new(program);
    command.arg("--nodetach").arg("--config").arg(path);
    let console = console(folder);
    let said = File::options().create(true).append(true).open(&console);
    let said = said.attempt(format!("write {}", console.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    Ok(Some(command))
}

/// Where a testbed's translators say what goes wrong.
pub(crate) fn console(folder: &Path) -> PathBuf {
    folder.join("tayga.log")
}

fn settings(router: &Router) -> String {
    let client = |family| router.site.client_address(router.mechanism, family);
    let far = router.site.other().client_address(router.mechanism, Family::Ipv6);
    let (own, v4, v6): (Ipv4Addr, IpAddr, IpAddr) = match (router.mechanism, router.site) {
        // The sender's IPv6 address is one of the pool to the receiver.
        (Mechanism::Nat64, _) => (POOL_OWN, POOL_HOST.into(), far),
        // The receiver's IPv6 address is one of the pool to the sender.
        (Mechanism::Siit, _) => (POOL_OWN, POOL_HOST.into(), far),
        (_, Site::Near) => (OWN_NEAR, client(Family::Ipv4), XLAT_HOST.into()),
        (_, Site::Far) => (POOL_OWN, POOL_HOST.into(), XLAT_HOST.into()),
    };
    let mut text = String::new();
    let _ = writeln!(text, "tun-device {TUNNEL}\nipv4-addr {own}\nprefix {}/{}", TRANSLATED.0, TRANSLATED.1);
    let _ = writeln!(text, "map {v4} {v6}");
    text
}

pub(super) fn lay(router: &Router) -> Result<(), Fault> {
    let other = router.site.other();
    let by_middle = |to: (IpAddr, u8)| {
        Route { to, device: MIDDLE, via: Some(other.outer(Family::Ipv6)), mtu: None }.add()
    };
    // Of what goes to IPv6, packets must leave room for its longer header and a fragment's.
    let into = |to: (IpAddr, u8)| {
        let narrow = to.0.is_ipv4().then(|| Mechanism::Siit.leaves(Family::Ipv4, router.mtu)).flatten();
        Route { to, device: TUNNEL, via: None, mtu: narrow }.add()
    };
    let translated = (TRANSLATED.0.into(), TRANSLATED.1);
    let (pool, xlat) = ((POOL.0.into(), POOL.1), (XLAT.0.into(), XLAT.1));
    if translates_at(router.mechanism, router.site) {
        create_lasting_tun(TUNNEL).attempt(format!("create the TUN device {TUNNEL}"))?;
        raise(TUNNEL, router.mtu)?;
    }
    match (router.mechanism, router.site) {
        (Mechanism::Nat64, Site::Near) => by_middle(translated),
        (Mechanism::Nat64, Site::Far) => {
            into(translated)?;
            into(pool)?;
            by_middle(other.network(router.mechanism, Family::Ipv6))
        }
        (Mechanism::Siit, Site::Near) => {
            into(translated)?;
            into(pool)?;
            by_middle(other.network(router.mechanism, Family::Ipv6))
        }
        (Mechanism::Siit, Site::Far) => by_middle(translated),
        (_, Site::Near) => {
            into(other.network(router.mechanism, Family::Ipv4))?;
            into(xlat)?;
            by_middle(translated)
        }
        (_, Site::Far) => {
            into(translated)?;
            into(pool)?;
            by_middle(xlat)
        }
    }
}
