//! All rigs of a study, and where those with routers are built.

use crate::program::{Emulators, emulate};
use crate::rig::freed_memory::{Rest, await_memory};
use crate::rig::host_pair::Kernels;
use crate::rig::in_guest::check_guest;
use crate::rig::machines::{Reached, both_families, remote};
use crate::rig::routed_source::RoutedSource;
use crate::rig::{Rig, TrialHosts, Way, direct, routed, wifi};
use crate::trial::SingleRun;
use crate::trial::run::{run, run_once};
use crate::{CampaignError, own_program};
use stacklab_guests::{GuestHosted, HostedTestbed, Placement, Requirements, find_placement, prepare};
use stacklab_model::{
    Cell, CpuScope, Family, Probe, RunRecord, System, Systems, Topology, Trial, once_each, say,
};
use stacklab_store::HostRow;
use stacklab_study::{Plan, Study};
use stacklab_testbed::kernel::memory::WatchesMemory;
use stacklab_testbed::{AGENT, Routed};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The rigs of a study: one for each pair of systems and set of services, for each mechanism between routers and pair
/// of systems, or for each Wi-Fi network. All are up at once, so that each block can use all of them.
///
/// Testbeds of namespaces are built anew for each block: what one is like, such as where its memory lies, changes round
/// trips of a size by some per cent for as long as it stands, differently for each arm. Guests take too long to boot.
pub struct Rigs {
    rigs: Vec<Rig>,
    /// The guest that holds routed testbeds, if they are not on this kernel. It ends after them.
    _guest: Option<GuestHosted>,
    kernels: Kernels,
    anew: Option<Anew>,
}

/// What building the rigs of a study again needs.
struct Anew {
    study: Study,
    seed: u64,
    routed: Option<RoutedPlacement>,
    interrupted: &'static AtomicBool,
    /// The block that the rigs stand for; `None` before the first.
    block: Option<u32>,
}

impl Rigs {
    /// Builds all rigs, except for the real machines, which are already connected. Call it from the main thread.
    pub fn build(
        study: &Study,
        seed: u64,
        reached: Vec<(Systems, [Reached; 2])>,
        routed: Option<RoutedPlacement>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, CampaignError> {
        let built = build(study, seed, reached, routed.as_ref(), interrupted);
        let (rigs, _guest) = built.map_err(|error| match error {
            // A guest that boots is ended by it.
            CampaignError::Testbed(_) if interrupted.load(Ordering::Relaxed) => {
                AgentError::Interrupted.into()
            }
            error => error,
        })?;
        let is_namespaces_only = study.networks().is_empty()
            && study
                .labs()
                .iter()
                .all(|(systems, services)| services.is_empty() && *systems == Systems::NAMESPACES)
            && routed.as_ref().is_none_or(RoutedPlacement::is_without_guests);
        let anew = (is_namespaces_only && !study.keeps_testbeds).then(|| Anew {
            study: study.clone(),
            seed,
            routed,
            interrupted,
            block: None,
        });
        Ok(Rigs { rigs, _guest, kernels: Kernels::default(), anew })
    }

    /// One rig for all cells: this host and another one, with the agents of both, this host's first. There is a way in
    /// each family. With `reverse` the other host is the sender.
    pub fn both_families(
        name: String,
        ways: BTreeMap<Family, Way>,
        reverse: bool,
        agents: [AgentClient; 2],
    ) -> Result<Self, AgentError> {
        let rigs = vec![both_families(name, ways, reverse, agents)?];
        // Noise floors take longer than an answer.
        let kernels = Kernels { without_noise: true, ..Kernels::default() };
        Ok(Rigs { rigs, _guest: None, kernels, anew: None })
    }

    /// Runs the program of a cell under emulators, with a number of requests. The inner error says why the run counts
    /// for nothing.
    pub fn emulate(
        &mut self,
        study: &Study,
        cell: &Cell,
        requests: u64,
        emulators: &Emulators,
    ) -> Result<Result<(), String>, CampaignError> {
        let [rig] = &mut self.of(&[cell])[..] else { unreachable!("a cell has one rig") };
        emulate(rig, study, cell, requests, emulators)
    }

    /// Builds testbeds of namespaces anew if they stand for another block.
    fn stand_for(&mut self, block: u32) -> Result<(), CampaignError> {
        let Some(anew) = &mut self.anew else { return Ok(()) };
        let before = anew.block.replace(block);
        if before.is_none_or(|before| before == block) {
            return Ok(());
        }
        self.rigs.clear();
        let Anew { study, seed, routed, interrupted, .. } = anew;
        (self.rigs, self._guest) = build(study, *seed, Vec::new(), routed.as_ref(), interrupted)?;
        // Agents are asked for their facts once before trials.
        self.hosts().map(|_| ())
    }

    /// The rigs of cells that are measured together: that of all of them, or one for each in their order.
    fn of(&mut self, cells: &[&Cell]) -> Vec<&mut Rig> {
        let mut places = Vec::new();
        for cell in cells {
            let place = self.rigs.iter().position(|rig| rig.is_for(cell));
            places.push(place.expect("a rig was built for each of the study's cells"));
        }
        if places.iter().all(|place| *place == places[0]) {
            places.truncate(1);
        }
        let mut rigs: Vec<Option<&mut Rig>> = self.rigs.iter_mut().map(Some).collect();
        let taken = places.into_iter().map(|place| rigs[place].take());
        taken.map(|rig| rig.expect("arms share one rig or none")).collect()
    }
}

impl TrialHosts for Rigs {
    fn describe(&self, study: &Study) -> String {
        let mut said: Vec<String> = self.rigs.iter().map(|rig| rig.description.clone()).collect();
        // Where the MTU is a factor, the testbed's own is not that of all runs.
        let own = study.link_config.mtu;
        if study.cells.iter().any(|cell| cell.settings.mtu.is_some_and(|mtu| mtu != own)) {
            said.iter_mut().for_each(|text| *text = text.replacen(&format!("MTU {own}"), "MTU by factor", 1));
        }
        match study.topology {
            Topology::Link => said.join("; "),
            // What all have in common is said once.
            _ => once_each(said.iter().flat_map(|testbed| testbed.lines())).join("\n"),
        }
    }

