//! Processor time of guests that count none themselves, or not all, taken on this machine over a whole trial.

use stacklab_model::{CpuScope, CpuTime, Direction, Factor, RunRecord};
use stacklab_testbed::Ticks;
use stacklab_traffic::conduct::Path;
use stacklab_traffic::metrics;

/// Puts what the guests' processes ran between two looks in the place of what a run's sides say of processor time, and into
/// the figures made of it. The time is that of the whole trial, set-up and warm-up included.
pub fn fill_in(
    run: &mut RunRecord,
    path: &Path,
    scope: CpuScope,
    before: [Option<Ticks>; 2],
    after: [Option<Ticks>; 2],
) {
    let [sent, received, ..] = &mut run.sides[..] else { return };
    let reverse = run.trial.cell.settings.get(&Factor::Direction);
    let reverse = reverse.is_some_and(|level| *level == Direction::Reverse.to_string());
    let hosts = if reverse { [1, 0] } else { [0, 1] };
    let mut filled = false;
    for (side, host) in [sent, received].into_iter().zip(hosts) {
        let (Some(before), Some(after)) = (before[host], after[host]) else { continue };
        side.cpu = Some(between(scope, &time(before, 0), &time(after, run.wall_ns)));
        filled = true;
    }
    if let (true, [sent, received, ..]) = (filled, &run.sides[..]) {
        let values = metrics::values(&run.spec, path, sent, received);
        run.values.extend(values.into_iter().filter(|(metric, _)| metric.is_host_cpu()));
    }
}

/// What processes have run until a time.
pub fn time(ticks: Ticks, now_ns: u64) -> CpuTime {
    let tick_ns = metrics::tick_ns();
    let (user_ns, system_ns) = (ticks.user * tick_ns, ticks.system * tick_ns);
    CpuTime {
        scope: CpuScope::Outside,
        window_ns: now_ns,
        user_ns,
        system_ns,
        irq_ns: 0,
        softirq_ns: 0,
        idle_ns: 0,
        steal_ns: 0,
        own_user_ns: 0,
        own_system_ns: 0,
        undivided: true,
        whole_trial: true,
    }
}

fn between(scope: CpuScope, before: &CpuTime, after: &CpuTime) -> CpuTime {
    let moved = |read: fn(&CpuTime) -> u64| read(after).saturating_sub(read(before));
    let (window_ns, user_ns, system_ns) =
        (moved(|time| time.window_ns), moved(|time| time.user_ns), moved(|time| time.system_ns));
    let idle_ns = window_ns.saturating_sub(user_ns + system_ns);
    CpuTime { scope, window_ns, user_ns, system_ns, idle_ns, ..after.clone() }
}
