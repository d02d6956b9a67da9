//! Makes a run from a trial's evidence.

use crate::generator::{from_generator, with_bias};
use crate::program;
use crate::rig::adapter;
use crate::trial::Evidence;
use crate::trial::clock::ClockSync;
use crate::trial::source::{ReportSource, report_sources};
use crate::trial::{clock, other_load, routers, sockets, wifi};
use stacklab_model::{
    Counters, CpuScope, CpuSource, CpuTime, Direction, Ends, EntryMemory, HostReport, MAX_NUMBER, Probe,
    RunRecord, Service, Trial, TrialSpec, Value, Warning,
};
use stacklab_testbed::Ticks;
use stacklab_testbed::services::Asked;
use stacklab_trial::validate::Limits;
use stacklab_trial::{Figures, Path, figures as reported, results};
use std::collections::BTreeMap;

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
    let Evidence { other_load, generator, program, joint, entry_memory, .. } = evidence;
    let sources = &report_sources(direction);
    let held_up = joint.held_up;
    let mut made = match (generator, program, collected.reports.map(into_one)) {
        (Some(generator), _, Ok(Ok(reports))) => from_generator(&spec, path, generator, reports),
        (_, Some(program), Ok(Ok(reports))) => program::figures(path, program, reports),
        (_, _, Ok(Ok(reports))) if trial.probe == Probe::Sockets => sockets::figures(reports),
        (_, _, reports) => {
            let reports = reports.map(|reports| reports.map_or_else(|many| many, |one| vec![one]));
            let one_way = !matches!(clocks, ClockSync::Unknown(_));
            let limits = Limits { one_way, ..collected.limits };
            reported(path, &spec, direction, reports, joint, &limits)
        }
    };
    if trial.cell.settings.generator.is_some() {
        made = with_bias(made, &spec, path);
    }
    if let Some(asked) = services {
        made = with_services(made, sources, &asked);
    }
    made = with_guest_cpu(made, sources, &guest_cpu, &spec, path, collected.wall_ns);
    if let Some(counted) = &routers {
        made = routers::add_router_figures(made, sources, counted, &spec, path.mtu);
    }
    add_entry_memory(&mut made, &entry_memory, &spec);
    if let Some(seen) = &wifi {
        made = wifi::with_channel(wifi::apply_stations(made, sources, seen, spec.transport), &spec);
    }
    made = adapter::apply_adapters(made, sources, &adapters);
    let other_load = other_load.as_ref().and_then(|load| other_load::warning(load, held_up));
    made.warnings.extend(warn_of_quota(&made, collected.wall_ns).or(other_load));
    let Figures { status, mut values, drops, warnings, host_reports } =
        clock::correct_for_clocks(made, sources, &clocks);
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
        values: values.into(),
        drops,
        host_reports,
        warnings,
    }
}

/// Adds what the entries of tables take, to the figures of a stream.
fn add_entry_memory(made: &mut Figures, entries: &[EntryMemory], spec: &TrialSpec) {
    for EntryMemory { table, family, bytes } in entries {
        let metric = table.metric();
        if *family == spec.family && metric.is_of(spec.probe.probe) {
            let value = match bytes {
                Ok(bytes) => Value::finite(*bytes, "the kernel's memory is unknown"),
                Err(reason) => Value::Missing((*reason).to_owned()),
            };
            made.values.insert(metric, value);
        }
    }
}

/// The reports of the only transfer of a trial, or those of all.
fn into_one(mut reports: Vec<Ends<HostReport>>) -> Result<Ends<HostReport>, Vec<Ends<HostReport>>> {
    if reports.len() == 1 { Ok(reports.remove(0)) } else { Err(reports) }
}

/// Maximum time for which a CPU quota may keep a host from running, as a share of a trial.
const MAX_THROTTLED: f64 = 0.05;

/// The warning of a trial in which CPU quotas kept a host from running. It stands in the place of the one of other
/// load: a larger quota is the first thing to get.
fn warn_of_quota(made: &Figures, wall_ns: u64) -> Option<Warning> {
    let times = made.host_reports.iter().map(|report| report.counters.get(Counters::THROTTLED_US));
    let seconds = times.max().unwrap_or(0) as f64 / 1e6;
    let share = seconds / (wall_ns.max(1) as f64 / 1e9);
    (share > MAX_THROTTLED).then(|| Warning {
        code: "cpu_quota".to_owned(),
        text: format!("the container's CPU quota held it back for {seconds:.2} s"),
        advice: "raise the container's CPU quota".to_owned(),
    })
}