    fn hosts(&mut self) -> Result<Vec<HostRow>, CampaignError> {
        let mut rows = Vec::new();
        for rig in &mut self.rigs {
            let mut own = rig.ends.hosts(&mut self.kernels)?;
            rig.network.add_hosts(&mut own, &mut self.kernels)?;
            rows.extend(own);
        }
        Ok(rows)
    }

    fn cpu_scope(&self, study: &Study) -> CpuScope {
        let mut scopes = self.rigs.iter().map(|rig| cpu_scope(rig, study));
        let first = scopes.next().unwrap_or(CpuScope::Shared);
        if scopes.all(|scope| scope == first) { first } else { CpuScope::Various }
    }

    fn run(
        &mut self,
        study: &Study,
        plan: &Plan,
        arms: &[Trial],
        earlier: &[RunRecord],
    ) -> Result<Vec<RunRecord>, CampaignError> {
        if let Some(trial) = arms.first() {
            self.stand_for(trial.block)?;
        }
        let cells: Vec<&Cell> = arms.iter().map(|trial| &trial.cell).collect();
        run(&mut self.of(&cells), study, plan, arms, earlier)
    }

    fn run_once(
        &mut self,
        study: &Study,
        plan: &Plan,
        trial: &Trial,
        poll_ns: u64,
    ) -> Result<SingleRun, CampaignError> {
        let [rig] = &mut self.of(&[&trial.cell])[..] else { unreachable!("a cell has one rig") };
        run_once(rig, study, plan.seed(), trial, poll_ns)
    }
}

fn build(
    study: &Study,
    seed: u64,
    mut reached: Vec<(Systems, [Reached; 2])>,
    routed: Option<&RoutedPlacement>,
    interrupted: &'static AtomicBool,
) -> Result<(Vec<Rig>, Option<GuestHosted>), CampaignError> {
    if let Some(routed) = routed {
        return routed.build(interrupted);
    }
    let networks = study.networks();
    if !networks.is_empty() {
        let rigs = networks.into_iter().map(|network| wifi::rig(study, network, seed, interrupted));
        return Ok((rigs.collect::<Result<_, _>>()?, None));
    }
    let mut rigs = Vec::new();
    for (systems, services) in study.labs() {
        let machines = reached.iter().position(|(known, _)| *known == systems);
        rigs.push(match machines.map(|place| reached.swap_remove(place).1) {
            Some(machines) => remote(study, &systems, &services, machines, interrupted)?,
            None => direct::rig(study, &systems, &services, interrupted)?,
        });
    }
    // So that no trial fails because of a study's processor pinning.
    for rig in &mut rigs {
        for cell in study.cells.iter().filter(|cell| cell.settings.pinning.is_some()) {
            if rig.is_for(cell) {
                rig.network.configure(cell, rig.affinity(cell, Probe::Stream))?;
            }
        }
    }
    Ok((rigs, None))
}

/// Whose CPU time the hosts' CPU figures cover in all of a study's runs on a rig.
fn cpu_scope(rig: &Rig, study: &Study) -> CpuScope {
    let [sender, receiver] = &rig.ends.systems.0;
    if sender.counts_cpu() != receiver.counts_cpu() {
        return CpuScope::Various;
    }
    let mut scopes = study.cells.iter().filter(|cell| rig.is_for(cell)).map(|cell| rig.cpu_scope(cell));
    let Some(first) = scopes.next() else { return CpuScope::Shared };
    match scopes.all(|scope| scope == first) {
        true => first,
        false if study.cells.iter().any(Cell::has_other_programs) => CpuScope::Various,
        false => CpuScope::Shared,
    }
}

/// The testbeds of a study, before they are built.
pub struct RoutedPlacement {
    needs: Requirements,
    /// The guest that holds them, if they are not on this kernel, and why.
    guest: Option<(System, String)>,
}

impl RoutedPlacement {
    /// Finds where a study's testbeds can run; `None` if it has no routers. Starts nothing, but tests this kernel's
    /// capabilities.
    pub fn of(study: &Study, inside: &Placement) -> Result<Option<Self>, CampaignError> {
        let asked = *inside != Placement::WhereNeeded;
        let Topology::Routed(links) = study.topology else {
            return if asked { Err(without_routers()) } else { Ok(None) };
        };
        let mut needs = Requirements {
            rows: study.rows(),
            link_config: study.link_config.clone(),
            links,
            forward_only: study.flows_forward_only(),
            watches_memory: false,
        };
        if let (true, Some(guest)) = (asked, needs.guests().first()) {
            return Err(CampaignError::Usage(format!(
                "--in-vm builds all four hosts in one guest, but some of the study's hosts are guests ({guest}): leave \
                 --in-vm out, or --set 'factors.os=[\"namespace\"]' and 'factors.router_os=[\"namespace\"]'"
            )));
        }
        let system = find_placement(&needs, inside)?;
        // Of testbeds that are not built anew, all blocks would have one figure.
        needs.watches_memory = system.is_none()
            && needs.guests().is_empty()
            && study.measures(|metric| metric.table().is_some());
        if let Some(system) = &system {
            check_guest(study, &needs, system, asked)?;
        }
        let guest = system.map(|system| match asked {
            true => (system, "as --in-vm asks".to_owned()),
            false => (system, format!("because {}", needs.describe_all_missing())),
        });
        Ok(Some(RoutedPlacement { needs, guest }))
    }

