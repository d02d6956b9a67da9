//! Processor time of guests that count none themselves, taken on this machine over a whole trial.

use stacklab_model::{CpuScope, CpuTime, Direction, Factor, RunRecord};
use stacklab_testbed::Ticks;
use stacklab_traffic::conduct::Path;
use stacklab_traffic::metrics;

/// Puts what the guests' processes ran between two looks into a run's sides that have no processor time, and into the
/// figures made of it. The time is that of the whole trial, set-up and warm-up included.
pub fn fill_in(run: &mut RunRecord, path: &Path, before: [Option<Ticks>; 2], after: [Option<Ticks>; 2]) {
    let [sent, received, ..] = &mut run.sides[..] else { return };
    let reverse = run.trial.cell.settings.get(&Factor::Direction);
    let reverse = reverse.is_some_and(|level| *level == Direction::Reverse.to_string());
    let hosts = if reverse { [1, 0] } else { [0, 1] };
    let mut filled = false;
    for (side, host) in [sent, received].into_iter().zip(hosts) {
        let (Some(before), Some(after), None) = (before[host], after[host], &side.cpu) else { continue };
        side.cpu = Some(time(before, after, run.wall_ns));
        filled = true;
    }
    if let (true, [sent, received, ..]) = (filled, &run.sides[..]) {
        let values = metrics::values(&run.spec, path, sent, received);
        run.values.extend(values.into_iter().filter(|(metric, _)| metric.is_host_cpu()));
    }
}

fn time(before: Ticks, after: Ticks, wall_ns: u64) -> CpuTime {
    let tick_ns = metrics::tick_ns();
    let ns = |read: fn(Ticks) -> u64| read(after).saturating_sub(read(before)) * tick_ns;
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
        own_user_ns: 0,
        own_system_ns: 0,
        undivided: true,
    }
}