/// Adds the counts to the counters of the querying host, and a warning for each service with unanswered queries.
fn with_services(mut made: Figures, sources: &[ReportSource], asked: &BTreeMap<Service, Asked>) -> Figures {
    // The sender of the testbed sends the queries.
    let asks = sources.iter().position(|source| source.host == 0);
    if let Some(report) = asks.and_then(|place| made.host_reports.get_mut(place)) {
        for (service, Asked { asked, answered }) in asked {
            report.counters.0.insert(format!("services.{service}.asked"), *asked);
            report.counters.0.insert(format!("services.{service}.answered"), *answered);
        }
    }
    made.warnings
        .extend(asked.iter().filter_map(|(service, count)| warn_of_unanswered_queries(*service, *count)));
    made
}

/// A warning if not all queries were answered.
fn warn_of_unanswered_queries(service: Service, Asked { asked, answered }: Asked) -> Option<Warning> {
    (answered < asked).then(|| Warning {
        code: "services".to_owned(),
        text: format!("{service} answered {answered} of {asked} queries"),
        advice: "a full link loses queries too; if none is answered, the receiver did not serve".to_owned(),
    })
}

/// Replaces the CPU time that guests report by that of their processes, and recomputes the figures. It covers the
/// whole trial, including set-up and warm-up.
fn with_guest_cpu(
    mut made: Figures,
    sources: &[ReportSource],
    guest_cpu: &[Option<[Ticks; 2]>; 2],
    spec: &TrialSpec,
    path: &Path,
    wall_ns: u64,
) -> Figures {
    let mut replaced = false;
    for (report, source) in made.host_reports.iter_mut().zip(sources) {
        let Some([before, after]) = guest_cpu[source.host] else { continue };
        report.cpu = Some(time(before, after, wall_ns, report.cpu.as_ref()));
        replaced = true;
    }
    if let (true, [sent, received, ..]) = (replaced, &made.host_reports[..]) {
        let values = results::values(spec, path, sent, received);
        made.values.extend(values.into_iter().filter(|(metric, _)| metric.is_host_cpu()));
    }
    made
}

/// CPU time of processes, nanoseconds.
pub(crate) fn busy_ns(ticks: Ticks) -> u64 {
    ticks.user.saturating_add(ticks.system).saturating_mul(results::tick_ns())
}

/// `reported` is the guest's own CPU time; the agent's own part is taken from it.
fn time(before: Ticks, after: Ticks, wall_ns: u64, reported: Option<&CpuTime>) -> CpuTime {
    let user_ns = count_ns(before.user, after.user);
    let system_ns = count_ns(before.system, after.system);
    CpuTime {
        idle_ns: wall_ns.saturating_sub(user_ns).saturating_sub(system_ns),
        own_user_ns: reported.map_or(0, |reported| reported.own_user_ns),
        own_system_ns: reported.map_or(0, |reported| reported.own_system_ns),
        undivided: true,
        ..CpuTime::of_processes((CpuScope::Outside, CpuSource::Ticks), wall_ns, [user_ns, system_ns])
    }
}

