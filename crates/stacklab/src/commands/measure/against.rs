//! `stacklab measure .. --against FAMILY`: both families to one host in turns, until the verdicts are sure.

use crate::commands::measure::comparison::Comparison;
use crate::commands::measure::ends::{both_families, reach};
use crate::commands::measure::options::{CommonOptions, MeasureRequest};
use crate::commands::measure::slow;
use crate::commands::measure::study::{Arms, study_text};
use crate::failure::Failure;
use stacklab_campaign::rig::agent_process::AgentProcess;
use stacklab_campaign::rig::both_families::{BothFamilies, Way};
use stacklab_campaign::rig::rigs::Rigs;
use stacklab_model::{CpuScope, Family};
use stacklab_traffic::host::route::route_to;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Measures both families in turns and prints the verdicts.
///
/// # Errors
/// When the request does not fit, the host lacks a family, an agent is gone, or the user interrupts. What was measured
/// until then is printed.
pub(super) fn against(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    // Wrong options are found before a host is asked.
    study_text(common, request, baseline, Arms::Interleaved)?;
    let (rig, _local) = connect(common, interrupted)?;
    let mut rigs = Rigs::of_one(rig);
    let arms = slow::arms(common, request, baseline, &mut rigs)?;
    let comparison = Comparison::new(common, study_text(common, request, baseline, arms)?)?;
    let (description, hosts) = (rigs.describe(&comparison.study), rigs.hosts()?);
    let cpu_scope = match arms {
        Arms::Interleaved => CpuScope::Threads,
        _ => rigs.cpu_scope(&comparison.study),
    };
    comparison.measure(description, cpu_scope, hosts, |study, plan, arms| rigs.run(study, plan, arms))
}

/// This host and the other one, over both families, with the agent's process on this host.
fn connect(
    common: &CommonOptions,
    interrupted: &'static AtomicBool,
) -> Result<(BothFamilies, AgentProcess), Failure> {
    let (mut ways, mut others) = (BTreeMap::new(), Vec::new());
    for (family, address) in both_families(common)? {
        let there = address.address.clone();
        let here = route_to(&there, None).map_err(Failure::unreachable)?;
        ways.insert(family, Way { here, there });
        others.push(address);
    }
    let (there, _) = reach(common, &others, interrupted)?;
    let (local, here) = AgentProcess::here(interrupted)?;
    let (name, reverse) = (common.host.clone(), common.reverse);
    Ok((BothFamilies::new(name, ways, reverse, [here, there])?, local))
}
