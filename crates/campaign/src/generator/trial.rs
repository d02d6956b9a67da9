//! A trial that another program drives.

use crate::CampaignError;
use crate::generator::drive::drive;
use crate::generator::figures::{GeneratorEvidence, reports};
use crate::generator::programs::version;
use crate::rig::Rig;
use crate::trial::evidence::Evidence;
use crate::trial::other_load::LoadSample;
use stacklab_model::{Cell, Counters, Generator, Pacing, Probe, TrialSpec};
use stacklab_protocols::generators::{Traffic, tool};
use stacklab_traffic::foreign::now_ns;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_trial::{Collected, Path};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// How long packets that are under way at the end are waited for.
const UNDER_WAY: Duration = Duration::from_millis(20);

/// Runs the programs of a cell's generator on a rig that is prepared, and gives what was observed.
pub(crate) fn run(
    rig: &mut Rig,
    cell: &Cell,
    path: &Path,
    spec: &TrialSpec,
    seed: u64,
) -> Result<Evidence, CampaignError> {
    let generator = Generator::of(cell);
    let (Some(tool), Some(_)) = (tool(generator), rig.network.tool_hosts()) else {
        return Err(not_here(generator));
    };
    let programs = cell.settings.programs.as_deref();
    let version = version(generator, programs)?;
    let traffic = traffic(path, spec);
    rig.network.begin(&mut rig.ends, seed)?;
    let before = rig.ends.counters()?;
    let (started_unix_ns, clock, load, first_ns) =
        (now_unix_ns(), Instant::now(), LoadSample::now(), now_ns());
    let hosts = rig.network.tool_hosts().ok_or_else(|| not_here(generator))?;
    let driven = drive(hosts, generator, (tool, &version, programs), &traffic, || rig.ends.is_interrupted())?;
    thread::sleep(UNDER_WAY);
    let last_ns = now_ns();
    let wall_ns = clock.elapsed().as_nanos() as u64;
    let other_load = load.until(&LoadSample::now());
    let after = rig.ends.counters()?;
    let counted = [0, 1].map(|host| increase(&before[host], &after[host]));
    let reports = reports(path, spec, tool, &driven, counted, [first_ns, last_ns]);
    let collected = Collected { started_unix_ns, wall_ns, reports: Ok(vec![reports]) };
    let mut evidence = Evidence::of(collected);
    rig.network.end(&mut rig.ends, std::slice::from_mut(&mut evidence))?;
    evidence.other_load = Some(other_load);
    evidence.generator = Some(GeneratorEvidence { generator, figures: driven.figures });
    Ok(evidence)
}

fn not_here(generator: Generator) -> CampaignError {
    CampaignError::Usage(format!(
        "generator {generator} runs between namespaces of this kernel, and this testbed is inside a guest, where its program is not \
         installed: leave the generator out, or add the missing modules to this kernel (stacklab doctor)"
    ))
}

/// What the programs are to send, by the plan.
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
    Counters(by.collect::<BTreeMap<_, _>>())
}
