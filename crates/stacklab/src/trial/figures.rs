//! Makes a run from a trial's evidence.

use crate::trial::evidence::{Evidence, report_sources};
use crate::trial::{clock_correction, guest_cpu, other_load, routers, services};
use stacklab_model::{Direction, Probe, RunRecord, Trial, TrialSpec};
use stacklab_traffic::trial::{Figures, Path, figures as reported};

/// Makes the run of a trial: first the figures from the hosts' reports alone, then the figures that other evidence
/// adds or removes. A pure function: the same evidence gives the same run.
pub fn figures(
    trial: &Trial,
    spec: TrialSpec,
    path: &Path,
    direction: Direction,
    evidence: Evidence,
) -> RunRecord {
    let Evidence { collected, guest_cpu, services, routers, clocks, other_load, together } = evidence;
    let sources = &report_sources(direction);
    let mut made = reported(path, &spec, direction, collected.reports, together);
    if let Some(asked) = services {
        made = services::counted(made, sources, &asked);
    }
    made = guest_cpu::counted(made, sources, &guest_cpu, &spec, path, collected.wall_ns);
    if let Some(counted) = &routers {
        made = routers::counted(made, sources, counted, &spec, path.mtu);
    }
    made.warnings.extend(other_load.as_ref().and_then(other_load::warning));
    let Figures { status, mut values, drops, warnings, host_reports } =
        clock_correction::corrected(made, sources, &clocks);
    if trial.probe == Probe::Paced {
        // Other figures of a stream are its flood's.
        values.retain(|metric, _| metric.is_of(Probe::Paced));
    }
    RunRecord {
        trial: trial.clone(),
        spec,
        started_unix_ns: collected.started_unix_ns,
        wall_ns: collected.wall_ns,
        status,
        values,
        drops,
        host_reports,
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{path, trial_and_spec};
    use stacklab_model::{RunStatus, Service};
    use stacklab_testbed::services::Asked;
    use stacklab_traffic::trial::Collected;

    #[test]
    fn a_trial_that_an_agent_could_not_do_is_an_invalid_run_with_its_reason() {
        let (trial, spec) = trial_and_spec();
        let reports = Err("receiver could not listen".to_owned());
        let collected = Collected { started_unix_ns: 3, wall_ns: 5, reports };
        let silent = [(Service::Dns, Asked { asked: 2, answered: 0 })].into();
        let evidence = Evidence { services: Some(silent), ..Evidence::of(collected) };
        let run = figures(&trial, spec.clone(), &path(), Direction::Forward, evidence);
        assert_eq!(run.status, RunStatus::Invalid(vec!["receiver could not listen".to_owned()]));
        assert_eq!((run.started_unix_ns, run.wall_ns, &run.spec), (3, 5, &spec));
        assert!(run.values.is_empty() && run.host_reports.is_empty());
        let codes: Vec<&str> = run.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["services"]);
    }
}
