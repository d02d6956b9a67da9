//! CPU time of guests that do not count all of it themselves, measured on this machine over a whole trial.

use crate::trial::evidence::ReportSource;
use stacklab_model::{CpuScope, CpuSource, CpuTime, LARGEST_NUMBER, TrialSpec};
use stacklab_testbed::Ticks;
use stacklab_trial::results;
use stacklab_trial::{Figures, Path};

/// Replaces the CPU time that guests report by that of their processes, and recomputes the figures. It covers the
/// whole trial, including set-up and warm-up.
pub(crate) fn counted(
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
    let ns = |read: fn(Ticks) -> u64| {
        let ticks = read(after).saturating_sub(read(before));
        ticks.saturating_mul(results::tick_ns()).min(LARGEST_NUMBER)
    };
    let (user_ns, system_ns) = (ns(|ticks| ticks.user), ns(|ticks| ticks.system));
    CpuTime {
        scope: CpuScope::Outside,
        source: Some(CpuSource::Ticks),
        window_ns: wall_ns,
        user_ns,
        system_ns,
        irq_ns: 0,
        softirq_ns: 0,
        idle_ns: wall_ns.saturating_sub(user_ns).saturating_sub(system_ns),
        steal_ns: 0,
        own_user_ns: reported.map_or(0, |reported| reported.own_user_ns),
        own_system_ns: reported.map_or(0, |reported| reported.own_system_ns),
        undivided: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::evidence::report_sources;
    use crate::trial::fixtures::{path, received, stream_of};
    use stacklab_model::{Direction, Metric, Value};

    #[test]
    fn a_guests_time_is_that_of_its_processes_wherever_it_stands_in_the_trial() {
        let tick_ns = results::tick_ns();
        let (before, after) = (Ticks { user: 10, system: 1 }, Ticks { user: 40, system: 21 });
        // The reports of the sender's host, which is the guest.
        let cases = [
            (Direction::Both, 4, vec![0, 3], Metric::CpuSender, Metric::CpuReceiver),
            (Direction::Reverse, 2, vec![1], Metric::CpuReceiver, Metric::CpuSender),
        ];
        for (direction, count, own, measured, other) in cases {
            let (spec, made) = stream_of((0..count).map(|_| received(0, 0.0)).collect());
            let guest_cpu = [Some([before, after]), None];
            let made = counted(made, &report_sources(direction), &guest_cpu, &spec, &path(), 100 * tick_ns);
            for (place, report) in made.host_reports.iter().enumerate() {
                let found = report.cpu.as_ref().map(|cpu| (cpu.scope, cpu.busy_ns(), cpu.idle_ns));
                let expected = (CpuScope::Outside, 50 * tick_ns, 50 * tick_ns);
                assert_eq!(found, own.contains(&place).then_some(expected), "{direction} {place}");
            }
            assert_eq!(made.values[&measured], Value::Measured(50.0), "{direction}");
            assert!(matches!(made.values[&other], Value::Missing(_)), "{direction}");
        }
    }
}
