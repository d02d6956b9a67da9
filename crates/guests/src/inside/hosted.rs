//! A guest that hosts whole testbeds.

use crate::shell::serve::serve;
use crate::{Greeting, HostedRole};
use nix::mount::{MsFlags, mount};
use stacklab_testbed::kernel::sysctl;
use stacklab_testbed::{AGENT, AtHost, Attempt, Node, Routed, RoutedSpec, Streams, TestbedError, Translates};
use std::any::Any;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The path of this program in a guest where it is the init process.
const PROGRAM: &str = "/proc/self/exe";

/// The greeting of a guest that has built what it hosts, its streams, and what was built, which ends when dropped.
pub(super) type Built = (Greeting, Vec<Streams>, Box<dyn Any>);

pub(super) fn build(role: &HostedRole) -> Result<Built, TestbedError> {
    let (mut all, mut streams, mut carried): (Vec<Routed>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    // Kernels before 5.16 have one such setting for all namespaces, and show it only in the initial namespace, which
    // is this one.
    let _ = sysctl::write("ipv4/route/mtu_expires", "1000000");
    let program = program();
    for (mechanism, by) in &role.mechanisms {
        let translates = [0, 1].map(|_| Translates { by: *by, version: None });
        let spec = RoutedSpec {
            translates,
            links: role.links,
            ..RoutedSpec::of_namespaces(*mechanism, &role.link_config)
        };
        let mut routed = Routed::build(&spec, &program, &AGENT)?;
        streams.extend(routed.meet()?);
        carried.push(routed.path_checks().to_vec());
        all.push(routed);
    }
    if let (1.., Some(first)) = (role.commands, all.first()) {
        let hosts = Node::ALL.map(|node| first.pid(node));
        let opened = terminals().and_then(|()| serve(role.commands, &hosts)).attempt("open command streams");
        streams.extend(opened.at(Node::Sender)?);
    }
    Ok((Greeting::Built { carried }, streams, Box::new(all)))
}

pub(super) fn program() -> PathBuf {
    fs::read_link(PROGRAM).unwrap_or_else(|_| PathBuf::from("/stacklab"))
}

pub(super) fn terminals() -> io::Result<()> {
    const PLACE: &str = "/dev/pts";
    fs::create_dir_all(PLACE)?;
    Ok(mount(Some("devpts"), PLACE, Some("devpts"), MsFlags::empty(), Some("ptmxmode=666"))?)
}
