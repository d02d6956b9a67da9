//! Translation by `tayga` on a TUN device. `tayga` is a user-space program. It translates each packet separately and
//! maps one IPv6 address to one IPv4 address, even where a NAT64 would share addresses between connections.

use crate::kernel::sys::create_lasting;
use crate::link::addressing::{POOL, POOL_HOST, POOL_OWN, TRANSLATED, TUNNEL, XLAT, XLAT_HOST};
use crate::link::interface::{Route, raise};
use crate::mechanism::router::translates_at;
use crate::{Attempt, Fault, Router, Site, TestbedError, find};
use stacklab_model::{Family, Mechanism, Translation, Translator};
use std::fmt::Write;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The near router's translator's own address. This translator must not answer for the pool.
const OWN_NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 65, 1);

/// The path of the program. The error says how to get it.
pub fn program() -> Result<PathBuf, TestbedError> {
    find("tayga", "sudo apt-get install --no-install-recommends tayga (it starts nothing by itself)")
}

/// The command that runs a router's translator, with its configuration written to a folder. `None` if the router has
/// no such translator. Run it in the router's namespace or its guest, after `build` has created its device.
pub fn command(router: &Router, folder: &Path) -> Result<Option<Command>, Fault> {
    if router.translator != Translator::Tayga || !translates_at(router.mechanism, router.site) {
        return Ok(None);
    }
    let path = folder.join(format!("tayga-{}-{}.conf", router.mechanism, router.site.number()));
    fs::write(&path, settings(router)).attempt(format!("write {}", path.display()))?;
    let program = program().attempt("find the translator")?;
    let mut command = Command::new(program);
    command.arg("--nodetach").arg("--config").arg(path);
    let console = console(folder);
    let said = File::options().create(true).append(true).open(&console);
    let said = said.attempt(format!("write {}", console.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    Ok(Some(command))
}

/// The file for the error messages of a testbed's translators.
pub(crate) fn console(folder: &Path) -> PathBuf {
    folder.join("tayga.log")
}

fn settings(router: &Router) -> String {
    let client = |family| router.site.client_address(router.mechanism, family);
    let far = router.site.other().client_address(router.mechanism, Family::Ipv6);
    let (own, v4, v6): (Ipv4Addr, IpAddr, IpAddr) = match (router.mechanism.translation(), router.site) {
        // The receiver sees the sender's IPv6 address as an address of the pool.
        (Some(Translation::Far), _) => (POOL_OWN, POOL_HOST.into(), far),
        // The sender sees the receiver's IPv6 address as an address of the pool.
        (Some(Translation::Near), _) => (POOL_OWN, POOL_HOST.into(), far),
        (_, Site::Near) => (OWN_NEAR, client(Family::Ipv4), XLAT_HOST.into()),
        (_, Site::Far) => (POOL_OWN, POOL_HOST.into(), XLAT_HOST.into()),
    };
    let mut text = String::new();
    let _ = writeln!(text, "tun-device {TUNNEL}\nipv4-addr {own}\nprefix {}/{}", TRANSLATED.0, TRANSLATED.1);
    let _ = writeln!(text, "map {v4} {v6}");
    text
}

pub(super) fn build(router: &Router) -> Result<(), Fault> {
    create_lasting(TUNNEL, libc::IFF_TUN).attempt(format!("create the TUN device {TUNNEL}"))?;
    raise(TUNNEL, router.mtu)?;
    let (translated, pool, xlat) =
        ((TRANSLATED.0.into(), TRANSLATED.1), (POOL.0.into(), POOL.1), (XLAT.0.into(), XLAT.1));
    let into: [(IpAddr, u8); 2] = match (router.mechanism.translation(), router.site) {
        (Some(Translation::Both), Site::Near) => {
            [router.site.other().network(router.mechanism, Family::Ipv4), xlat]
        }
        _ => [translated, pool],
    };
    into.into_iter().try_for_each(|to| {
        // Packets that become IPv6 must leave room for the longer header.
        let narrow = to.0.is_ipv4().then(|| Mechanism::Siit.leaves(Family::Ipv4, router.mtu)).flatten();
        Route { to, device: TUNNEL, via: None, mtu: narrow }.add()
    })
}
