//! Jool: kernel modules that intercept incoming packets, translate them, and send the result. There is no device and
//! no route into one. The configuration vanishes with the namespace.

use crate::kernel::namespace::in_new_namespace;
use crate::link::addressing::{POOL_HOST, TRANSLATED, XLAT_HOST};
use crate::{Attempt, Fault, Router, Site, bundled, program_in_path};
use stacklab_model::{Family, Translation};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// The folder of Jool's programs in a guest, below the root.
pub const FOLDER: &str = "jool";
/// The name of the Jool instance.
const INSTANCE: &str = "stacklab";
/// The programs that configure the two modules of these names: stateful NAT64 and stateless SIIT.
const STATEFUL: &str = "jool";
const STATELESS: &str = "jool_siit";

/// The version of Jool in this kernel, after a test in a temporary namespace that loads no module.
pub fn here() -> Result<String, Fault> {
    let path = format!("/sys/module/{STATEFUL}/version");
    let loaded = fs::metadata(format!("/sys/module/{STATELESS}")).and_then(|_| fs::read_to_string(&path));
    let version = loaded.attempt("find the modules jool and jool_siit in the kernel")?;
    in_new_namespace(|| [STATEFUL, STATELESS].into_iter().try_for_each(add))
        .attempt("make a namespace")??;
    Ok(version.trim().to_owned())
}

pub(super) fn build(router: &Router) -> Result<(), Fault> {
    let client = |site: Site, family| site.client_address(router.mechanism, family);
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
    add(STATELESS)?;
    run(STATELESS, &["-i", INSTANCE, "eamt", "add", &v4.to_string(), &v6.to_string()])
}

fn stateful(pool: Ipv4Addr) -> Result<(), Fault> {
    add(STATEFUL)?;
    ["--udp", "--tcp", "--icmp"].into_iter().try_for_each(|protocol| {
        run(STATEFUL, &["-i", INSTANCE, "pool4", "add", protocol, &pool.to_string(), "1024-65535"])
    })
}

/// Adds an instance of a module to this namespace. It translates packets with an address of the prefix.
fn add(module: &str) -> Result<(), Fault> {
    let prefix = format!("{}/{}", TRANSLATED.0, TRANSLATED.1);
    run(module, &["instance", "add", INSTANCE, "--netfilter", "--pool6", &prefix])
}

fn run(program: &str, words: &[&str]) -> Result<(), Fault> {
    let attempted = || format!("run {program} {}", words.join(" "));
    let done = command(program).and_then(|mut command| command.args(words).output()).attempt(attempted())?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stderr, done.stdout].concat();
    Err(String::from_utf8_lossy(&said).trim()).attempt(attempted())
}

/// The program: from a guest's image, with the bundled libraries, or the system's program.
fn command(program: &str) -> io::Result<Command> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no program `{program}`"));
    bundled(FOLDER, program).or_else(|_| program_in_path(program).map(Command::new).ok_or_else(missing))
}
