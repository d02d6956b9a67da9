//! Other programs as generators of trials: found, driven in the hosts of a testbed, and their figures made a run's.

mod drive;
mod figures;

pub(crate) use figures::{GeneratorEvidence, from_generator, with_bias};

use crate::CampaignError;
use crate::rig::Rig;
use drive::drive;
use figures::reports;
use stacklab_model::{Cell, Counters, Generator, Pacing, Probe, TrialSpec, once_each};
use stacklab_protocols::generators::{Traffic, tool};
use stacklab_study::Study;
use stacklab_testbed::{find_in, first_line};
use stacklab_traffic::foreign::now_ns;
use stacklab_traffic::host::now_unix_ns;
use stacklab_trial::{Collected, Path};
use std::thread;
use std::time::{Duration, Instant};

/// How long packets that are under way at the end are waited for.
const UNDER_WAY: Duration = Duration::from_millis(20);

/// The programs of a study's generators that are not stacklab's own: their versions, with their folders.
pub struct Programs(Vec<String>);

impl Programs {
    /// Finds every program that a study needs.
    pub fn of(study: &Study) -> Result<Self, CampaignError> {
        let of = |cell: &Cell| (Generator::of(cell), cell.settings.programs.clone());
        let generators = once_each(study.cells.iter().map(of));
        let found = generators.into_iter().filter(|(generator, _)| generator.is_other());
        let found = found.map(|(generator, folder)| {
            let (about, folder) = (generator.definition(), folder.as_deref());
            let mut programs = about.programs.iter();
            programs.try_for_each(|program| find_in(folder, program, about.remedy).map(drop))?;
            let version = version(generator, folder)?;
            Ok(folder.map_or_else(|| version.clone(), |folder| format!("{version} of {folder}")))
        });
        found.collect::<Result<Vec<_>, CampaignError>>().map(Programs)
    }

    /// `; generators: iperf 3.12 (cJSON 1.7.15), ..`, to be said behind the testbed; empty if there are none.
    pub fn describe(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("; generators: {}", self.0.join(", "))
    }
}

fn version(generator: Generator, folder: Option<&str>) -> Result<String, CampaignError> {
    let Some(tool) = tool(generator) else { return Ok(format!("stacklab {}", env!("CARGO_PKG_VERSION"))) };
    let asked = (tool.version)();
    let file = find_in(folder, asked.program, generator.definition().remedy)?;
    Ok(first_line(&file, &asked.arguments))
}

/// Runs the programs of a cell's generator on a rig that is prepared, and gives what was observed.
pub(crate) fn run(
    rig: &mut Rig,
    cell: &Cell,
    path: &Path,
    spec: &TrialSpec,
) -> Result<(Collected, GeneratorEvidence), CampaignError> {
    let generator = Generator::of(cell);
    let (Some(tool), Some(hosts)) = (tool(generator), rig.network.tool_hosts()) else {
        return Err(CampaignError::Usage(format!(
            "generator {generator} runs between namespaces of this kernel, and this testbed is inside a guest, where its program is not \
             installed: leave the generator out, or add the missing modules to this kernel (stacklab doctor)"
        )));
    };
    let programs = cell.settings.programs.as_deref();
    let version = version(generator, programs)?;
    let traffic = traffic(path, spec);
    let before = rig.ends.counters()?;
    let (started_unix_ns, clock, first_ns) = (now_unix_ns(), Instant::now(), now_ns());
    let driven = drive(hosts, generator, (tool, &version, programs), &traffic, || rig.ends.is_interrupted())?;
    thread::sleep(UNDER_WAY);
    let last_ns = now_ns();
    let wall_ns = clock.elapsed().as_nanos() as u64;
    let after = rig.ends.counters()?;
    let counted = [0, 1].map(|host| increase(&before[host], &after[host]));
    let reports = reports(path, spec, tool, &driven, counted, [first_ns, last_ns]);
    let collected = Collected { started_unix_ns, wall_ns, reports: Ok(vec![reports]) };
    Ok((collected, GeneratorEvidence { generator, figures: driven.figures }))
}

fn traffic(path: &Path, spec: &TrialSpec) -> Traffic {
    Traffic {
        transport: spec.transport,
        message_bytes: spec.message_bytes,
        length: spec.probe.length,
        per_second: match spec.probe.pacing {
            Pacing::Schedule(per_second) => Some(per_second),
            _ => None,
        },
        round_trips: spec.probe.probe == Probe::Echo,
        flows: spec.flows,
        tuning: spec.tuning.clone(),
        destination: path.destination(),
        source: path.sender.ip(),
        listen: path.receiver.ip(),
    }
}

fn increase(before: &Counters, after: &Counters) -> Counters {
    let by = after.0.iter().filter_map(|(name, after)| {
        let by = after.checked_sub(before.get(name)).filter(|by| *by > 0)?;
        Some((name.clone(), by))
    });
    Counters(by.collect())
}
