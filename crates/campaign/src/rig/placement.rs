//! Places and builds the testbeds of a study with routers.

use crate::CampaignError;
use crate::error::own_program;
use crate::rig::Rig;
use crate::rig::routed::RoutedNetwork;
use crate::rig::routed_source::RoutedSource;
use stacklab_guests::{GuestHosted, Placement, Requirements, find_placement, prepare};
use stacklab_model::{Generator, System, Topology};
use stacklab_study::Study;
use stacklab_testbed::{AGENT, Routed};
use std::sync::atomic::AtomicBool;

/// The testbeds of a study, before they are built.
pub struct RoutedPlacement {
    needs: Requirements,
    /// The guest that holds them, if they are not on this kernel.
    system: Option<System>,
    why: Option<String>,
}

impl RoutedPlacement {
    /// Finds where a study's testbeds can run; `None` if it has no routers. Starts nothing, but tests this kernel's
    /// capabilities.
    pub fn of(study: &Study, inside: &Placement) -> Result<Option<Self>, CampaignError> {
        let asked = *inside != Placement::WhereNeeded;
        let Topology::Routed(links) = study.topology else {
            return if asked { Err(without_routers()) } else { Ok(None) };
        };
        let forward_only = study.flows_forward_only();
        let needs =
            Requirements { rows: study.rows(), link_config: study.link_config.clone(), links, forward_only };
        if let (true, Some(guest)) = (asked, needs.guests().first()) {
            return Err(CampaignError::Usage(format!(
                "--in-vm builds all four hosts in one guest, but some of the study's hosts are guests ({guest}): leave \
                 --in-vm out, or --set 'factors.os=[\"namespace\"]' and 'factors.router_os=[\"namespace\"]'"
            )));
        }
        let system = find_placement(&needs, inside)?;
        if let (Some(system), Some(generator)) =
            (&system, study.cells.iter().map(Generator::of).find(|generator| generator.is_other()))
        {
            return Err(CampaignError::Usage(format!(
                "generator {generator} runs between namespaces of this kernel, and the study's testbeds would be in {system}, where \
                 its program is not installed: set factors.generator = [\"stacklab\"], or add the missing modules to this kernel (see: stacklab doctor)"
            )));
        }
        let why = system.as_ref().map(|_| {
            if asked {
                "as --in-vm asks".to_owned()
            } else {
                format!("because {}", needs.describe_all_missing())
            }
        });
        Ok(Some(RoutedPlacement { needs, system, why }))
    }

    /// The guest that holds the testbeds, and why, in a sentence.
    pub fn guest_and_why(&self) -> Option<String> {
        let (system, why) = self.system.as_ref().zip(self.why.as_ref())?;
        Some(format!("the whole testbed is built inside a guest ({system}), {why}"))
    }

    /// Whether the testbeds are inside a guest.
    pub fn is_in_guest(&self) -> bool {
        self.system.is_some()
    }

    /// Whether no guest is part of any testbed.
    pub(crate) fn is_without_guests(&self) -> bool {
        self.system.is_none() && self.needs.guests().is_empty()
    }

    /// Builds all testbeds, and the guest that holds them if there is one. Call it from the main thread.
    pub(crate) fn build(
        &self,
        interrupted: &'static AtomicBool,
    ) -> Result<(Vec<Rig>, Option<GuestHosted>), CampaignError> {
        let (program, link_config) = (own_program()?, &self.needs.link_config);
        let mut rigs = Vec::new();
        let Some(system) = &self.system else {
            for plan in self.needs.specs(None) {
                let mut own = Routed::build_with(&plan, &program, &AGENT, prepare)?;
                let streams = own.meet()?;
                let carried = own.path_checks().to_vec();
                let own = Some(Box::new(own));
                let source = RoutedSource { plan, carried, guest: None, process: None, own };
                rigs.push(RoutedNetwork::rig(source, link_config, streams, interrupted)?);
            }
            return Ok((rigs, None));
        };
        eprintln!("stacklab: booting {system} ..");
        let (booted, testbeds, _) = GuestHosted::boot(system, &self.needs, &program, 0)?;
        let version = booted.version().to_owned();
        let process = (!system.counts_cpu()).then(|| booted.process());
        for (plan, carried, streams) in testbeds {
            let source = RoutedSource { plan, carried, guest: Some(version.clone()), process, own: None };
            rigs.push(RoutedNetwork::rig(source, link_config, streams, interrupted)?);
        }
        Ok((rigs, Some(booted)))
    }
}

/// The error for `--in-vm` with a study that has no routers.
pub fn without_routers() -> CampaignError {
    let what = "--in-vm is for studies with routers (testbed.topology \"routed\")";
    CampaignError::Usage(format!("{what}; a host in a virtual machine is factors.os = [\"linux-6.1\"]"))
}
