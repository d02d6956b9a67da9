//! A guest as the place of testbeds of its own.

use crate::error::{Attempt, TestbedError};
use crate::host::Streams;
use crate::mechanism::translate::Translates;
use crate::part::LabPart;
use crate::routed::wire::set;
use crate::routed::{Carried, Node, Routed, RowPlan};
use crate::shell;
use nix::mount::{MsFlags, mount};
use std::fs;
use std::io;
use std::path::Path;

/// This program, as the first process of a system finds it.
const PROGRAM: &str = "/proc/self/exe";

/// Testbeds that stand, with the streams of their agents.
pub(super) struct Testbeds {
    _all: Vec<Routed>,
    pub streams: Vec<Streams>,
    pub carried: Vec<Vec<Carried>>,
}

/// Builds a testbed for each mechanism.
pub(super) fn build(part: &LabPart) -> Result<Testbeds, TestbedError> {
    let mut testbeds = Testbeds { _all: Vec::new(), streams: Vec::new(), carried: Vec::new() };
    // Kernels before 5.16 have one such setting for all namespaces, where only this one shows it.
    let _ = set("ipv4/route/mtu_expires", "1000000");
    let program = std::fs::read_link(PROGRAM).unwrap_or_else(|_| Path::new("/stacklab").to_owned());
    for (mechanism, by) in &part.mechanisms {
        let translates = [0, 1].map(|_| Translates { by: *by, version: None });
        let plan = RowPlan {
            translates,
            links: part.links,
            ..RowPlan::of_namespaces(*mechanism, &part.link_config)
        };
        let mut routed = Routed::build(&plan, &program, &["agent", "--stdio"])?;
        testbeds.streams.extend(routed.meet()?);
        testbeds.carried.push(routed.carried().to_vec());
        testbeds._all.push(routed);
    }
    if let (1.., Some(first)) = (part.doors, testbeds._all.first()) {
        let hosts = Node::ALL.map(|node| first.pid(node));
        let opened = terminals().and_then(|()| shell::serve(part.doors, hosts)).attempt("open doors");
        testbeds.streams.extend(opened.map_err(|fault| fault.at(Node::Sender))?);
    }
    Ok(testbeds)
}

/// Has this system know terminals.
fn terminals() -> io::Result<()> {
    const PLACE: &str = "/dev/pts";
    fs::create_dir_all(PLACE)?;
    Ok(mount(Some("devpts"), PLACE, Some("devpts"), MsFlags::empty(), Some("ptmxmode=666"))?)
}