    /// The guest that holds the testbeds, and why, in a sentence.
    pub fn guest_and_why(&self) -> Option<String> {
        let (system, why) = self.guest.as_ref()?;
        Some(format!("the whole testbed is built inside a guest ({system}), {why}"))
    }

    /// Whether the testbeds are inside a guest.
    pub fn is_in_guest(&self) -> bool {
        self.guest.is_some()
    }

    fn is_without_guests(&self) -> bool {
        self.guest.is_none() && self.needs.guests().is_empty()
    }

    /// Whether the memory of tables can be watched. Neighbours of the block before are freed after its testbeds, and
    /// would be taken for what the new entries give back.
    fn settle_memory(&self, interrupted: &AtomicBool) -> Result<WatchesMemory, CampaignError> {
        if !self.needs.watches_memory {
            return Ok(WatchesMemory::No);
        }
        if self.needs.rows.iter().all(|row| row.tables.neighbours == 0) {
            return Ok(WatchesMemory::Yes);
        }
        match await_memory(interrupted) {
            // Where it cannot be read, the first table says so.
            Ok(Rest::Settled) | Err(_) => Ok(WatchesMemory::Yes),
            Ok(Rest::Unsettled) => Ok(WatchesMemory::Unsettled),
            Ok(Rest::Interrupted) => Err(CampaignError::Agent(AgentError::Interrupted)),
        }
    }

    /// Builds all testbeds, and the guest that holds them if there is one. Call it from the main thread.
    fn build(
        &self,
        interrupted: &'static AtomicBool,
    ) -> Result<(Vec<Rig>, Option<GuestHosted>), CampaignError> {
        let program = own_program()?;
        let link_config = &self.needs.link_config;
        let mut rigs = Vec::new();
        let Some((system, _)) = &self.guest else {
            let watches_memory = self.settle_memory(interrupted)?;
            for mut plan in self.needs.specs(None) {
                plan.watches_memory = watches_memory;
                let mut own = Routed::build_with(&plan, &program, &AGENT, prepare)?;
                let streams = own.meet()?;
                let carried = own.path_checks.clone();
                let own = Some(Box::new(own));
                let source = RoutedSource { plan, carried, guest: None, process: None, own };
                rigs.push(routed::rig(source, link_config, streams, interrupted)?);
            }
            return Ok((rigs, None));
        };
        say!("stacklab: booting {system} ..");
        let (booted, testbeds, _) = GuestHosted::boot(system, &self.needs, &program, 0)?;
        let version = booted.version.clone();
        let process = (!system.counts_cpu()).then(|| booted.process());
        for HostedTestbed { spec: plan, path_checks: carried, streams } in testbeds {
            let source = RoutedSource { plan, carried, guest: Some(version.clone()), process, own: None };
            rigs.push(routed::rig(source, link_config, streams, interrupted)?);
        }
        Ok((rigs, Some(booted)))
    }
}

pub(crate) fn without_routers() -> CampaignError {
    let what = "--in-vm is for studies with routers (testbed.topology \"routed\")";
    CampaignError::Usage(format!("{what}; a host in a virtual machine is factors.os = [\"linux-6.1\"]"))
}
