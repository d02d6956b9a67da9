//! Routed testbeds hosted by a guest: the part on this machine.

use crate::hosted::{boot, failed, mux};
use crate::kind::prepare::prepared;
use crate::{Greeting, GuestRole, HostedRole, Requirements, Running};
use stacklab_model::System;
use stacklab_testbed::mechanism::translate::tayga;
use stacklab_testbed::{PathCheck, RoutedSpec, Streams, TestbedError, Workdir, not_built, program_in_path};
use std::path::Path;

/// Routed testbeds hosted by a guest. Dropping it ends the guest and all its testbeds.
#[derive(Debug)]
pub struct GuestHosted {
    guest: Running,
    version: String,
    _workdir: Workdir,
}

/// Programs for manual use that are copied into a virtual machine, which cannot access this machine's files.
const TOOLS: [&str; 12] =
    ["sh", "ip", "ping", "tracepath", "tcpdump", "iperf3", "iperf", "ss", "tc", "nstat", "cat", "ls"];

/// A testbed inside a guest: its specification, its path checks, and the streams of its agents in path order.
pub type HostedTestbed = (RoutedSpec, Vec<PathCheck>, [Streams; 4]);

impl GuestHosted {
    /// Boots a guest, which builds a testbed for each mechanism. Waits until they are built. Up to `commands`
    /// commands can run at once on the hosts of the first testbed, over the last streams ([`crate::shell`]).
    pub fn boot(
        system: &System,
        needs: &Requirements,
        program: &Path,
        commands: usize,
    ) -> Result<(Self, Vec<HostedTestbed>, Vec<Streams>), TestbedError> {
        let workdir = Workdir::create()?;
        let specs = needs.specs(Some(system));
        let runs_tayga = specs.iter().any(RoutedSpec::runs_tayga);
        let mut others = if runs_tayga { vec![tayga::program()?] } else { Vec::new() };
        if commands > 0 && !system.is_uml() {
            others.extend(TOOLS.iter().filter_map(|tool| program_in_path(tool)));
        }
        let guest = prepared(system, program, &others, &workdir)?;
        let guest = guest.ok_or_else(|| not_built(system))?;
        let version = guest.version();
        let mechanisms = specs.iter().map(|spec| (spec.kind.mechanism, spec.translates[0].by)).collect();
        let role =
            HostedRole { link_config: needs.link_config.clone(), links: needs.links, mechanisms, commands };
        let (role, folder) = (GuestRole::Hosted(role), workdir.for_host("lab")?);
        let (running, greeting, read, write) =
            boot(guest.as_ref(), role, needs.link_config.offloads, program, &folder)?;
        let Greeting::Built { carried } = greeting else {
            return Err(failed(&version, "it built no testbeds"));
        };
        let count = specs.len() * 4 + commands;
        let mut streams = mux::open(read, write, count).into_iter();
        let mut four =
            || -> [Streams; 4] { std::array::from_fn(|_| streams.next().expect("there are four of each")) };
        let testbeds = specs.into_iter().zip(carried).map(|(spec, checks)| (spec, checks, four()));
        let testbeds = testbeds.collect();
        Ok((GuestHosted { guest: running, version, _workdir: workdir }, testbeds, streams.collect()))
    }

    /// The guest's process ID.
    pub fn process(&self) -> u32 {
        self.guest.pid()
    }

    /// The guest's name and version: `user-mode Linux 7.2`.
    pub fn version(&self) -> &str {
        &self.version
    }
}
