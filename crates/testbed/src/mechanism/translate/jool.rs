//! Jool: modules of the kernel that take packets as they come in, and send on what they make of them. There is no device and no
//! route into one; what was set up goes with the namespace.

use crate::error::{Attempt, Fault};
use crate::host::program::program_in_path;
use crate::image::jool::{FOLDER, LOADER};
use crate::kernel::namespace::in_new_namespace;
use crate::link::addressing::{POOL_HOST, Site, TRANSLATED, XLAT_HOST};
use crate::mechanism::router::Router;
use stacklab_model::{Family, Translation};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

/// What is set up is called.
const INSTANCE: &str = "stacklab";
/// The programs that set up the two modules of these names: NAT64 with state, and without.
const STATEFUL: &str = "jool";
const STATELESS: &str = "jool_siit";

/// The version that this kernel has, after having tried it in a namespace that is thrown away.
///
/// # Errors
/// What is not there. No module is loaded for it.
pub(crate) fn here() -> Result<String, Fault> {
    let path = format!("/sys/module/{STATEFUL}/version");
    let loaded = fs::metadata(format!("/sys/module/{STATELESS}")).and_then(|_| fs::read_to_string(&path));
    let version = loaded.attempt("find the modules jool and jool_siit in the kernel")?;
    in_new_namespace(|| [STATEFUL, STATELESS].into_iter().try_for_each(add))
        .attempt("make a namespace")??;
    Ok(version.trim().to_owned())
}

/// Sets up what translates on a router.
pub(super) fn build(router: &Router) -> Result<(), Fault> {
    let client = |site: Site, family| site.client_address(router.mechanism, family);
    match (router.mechanism.translation(), router.site) {
        // The receiver's IPv6 address is one of the pool to the sender.
        (Some(Translation::Near), _) => {
            stateless(POOL_HOST.into(), client(router.site.other(), Family::Ipv6))
        }
        (Some(Translation::Both), Site::Near) => {
            stateless(client(Site::Near, Family::Ipv4), XLAT_HOST.into())
        }
        // Who comes by IPv6 has a port of one of the pool's addresses to the receiver.
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

/// Has a module translate in this namespace what comes with an address of the prefix.
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
    Err(io::Error::other(String::from_utf8_lossy(&said).trim().to_owned())).attempt(attempted())
}

/// The program: of the image of a guest, with its own libraries, or the system's.
fn command(program: &str) -> io::Result<Command> {
    let own = Path::new("/").join(FOLDER);
    if own.join(program).exists() {
        let mut command = Command::new(own.join(LOADER));
        command.arg("--library-path").arg(&own).arg(own.join(program));
        return Ok(command);
    }
    let found = program_in_path(program);
    let found = found
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no program `{program}`")));
    found.map(Command::new)
}
