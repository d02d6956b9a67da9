//! All rigs of a study.

use crate::CampaignError;
use crate::rig::Rig;
use crate::rig::both_families::{BothFamilies, Way};
use crate::rig::direct::Direct;
use crate::rig::host_pair::Kernels;
use crate::rig::placement::RoutedPlacement;
use crate::rig::remote::Remote;
use crate::rig::remote_host::Reached;
use crate::rig::wifi::Wifi;
use crate::trial::run::run;
use stacklab_guests::GuestHosted;
use stacklab_model::{
    Cell, CpuScope, Family, Generator, Probe, RunRecord, System, Systems, Topology, Trial, once_each,
};
use stacklab_store::HostRow;
use stacklab_study::{Plan, Study};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

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

impl Anew {
    /// `None` for rigs that stand for the whole campaign.
    fn of(
        study: &Study,
        seed: u64,
        routed: Option<RoutedPlacement>,
        interrupted: &'static AtomicBool,
    ) -> Option<Self> {
        let plain = !study.keeps_testbeds
            && study.networks().is_empty()
            && study.labs().iter().all(|(systems, services)| {
                services.is_empty() && systems.0.iter().all(|system| *system == System::Namespace)
            })
            && routed.as_ref().is_none_or(RoutedPlacement::is_without_guests);
        plain.then(|| Anew { study: study.clone(), seed, routed, interrupted, block: None })
    }
}

impl Rigs {
    /// Builds all rigs, except for the real machines, which are already connected. Call it from the main thread.
    ///
    /// # Errors
    /// Those of the first rig that cannot be built; the rigs before it are removed again.
    pub fn build(
        study: &Study,
        seed: u64,
        reached: Vec<(Systems, [Reached; 2])>,
        routed: Option<RoutedPlacement>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, CampaignError> {
        let (rigs, _guest) = build(study, seed, reached, routed.as_ref(), interrupted)?;
        let anew = Anew::of(study, seed, routed, interrupted);
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
        let rigs = vec![BothFamilies::rig(name, ways, reverse, agents)?];
        Ok(Rigs { rigs, _guest: None, kernels: Kernels::default(), anew: None })
    }

    /// A description of each rig in a sentence.
    pub fn describe(&self, study: &Study) -> String {
        let said: Vec<String> =
            self.rigs.iter().map(|rig| rig.network.describe(&study.link_config)).collect();
        // Where the MTU is a factor, the testbed's own is not that of all runs.
        let mtu = format!("MTU {}", study.link_config.mtu);
        let is_factor =
            study.cells.iter().any(|cell| cell.settings.mtu.is_some_and(|mtu| mtu != study.link_config.mtu));
        let said: Vec<String> = match is_factor {
            true => said.into_iter().map(|text| text.replacen(&mtu, "MTU by factor", 1)).collect(),
            false => said,
        };
        match study.topology {
            Topology::Link => said.join("; "),
            // What all have in common is said once.
            _ => once_each(said.iter().flat_map(|testbed| testbed.lines())).join("\n"),
        }
    }

    /// Each host's facts.
    pub fn hosts(&mut self) -> Result<Vec<HostRow>, CampaignError> {
        let mut rows = Vec::new();
        for rig in &mut self.rigs {
            rows.extend(rig.network.hosts(&mut rig.ends, &mut self.kernels)?);
        }
        Ok(rows)
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

    /// Whose CPU time the hosts' CPU figures cover in all of a study's runs.
    pub fn cpu_scope(&self, study: &Study) -> CpuScope {
        let mut scopes = self.rigs.iter().map(|rig| cpu_scope(rig, study));
        let first = scopes.next().unwrap_or(CpuScope::Shared);
        if scopes.all(|scope| scope == first) { first } else { CpuScope::Various }
    }

    /// Runs one trial, or the arms of an interleaved trial together.
    pub fn run(
        &mut self,
        study: &Study,
        plan: &Plan,
        arms: &[Trial],
    ) -> Result<Vec<RunRecord>, CampaignError> {
        if let Some(trial) = arms.first() {
            self.stand_for(trial.block)?;
        }
        let cells: Vec<&Cell> = arms.iter().map(|trial| &trial.cell).collect();
        run(&mut self.of(&cells), study, plan, arms)
    }

    /// The rigs of cells that are measured together: that of all of them, or one for each in their order.
    ///
    /// # Panics
    /// For a cell of another study, and if only some of the cells share a rig.
    fn of(&mut self, cells: &[&Cell]) -> Vec<&mut Rig> {
        let place = |cell: &&Cell| self.rigs.iter().position(|rig| rig.is_for(cell));
        let places: Option<Vec<usize>> = cells.iter().map(place).collect();
        let mut places = places.expect("a rig was built for each of the study's cells");
        if places.iter().all(|place| *place == places[0]) {
            places.truncate(1);
        }
        let mut rigs: Vec<Option<&mut Rig>> = self.rigs.iter_mut().map(Some).collect();
        let taken = places.into_iter().map(|place| rigs[place].take());
        taken.map(|rig| rig.expect("arms share one rig or none")).collect()
    }
}

/// Builds the rigs of a study, and the guest that holds routed testbeds.
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
        let rigs = networks.into_iter().map(|network| Wifi::build(study, network, seed, interrupted));
        return Ok((rigs.collect::<Result<_, _>>()?, None));
    }
    let mut rigs = Vec::new();
    for (systems, services) in study.labs() {
        let machines = reached.iter().position(|(known, _)| *known == systems);
        rigs.push(match machines.map(|place| reached.swap_remove(place).1) {
            Some(machines) => Remote::rig(&systems, &services, machines, interrupted)?,
            None => Direct::build(study, &systems, &services, interrupted)?,
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
        false if study.cells.iter().any(|cell| Generator::of(cell).is_other()) => CpuScope::Various,
        false => CpuScope::Shared,
    }
}
