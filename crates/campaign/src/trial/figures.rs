//! Makes a run from a trial's evidence.

use crate::generator::{from_generator, with_bias};
use crate::trial::evidence::{Evidence, report_sources};
use crate::trial::{adapter, channel, clock_correction, guest_cpu, other_load, routers, services, wifi};
use stacklab_model::{Direction, Probe, RunRecord, Trial, TrialSpec};
use stacklab_trial::{Figures, Path, figures as reported};

/// Makes the run of a trial: first the figures from the hosts' reports alone, then the figures that other evidence
/// adds or removes. A pure function: the same evidence gives the same run.
pub fn figures(
    trial: &Trial,
    spec: TrialSpec,
    path: &Path,
    direction: Direction,
    evidence: Evidence,
) -> RunRecord {
    let Evidence { collected, guest_cpu, services, routers, wifi, adapters, clocks, .. } = evidence;
    let Evidence { other_load, generator, joint, .. } = evidence;
    let sources = &report_sources(direction);
    let held_up = joint.held_up;
    let mut made = match (generator, collected.reports) {
        (Some(generator), Ok(reports)) if reports.len() == 1 => {
            from_generator(&spec, path, generator, reports.into_iter().next().expect("there is one"))
        }
        (_, reports) => reported(path, &spec, direction, reports, joint),
    };
    if trial.cell.settings.generator.is_some() {
        made = with_bias(made, &spec, path);
    }
    if let Some(asked) = services {
        made = services::counted(made, sources, &asked);
    }
    made = guest_cpu::counted(made, sources, &guest_cpu, &spec, path, collected.wall_ns);
    if let Some(counted) = &routers {
        made = routers::counted(made, sources, counted, &spec, path.mtu);
    }
    if let Some(seen) = &wifi {
        made = channel::counted(wifi::checked(made, sources, seen, spec.transport), &spec);
    }
    made = adapter::checked(made, sources, &adapters);
    made.warnings.extend(other_load.as_ref().and_then(|load| other_load::warning(load, held_up)));
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
    use crate::trial::clock_offset::ClockSync;
    use crate::trial::fixtures::{path, received, trial_and_spec};
    use stacklab_model::{Ends, HostReport, LARGEST_NUMBER, RunStatus, Service, too_large};
    use stacklab_report::{MeasurementText, measurement};
    use stacklab_testbed::Ticks;
    use stacklab_testbed::services::Asked;
    use stacklab_traffic::stats::clock::Offset;
    use stacklab_trial::Collected;

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

    /// Sets every count and time of a report, which others may have made up.
    fn set_all(value: &mut serde_json::Value, number: u64) {
        match value {
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| set_all(item, number)),
            serde_json::Value::Object(fields) => {
                let fields =
                    fields.iter_mut().filter(|(name, _)| *name != "endpoint" && *name != "offset_ns");
                fields.for_each(|(_, value)| set_all(value, number));
            }
            serde_json::Value::Number(_) => *value = number.into(),
            _ => {}
        }
    }

    fn report_of(number: u64, offset_ns: i64) -> HostReport {
        let mut report = serde_json::to_value(received(offset_ns, 1.0)).unwrap();
        for name in ["interface.tx_packets", "interface.rx_dropped", "ip.FragCreates", "ip6.ReasmOKs"] {
            report["counters"][name] = number.into();
        }
        report["flow_bytes"] = vec![number; 3].into();
        set_all(&mut report, number);
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn the_largest_numbers_that_an_agent_may_answer_overflow_nothing() {
        let far = LARGEST_NUMBER as i64;
        let before = Offset { offset_ns: far, bound_ns: LARGEST_NUMBER, at_ns: 0 };
        let after = Offset { offset_ns: -far, bound_ns: 0, at_ns: LARGEST_NUMBER };
        for (sent, received) in [(0, LARGEST_NUMBER), (LARGEST_NUMBER, 0), (LARGEST_NUMBER, LARGEST_NUMBER)] {
            for transport in ["udp", "tcp"] {
                let (trial, mut spec) = trial_and_spec();
                spec.transport = transport.parse().unwrap();
                let pair = Ends { sender: report_of(sent, far), receiver: report_of(received, far) };
                let collected = Collected {
                    started_unix_ns: 3,
                    wall_ns: LARGEST_NUMBER,
                    reports: Ok(vec![pair.clone(), pair]),
                };
                let most = Ticks { user: u64::MAX, system: u64::MAX };
                let evidence = Evidence {
                    clocks: ClockSync::Compared { before, after: Ok(after) },
                    guest_cpu: [Some([Ticks::default(), most]), None],
                    ..Evidence::of(collected)
                };
                let run = figures(&trial, spec, &path(), Direction::Both, evidence);
                // It can be stored and read again.
                let json = serde_json::to_string(&run).unwrap();
                assert_eq!(too_large(&json), None, "{json}");
                let about = MeasurementText { version: "0", direction: Direction::Both, rows: true };
                let text = measurement(&run, &about);
                assert!(text.contains("throughput"), "{text}");
            }
        }
    }
}
