//! Translation by `tayga` on a TUN device: a program and no part of the kernel. It translates each packet alone, one IPv6 address
//! to one IPv4 address, also where a NAT64 would share addresses among connections.

use crate::error::{Attempt, Fault, TestbedError};
use crate::host::program::program_in_path;
use crate::kernel::sys::create_lasting_tun;
use crate::link::addressing::{POOL, POOL_HOST, POOL_OWN, Site, TRANSLATED, TUNNEL, XLAT, XLAT_HOST};
use crate::link::interface::{Route, raise};
use crate::mechanism::router::Router;
use crate::mechanism::router::translates_at;
use stacklab_model::{Family, Mechanism, Translation, Translator};
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

/// The translator of a router, with its settings written into a folder; `None` where it has no such. To be started in the
/// router's namespace, or its guest, once [`lay`] has made its device.
pub(crate) fn command(router: &Router, folder: &Path) -> Result<Option<Command>, Fault> {
    if router.translator != Translator::Tayga || !translates_at(router.mechanism, router.site) {
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
    let (own, v4, v6): (Ipv4Addr, IpAddr, IpAddr) = match (router.mechanism.translation(), router.site) {
        // The sender's IPv6 address is one of the pool to the receiver.
        (Some(Translation::Far), _) => (POOL_OWN, POOL_HOST.into(), far),
        // The receiver's IPv6 address is one of the pool to the sender.
        (Some(Translation::Near), _) => (POOL_OWN, POOL_HOST.into(), far),
        (_, Site::Near) => (OWN_NEAR, client(Family::Ipv4), XLAT_HOST.into()),
        (_, Site::Far) => (POOL_OWN, POOL_HOST.into(), XLAT_HOST.into()),
    };
    let mut text = String::new();
    let _ = writeln!(text, "tun-device {TUNNEL}\nipv4-addr {own}\nprefix {}/{}", TRANSLATED.0, TRANSLATED.1);
    let _ = writeln!(text, "map {v4} {v6}");
    text
}

/// Makes the device, and the routes of what is to be translated.
pub(super) fn build(router: &Router) -> Result<(), Fault> {
    create_lasting_tun(TUNNEL).attempt(format!("create the TUN device {TUNNEL}"))?;
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
        // Of what goes to IPv6, packets must leave room for its longer header.
        let narrow = to.0.is_ipv4().then(|| Mechanism::Siit.leaves(Family::Ipv4, router.mtu)).flatten();
        Route { to, device: TUNNEL, via: None, mtu: narrow }.add()
    })
}