fn count_ns(ticks_before: u64, ticks_after: u64) -> u64 {
    let ticks = ticks_after.saturating_sub(ticks_before);
    ticks.saturating_mul(results::tick_ns()).min(MAX_NUMBER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{make_receiver_report, path, stream_of, trial_and_spec};
    use stacklab_model::{Ends, HostReport, Metric, RunStatus, Value, too_large};
    use stacklab_report::{MeasurementText, measurement};
    use stacklab_traffic::stats::clock::Offset;
    use stacklab_trial::Collected;

    #[test]
    fn failed_trial_is_an_invalid_run_with_its_reason() {
        let (trial, spec) = trial_and_spec();
        let reports = Err("receiver could not listen".to_owned());
        let limits = Limits::NONE;
        let collected = Collected { started_unix_ns: 3, wall_ns: 5, limits, reports };
        let silent = [(Service::Dns, Asked { asked: 2, answered: 0 })].into();
        let evidence = Evidence { services: Some(silent), ..Evidence::of(collected) };
        let run = figures(&trial, spec.clone(), &path(), Direction::Forward, evidence);
        assert_eq!(run.status, RunStatus::Invalid(vec!["receiver could not listen".to_owned()]));
        assert_eq!((run.started_unix_ns, run.wall_ns, &run.spec), (3, 5, &spec));
        assert!(run.values.is_empty() && run.host_reports.is_empty());
        let codes: Vec<&str> = run.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["services"]);
    }

    fn throttle(throttled_us: u64) -> Option<Warning> {
        let (_, mut made) = stream_of(vec![make_receiver_report(0, 0.0), make_receiver_report(0, 0.0)]);
        made.host_reports[1].counters.0.insert(Counters::THROTTLED_US.to_owned(), throttled_us);
        warn_of_quota(&made, 1_000_000_000)
    }

    #[test]
    fn throttled_trial_is_advised_to_raise_its_quota() {
        assert_eq!(throttle(50_000), None);
        let warning = throttle(412_000).unwrap();
        assert_eq!(warning.code, "cpu_quota");
        assert_eq!(warning.text, "the container's CPU quota held it back for 0.41 s");
        assert_eq!(warning.advice, "raise the container's CPU quota");
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
            // Of numbers with a fraction the bound itself is one of those that are refused.
            serde_json::Value::Number(old) if old.is_f64() => *value = (number as f64 * 0.9).into(),
            serde_json::Value::Number(_) => *value = number.into(),
            _ => {}
        }
    }

    fn report_of(number: u64, offset_ns: i64) -> HostReport {
        let mut report = serde_json::to_value(make_receiver_report(offset_ns, 1.0)).unwrap();
        for name in ["interface.tx_packets", "interface.rx_dropped", "ip.FragCreates", "ip6.ReasmOKs"] {
            report["counters"][name] = number.into();
        }
        report["flow_bytes"] = vec![number; 3].into();
        set_all(&mut report, number);
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn largest_numbers_of_an_agent_overflow_nothing() {
        let far = MAX_NUMBER as i64;
        let before = Offset { offset_ns: far, bound_ns: MAX_NUMBER, at_ns: 0 };
        let after = Offset { offset_ns: -far, bound_ns: 0, at_ns: MAX_NUMBER };
        for (sent, received) in [(0, MAX_NUMBER), (MAX_NUMBER, 0), (MAX_NUMBER, MAX_NUMBER)] {
            for transport in ["udp", "tcp"] {
                let (trial, mut spec) = trial_and_spec();
                spec.transport = transport.parse().unwrap();
                let pair = Ends { sender: report_of(sent, far), receiver: report_of(received, far) };
                let collected = Collected {
                    started_unix_ns: 3,
                    wall_ns: MAX_NUMBER,
                    limits: Limits::NONE,
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

    #[test]
    fn guest_time_is_of_its_processes_in_every_direction() {
        let tick_ns = results::tick_ns();
        let before = Ticks { user: 10, system: 1 };
        let after = Ticks { user: 40, system: 21 };
        // The reports of the sender's host, which is the guest.
        let cases = [
            (Direction::Both, 4, vec![0, 3], Metric::CpuSender, Metric::CpuReceiver),
            (Direction::Reverse, 2, vec![1], Metric::CpuReceiver, Metric::CpuSender),
        ];
        for (direction, count, own, measured, other) in cases {
            let (spec, made) = stream_of((0..count).map(|_| make_receiver_report(0, 0.0)).collect());
            let guest_cpu = [Some([before, after]), None];
            let made =
                with_guest_cpu(made, &report_sources(direction), &guest_cpu, &spec, &path(), 100 * tick_ns);
            for (place, report) in made.host_reports.iter().enumerate() {
                let found = report.cpu.as_ref().map(|cpu| (cpu.scope, cpu.busy_ns(), cpu.idle_ns));
                let expected = (CpuScope::Outside, 50 * tick_ns, 50 * tick_ns);
                assert_eq!(found, own.contains(&place).then_some(expected), "{direction} {place}");
            }
            assert_eq!(made.values[&measured], Value::Measured(50.0), "{direction}");
            assert!(matches!(made.values[&other], Value::Missing(_)), "{direction}");
        }
    }

    #[test]
    fn a_service_that_is_silent_is_told_of() {
        assert_eq!(warn_of_unanswered_queries(Service::Dns, Asked { asked: 3, answered: 3 }), None);
        assert_eq!(warn_of_unanswered_queries(Service::Dns, Asked { asked: 0, answered: 0 }), None);
        let some = warn_of_unanswered_queries(Service::Dns, Asked { asked: 3, answered: 1 }).unwrap();
        assert_eq!((some.code.as_str(), some.text.as_str()), ("services", "dns answered 1 of 3 queries"));
    }
}
