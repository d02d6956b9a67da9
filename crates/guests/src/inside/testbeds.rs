//! A guest that hosts whole testbeds: routed ones, or a Wi-Fi network. And the folder on the machine outside in which a
//! user-mode Linux guest was started. What a guest finds there takes no virtual time, unlike a message.

use crate::shell::serve::serve;
use crate::shell::shows_files;
use crate::{Greeting, GuestRole, HostedRole, MediumQuestion, WifiLook, WifiRole};
use nix::fcntl::readlink;
use nix::mount::{MsFlags, mount};
use serde::de::DeserializeOwned;
use stacklab_testbed::kernel::sys::reserve_nothing;
use stacklab_testbed::kernel::sysctl;
use stacklab_testbed::{
    AGENT, AtHost, Attempt, Fault, Host, Node, Routed, RoutedSpec, Streams, TestbedError, Translates,
    write_message,
};
use stacklab_wifi::WifiNetwork;
use std::any::Any;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fs, thread};

const PROGRAM: &str = "/proc/self/exe";

/// The greeting of a guest, its streams, and what was built, which ends when dropped.
type Built = (Greeting, Vec<Streams>, Box<dyn Any>);

pub(crate) fn build_routed_testbeds(role: &HostedRole) -> Result<Built, TestbedError> {
    let (mut all, mut streams, mut carried): (Vec<Routed>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    // Kernels before 5.16 have one such setting for all namespaces, shown only in this initial one.
    let _ = sysctl::write("ipv4/route/mtu_expires", "1000000");
    let program = program();
    for hosted in &role.mechanisms {
        let translates = [0, 1].map(|_| Translates { by: hosted.translator, version: None });
        let mut spec = RoutedSpec {
            translates,
            links: role.links,
            ..RoutedSpec::of_namespaces(hosted.mechanism, &role.link_config)
        };
        spec.kind.rules = hosted.rules;
        spec.kind.tables = hosted.tables;
        spec.kind.customers = hosted.customers;
        let mut routed = Routed::build(&spec, &program, &AGENT)?;
        let met = routed.meet()?;
        streams.extend(met.chain);
        streams.extend(met.spokes);
        carried.push(routed.path_checks.clone());
        all.push(routed);
    }
    if let Some(first) = all.first() {
        streams.extend(commands(role.commands, &list_pids(first)).at(Node::Sender)?);
    }
    Ok((Greeting::Built { carried }, streams, Box::new(all)))
}

fn list_pids(routed: &Routed) -> Vec<u32> {
    routed.list_nodes().into_iter().map(|node| routed.pid(node)).collect()
}

fn program() -> PathBuf {
    fs::read_link(PROGRAM).unwrap_or_else(|_| PathBuf::from("/stacklab"))
}

/// Streams of commands on these hosts, which are process IDs.
fn commands(count: usize, hosts: &[u32]) -> Result<Vec<Streams>, Fault> {
    const PLACE: &str = "/dev/pts";
    if count == 0 {
        return Ok(Vec::new());
    }
    let terminals = fs::create_dir_all(PLACE).and_then(|()| {
        Ok(mount(Some("devpts"), PLACE, Some("devpts"), MsFlags::empty(), Some("ptmxmode=666"))?)
    });
    terminals.and_then(|()| serve(count, hosts)).attempt("open command streams")
}

const DAEMONS: &str = "/tmp/wifi";
/// The file with what was on air, in the folder outside.
pub(crate) const CAPTURE: &str = "capture.pcapng";

/// Builds the network. The streams are those of the agents on sender, access point and receiver, the medium's answers,
/// those of looks at the network, and those of the commands. The network ends with the stream of looks.
pub(crate) fn build_wifi(role: &WifiRole) -> Result<Built, TestbedError> {
    // A kernel without this setting has none reserved, or has late exchanges, which are reported.
    reserve_nothing().attempt("have the medium always run first").at(Node::AccessPoint)?;
    let capture = role.spec.captured.then(|| file(CAPTURE));
    let mut network =
        WifiNetwork::build(&role.spec, &program(), &AGENT, DAEMONS.as_ref(), capture.as_deref())?;
    let mut streams = Vec::new();
    for host in network.hosts_mut() {
        streams.push(host.meet()?);
    }
    let medium = network.medium().clone();
    let answers = answering("medium", move |question, out| match question {
        MediumQuestion::Report => write_message(out, &medium.report()),
        MediumQuestion::Used(sets) => {
            write_message(out, &sets.iter().map(|windows| medium.find_use(windows)).collect::<Vec<_>>())
        }
    });
    streams.push(answers.attempt("report on the medium").at(Node::AccessPoint)?);
    let state = network.state.clone();
    let hosts = network.hosts_mut().iter().map(Host::pid).collect::<Vec<_>>();
    let spec = role.spec.clone();
    let looks = answering("network", move |look: WifiLook, out| {
        write_message(out, &network.look(&spec, look.seed).map_err(|error| error.to_string()))
    });
    streams.push(looks.attempt("open a stream to the network").at(Node::AccessPoint)?);
    streams.extend(commands(role.commands, &hosts).at(Node::AccessPoint)?);
    Ok((Greeting::Associated { state: Box::new(state) }, streams, Box::new(())))
}

/// A stream on which each line is a question that is answered, until it ends or a line is not a question.
fn answering<Q: DeserializeOwned>(
    name: &str,
    mut answer: impl FnMut(Q, &mut UnixStream) -> io::Result<()> + Send + 'static,
) -> io::Result<Streams> {
    let (own, mut its) = UnixStream::pair()?;
    let asked = BufReader::new(its.try_clone()?).lines();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        for line in asked.map_while(Result::ok) {
            let Ok(question) = serde_json::from_str(&line) else { break };
            if answer(question, &mut its).is_err() {
                break;
            }
        }
    })?;
    Ok((Box::new(own.try_clone()?), Box::new(own)))
}

const OUTSIDE: &str = "/outside";
const STARTED_IN: &str = "/proc/self/cwd";
const ROLE: &str = "role";

/// The link by which a guest in virtual time takes requests. Its reading ends when there are some: `image/getrandom.c`
/// takes them from the pipe beside it.
pub(crate) const REQUESTS: &str = "requests";

pub(crate) fn write_role(folder: &Path, role: &GuestRole) -> io::Result<()> {
    fs::write(folder.join(ROLE), serde_json::to_vec(role)?)
}

fn file(name: &str) -> PathBuf {
    Path::new(OUTSIDE).join(name)
}

/// Waits for requests, while this system stands still. All that are there, or some thousand bytes.
pub(crate) fn next_requests() -> io::Result<Vec<u8>> {
    Ok(readlink(&file(REQUESTS))?.into_vec())
}

/// The role that is there. `None` where there is none, or no such folder.
pub(crate) fn role() -> Option<io::Result<GuestRole>> {
    if !shows_files() {
        return None;
    }
    fs::create_dir_all(OUTSIDE).ok()?;
    mount(Some("none"), OUTSIDE, Some("hostfs"), MsFlags::empty(), Some(STARTED_IN)).ok()?;
    match fs::read(file(ROLE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))),
    }
}
