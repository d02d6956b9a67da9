//! `stacklab measure .. --against FAMILY`: both families to one host in turns, until the verdicts are sure.

use crate::campaign::measure;
use crate::campaign::progress::Progress;
use crate::campaign::record::conclude;
use crate::campaign::sources::{StudySource, new_seed};
use crate::cli::measure::{CommonOptions, MeasureRequest};
use crate::commands::measure::ends::{addresses, reach};
use crate::commands::measure::study::study_text;
use crate::commands::report;
use crate::failure::Failure;
use crate::rig::agent_process::AgentProcess;
use crate::rig::both_families::{BothFamilies, Way};
use crate::rig::rigs::Rigs;
use stacklab_model::{CpuScope, Family};
use stacklab_report::Format;
use stacklab_store::{Campaign, Record, StoreError};
use stacklab_study::Plan;
use stacklab_traffic::host::route::route_to;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Measures both families in turns and prints the verdicts.
///
/// # Errors
/// When the request does not fit, the host lacks a family, an agent is gone, or the user interrupts. What was measured
/// until then is printed.
pub fn against(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    let source =
        StudySource { name: "measure.toml".to_owned(), text: study_text(common, request, baseline)? };
    let study = source.check(None, &[])?;
    if let Some(path) = common.out.as_ref().filter(|path| path.exists()) {
        return Err(StoreError::Exists { path: path.clone() }.into());
    }
    let (rig, _local) = meet(common, interrupted)?;
    let mut rigs = Rigs::of_one(Box::new(rig));
    // Without a name, the record is only for this verdict. With one nothing else is made, which a kill would leave
    // behind.
    let folder = if common.out.is_none() { Some(tempfile::tempdir()) } else { None };
    let folder = folder
        .transpose()
        .map_err(|reason| Failure::Output { what: "a folder for the record".to_owned(), reason })?;
    let unnamed = folder.as_ref().map(|folder| folder.path().join("measure.stacklab"));
    let path = common.out.clone().or(unnamed).expect("one of both is there");
    let campaign = Campaign {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ns: now_unix_ns(),
        study_name: source.name,
        study_text: source.text,
        scale: None,
        settings: Vec::new(),
        seed: new_seed(),
        testbed_description: rigs.describe(&study),
        cpu_scope: CpuScope::Threads,
    };
    let mut record = Record::create(&path, &campaign)?;
    for host in rigs.hosts()? {
        record.put_host(&host)?;
    }
    let plan = Plan::new(&study, campaign.seed);
    let mut progress = Progress::new();
    let measured = measure(&study, &plan, &mut rigs, &mut record, &mut progress);
    progress.end();
    let findings = conclude(&record)?;
    report::print(&findings, if common.json { Format::Json } else { Format::Text })?;
    match measured {
        // There is no record to go on with.
        Err(Failure::Interrupted(_)) => Err(AgentError::Interrupted.into()),
        Ok(()) if findings.valid_runs == 0 => Err(Failure::NothingValid),
        measured => measured,
    }
}

/// This host and the other one, over both families, with the agent's process on this host.
fn meet(
    common: &CommonOptions,
    interrupted: &'static AtomicBool,
) -> Result<(BothFamilies, AgentProcess), Failure> {
    let (mut ways, mut others) = (BTreeMap::new(), Vec::new());
    for address in addresses(common)? {
        let there = address.address.clone();
        let family = Family::of(there.ip());
        if ways.contains_key(&family) {
            continue;
        }
        let here = route_to(&there, None).map_err(|error| Failure::Unreachable(error.to_string()))?;
        ways.insert(family, Way { here, there });
        others.push(address);
    }
    if let Some(missing) = Family::ALL.iter().find(|family| !ways.contains_key(family)) {
        return Err(Failure::Unreachable(format!(
            "{} has no {missing} address: name a host that has both, or both addresses of one, as in 192.0.2.7,2001:db8::7",
            common.host
        )));
    }
    let (there, _) = reach(common, &others, interrupted)?;
    let (local, here) = AgentProcess::here(interrupted)?;
    let (name, reverse) = (common.host.clone(), common.reverse);
    Ok((BothFamilies::new(name, ways, reverse, [here, there])?, local))
}
