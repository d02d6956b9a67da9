//! `stacklab measure .. --against FAMILY`: both families to one host in turns, until the verdicts are sure.

use crate::campaign::measure;
use crate::campaign::progress::Progress;
use crate::campaign::record::conclude;
use crate::campaign::sources::{StudySource, new_seed, now_unix_ns};
use crate::cli::measure::{CommonOptions, MeasureRequest};
use crate::commands::measure::ends::{LocalAgent, addresses, reach};
use crate::commands::measure::study::study_text;
use crate::commands::report;
use crate::failure::Failure;
use crate::rig::Rig;
use crate::rig::host_pair::HostPair;
use crate::rig::kernels::Kernels;
use crate::rig::rigs::Rigs;
use crate::trial::evidence::Evidence;
use stacklab_model::{Cell, CpuScope, Family, LinkConfig, ScopedAddr, Services, System, Systems};
use stacklab_report::Format;
use stacklab_store::{Campaign, HostRow, Record, StoreError};
use stacklab_study::Plan;
use stacklab_traffic::host::route::{Route, route_to};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::trial::{Collected, Path};
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
    let (rig, _local) = BothFamilies::meet(common, interrupted)?;
    let mut rigs = Rigs::of_one(Box::new(rig));
    // Without a name, the record is only for this verdict. With one nothing else is made, which a kill would leave behind.
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

/// This host and another one, over both families.
struct BothFamilies {
    ends: HostPair,
    /// The other host, as the user names it.
    name: String,
    ways: BTreeMap<Family, Way>,
    /// Whether the other host is the sender.
    reverse: bool,
}

/// The way to the other host in one family.
struct Way {
    here: Route,
    there: ScopedAddr,
}

impl BothFamilies {
    fn meet(common: &CommonOptions, interrupted: &'static AtomicBool) -> Result<(Self, LocalAgent), Failure> {
        let (mut ways, mut others) = (BTreeMap::new(), Vec::new());
        for place in addresses(common)? {
            let there = place.address.clone();
            let family = Family::of(there.ip());
            if ways.contains_key(&family) {
                continue;
            }
            let here = route_to(&there, None).map_err(|error| Failure::Unreachable(error.to_string()))?;
            ways.insert(family, Way { here, there });
            others.push(place);
        }
        if let Some(lacking) = Family::ALL.iter().find(|family| !ways.contains_key(family)) {
            return Err(Failure::Unreachable(format!(
                "{} has no {lacking} address: name a host that has both, or both addresses of one, as in 192.0.2.7,2001:db8::7",
                common.host
            )));
        }
        let (there, _) = reach(common, &others, interrupted)?;
        let (local, here) = LocalAgent::start(interrupted)?;
        let agents = if common.reverse { [there, here] } else { [here, there] };
        let systems = Systems([System::Namespace, System::Namespace]);
        let ends = HostPair::greet(&systems, &Services::default(), agents)?;
        let (name, reverse) = (common.host.clone(), common.reverse);
        Ok((BothFamilies { ends, name, ways, reverse }, local))
    }
}

impl Rig for BothFamilies {
    fn ends(&self) -> &HostPair {
        &self.ends
    }

    fn ends_mut(&mut self) -> &mut HostPair {
        &mut self.ends
    }

    fn describe(&self, _link_config: &LinkConfig) -> String {
        let from = if self.reverse { "from" } else { "to" };
        let ways = self.ways.values().map(|way| {
            let Way { here, there } = way;
            format!("{there} over {} (MTU {})", here.interface, here.mtu)
        });
        format!("{from} {}: {}", self.name, ways.collect::<Vec<_>>().join(", "))
    }

    fn hosts(&mut self, _kernels: &mut Kernels) -> Result<Vec<HostRow>, Failure> {
        let mut kinds = ["this host".to_owned(), self.name.clone()];
        if self.reverse {
            kinds.reverse();
        }
        // Without noise floors: they take longer than an answer.
        Ok(self.ends.hosts(now_unix_ns(), kinds, AgentClient::facts)?)
    }

    fn cpu_scope(&self, _cell: &Cell) -> CpuScope {
        if self.ends.one_machine() { CpuScope::Shared } else { CpuScope::Host }
    }

    fn path(&self, _link_config: &LinkConfig, cell: &Cell) -> Path {
        let Way { here, there } = &self.ways[&cell.family];
        // Its zone is called so here only.
        let (here_address, there) = (here.address.clone(), there.elsewhere());
        let [sender, receiver] = if self.reverse { [there, here_address] } else { [here_address, there] };
        // The path was not planned: its MTU and offloads are taken unchanged.
        Path {
            sender,
            receiver,
            mtu: here.mtu,
            planned_mtu: false,
            offloads: true,
            rate: None,
            shared: false,
            nat: None,
        }
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, Failure> {
        Ok(Evidence::of_each(collected?))
    }
}
