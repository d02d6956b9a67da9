//! Processor time of guests that count none themselves, or not all, taken on this machine over a whole trial.

use stacklab_model::{CpuScope, CpuTime, Direction, Factor, RunRecord};
use stacklab_testbed::Ticks;
use stacklab_traffic::results;
use stacklab_traffic::trial::Path;

/// Puts what the guests' processes ran between two looks in the place of what a run's sides say of processor time, and into
/// the figures made of it. The time is that of the whole trial, set-up and warm-up included.
pub fn fill_in(run: &mut RunRecord, path: &Path, before: [Option<Ticks>; 2], after: [Option<Ticks>; 2]) {
    let reverse = run.trial.cell.settings.get(&Factor::Direction);
    let reverse = reverse.is_some_and(|level| *level == Direction::Reverse.to_string());
    // Sides are a leg's sender and its receiver, then those of a leg back.
    let hosts: &[usize] = if reverse { &[1, 0] } else { &[0, 1, 1, 0] };
    let mut filled = false;
    for (side, host) in run.host_reports.iter_mut().zip(hosts) {
        let (Some(before), Some(after)) = (before[*host], after[*host]) else { continue };
        side.cpu = Some(time(before, after, run.wall_ns, side.cpu.as_ref()));
        filled = true;
    }
    if let (true, [sent, received, ..]) = (filled, &run.host_reports[..]) {
        let values = results::values(&run.spec, path, sent, received);
        run.values.extend(values.into_iter().filter(|(metric, _)| metric.is_host_cpu()));
    }
}

/// Nanoseconds that processes have run.
pub fn busy_ns(ticks: Ticks) -> u64 {
    (ticks.user + ticks.system) * results::tick_ns()
}

/// `told` is what the guest says itself, of which the agent's own part is taken.
fn time(before: Ticks, after: Ticks, wall_ns: u64, told: Option<&CpuTime>) -> CpuTime {
    let ns = |read: fn(Ticks) -> u64| read(after).saturating_sub(read(before)) * results::tick_ns();
    let (user_ns, system_ns) = (ns(|ticks| ticks.user), ns(|ticks| ticks.system));
    CpuTime {
        scope: CpuScope::Outside,
        window_ns: wall_ns,
        user_ns,
        system_ns,
        irq_ns: 0,
        softirq_ns: 0,
        idle_ns: wall_ns.saturating_sub(user_ns + system_ns),
        steal_ns: 0,
        own_user_ns: told.map_or(0, |told| told.own_user_ns),
        own_system_ns: told.map_or(0, |told| told.own_system_ns),
        undivided: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::tests::{received, stream_of};
    use stacklab_model::{Metric, Value};

    #[test]
    fn a_guests_time_is_that_of_its_processes_wherever_it_stands_in_the_trial() {
        let tick_ns = results::tick_ns();
        let (before, after) = (Ticks { user: 10, system: 1 }, Ticks { user: 40, system: 21 });
        let address = [198, 18, 0, 1].into();
        let (sender, receiver) = (address, address);
        let (mtu, planned_mtu, offloads, rate, shared, nat) = (1500, true, false, None, false, None);
        let path = Path { sender, receiver, mtu, planned_mtu, offloads, rate, shared, nat };
        // The sides that are at the sender's host, which is the guest.
        let cases = [
            ("both", 4, vec![0, 3], Metric::CpuSender, Metric::CpuReceiver),
            ("reverse", 2, vec![1], Metric::CpuReceiver, Metric::CpuSender),
        ];
        for (direction, count, own, counted, other) in cases {
            let mut run = stream_of((0..count).map(|_| received(0, 0.0)).collect());
            run.wall_ns = 100 * tick_ns;
            run.trial.cell.settings.insert(Factor::Direction, direction.to_owned());
            fill_in(&mut run, &path, [Some(before), None], [Some(after), None]);
            for (place, side) in run.host_reports.iter().enumerate() {
                let found = side.cpu.as_ref().map(|cpu| (cpu.scope, cpu.busy_ns(), cpu.idle_ns));
                let expected = (CpuScope::Outside, 50 * tick_ns, 50 * tick_ns);
                assert_eq!(found, own.contains(&place).then_some(expected), "{direction} {place}");
            }
            assert_eq!(run.values[&counted], Value::Measured(50.0), "{direction}");
            assert!(matches!(run.values[&other], Value::Missing(_)), "{direction}");
        }
    }
}
