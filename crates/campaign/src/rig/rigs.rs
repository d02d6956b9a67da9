//! All rigs of a study.

use crate::CampaignError;
use crate::rig::Rig;
use crate::rig::both_families::BothFamilies;
use crate::rig::direct::DirectRig;
use crate::rig::kernels::Kernels;
use crate::rig::placement::RoutedPlacement;
use crate::rig::remote::RemoteRig;
use crate::rig::remote_host::Reached;
use crate::rig::wifi::WifiRig;
use crate::trial::run::run;
use stacklab_guests::GuestHosted;
use stacklab_model::{Cell, CpuScope, Probe, RunRecord, System, Systems, Topology, Trial, once_each};
use stacklab_store::HostRow;
use stacklab_study::{Plan, Study};
use std::sync::atomic::AtomicBool;

/// The rigs of a study: one for each pair of systems and set of services, for each mechanism between routers and pair
/// of systems, or for each Wi-Fi network. All are up at once, so that each block can use all of them.
///
/// Testbeds of namespaces are built anew for each block: what one is like, such as where its memory lies, changes round
/// trips of a size by some per cent for as long as it stands, differently for each arm. Guests take too long to boot.
pub struct Rigs {
    rigs: Vec<Box<dyn Rig>>,
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

    /// A rig for all cells.
    pub fn of_one(rig: BothFamilies) -> Self {
        Rigs { rigs: vec![Box::new(rig)], _guest: None, kernels: Kernels::default(), anew: None }
    }

    /// A description of each rig in a sentence.
    pub fn describe(&self, study: &Study) -> String {
        let said: Vec<String> = self.rigs.iter().map(|rig| rig.describe(&study.link_config)).collect();
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
    ///
    /// # Errors
    /// When a host is gone.
    pub fn hosts(&mut self) -> Result<Vec<HostRow>, CampaignError> {
        let mut rows = Vec::new();
        for rig in &mut self.rigs {
            rows.extend(rig.hosts(&mut self.kernels)?);
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
        let mut scopes = self.rigs.iter().map(|rig| cpu_scope(rig.as_ref(), study));
        let first = scopes.next().unwrap_or(CpuScope::Shared);
        if scopes.all(|scope| scope == first) { first } else { CpuScope::Various }
    }

    /// Runs one trial, or the arms of an interleaved trial together.
    ///
    /// # Errors
    /// When a host is gone, or the user interrupts.
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
    fn of(&mut self, cells: &[&Cell]) -> Vec<&mut dyn Rig> {
        let place = |cell: &&Cell| self.rigs.iter().position(|rig| rig.is_for(cell));
        let places: Option<Vec<usize>> = cells.iter().map(place).collect();
        let mut places = places.expect("a rig was built for each of the study's cells");
        if places.iter().all(|place| *place == places[0]) {
            places.truncate(1);
        }
        let mut rigs: Vec<Option<&mut dyn Rig>> =
            self.rigs.iter_mut().map(|rig| Some(rig.as_mut() as &mut dyn Rig)).collect();
        let taken = places.into_iter().map(|place| rigs[place].take());
        taken.map(|rig| rig.expect("arms share one rig or none")).collect()
    }
}

/// Rigs, and the guest that holds routed testbeds.
type Built = (Vec<Box<dyn Rig>>, Option<GuestHosted>);

/// Builds the rigs of a study.
fn build(
    study: &Study,
    seed: u64,
    mut reached: Vec<(Systems, [Reached; 2])>,
    routed: Option<&RoutedPlacement>,
    interrupted: &'static AtomicBool,
) -> Result<Built, CampaignError> {
    if let Some(routed) = routed {
        let (rigs, guest) = routed.build(interrupted)?;
        return Ok((rigs.into_iter().map(|rig| -> Box<dyn Rig> { Box::new(rig) }).collect(), guest));
    }
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    let networks = study.networks();
    if !networks.is_empty() {
        for network in networks {
            rigs.push(Box::new(WifiRig::build(study, network, seed, interrupted)?));
        }
        return Ok((rigs, None));
    }
    for (systems, services) in study.labs() {
        let machines = reached.iter().position(|(known, _)| *known == systems);
        rigs.push(match machines.map(|place| reached.swap_remove(place).1) {
            Some(machines) => Box::new(RemoteRig::new(&systems, &services, machines, interrupted)?),
            None => Box::new(DirectRig::build(study, &systems, &services, interrupted)?),
        });
    }
    rigs.iter_mut().try_for_each(|rig| try_processors(rig.as_mut(), study))?;
    Ok((rigs, None))
}

/// Tests a study's processor pinning in advance, so that no trial fails because of it.
fn try_processors(rig: &mut dyn Rig, study: &Study) -> Result<(), CampaignError> {
    for cell in study.cells.iter().filter(|cell| cell.settings.pinning.is_some()) {
        if rig.is_for(cell) {
            let pinning = rig.pinning(cell, Probe::Stream);
            rig.pin(pinning)?;
        }
    }
    Ok(())
}

/// Whose CPU time the hosts' CPU figures cover in all of a study's runs on a rig.
fn cpu_scope(rig: &dyn Rig, study: &Study) -> CpuScope {
    let [sender, receiver] = &rig.ends().systems.0;
    if sender.counts_cpu() != receiver.counts_cpu() {
        return CpuScope::Various;
    }
    let mut scopes = study.cells.iter().filter(|cell| rig.is_for(cell)).map(|cell| rig.cpu_scope(cell));
    let Some(first) = scopes.next() else { return CpuScope::Shared };
    if scopes.all(|scope| scope == first) { first } else { CpuScope::Shared }
}
