//! The search for the highest load: its settings, and what it needs of the rest of a study.

use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::plan::Plan;
use crate::plan::interleave::measures;
use crate::read::factors::{Factors, has_guest};
use crate::read::{At, NO_ROWS_NS, Node, nanoseconds, read_metrics, whole};
use crate::study::Study;
use stacklab_model::{
    Cell, Direction, Factor, Length, LinkConfig, Metric, Pacing, Probe, ProbeSpec, RouterQueue, SearchDevice,
    SearchGoal, SearchSpec, Systems, Topology, print_duration,
};

/// The length of a trial whose slices have lengths that each block chooses.
const USUAL_SLICE_NS: u64 = 100_000_000;

pub(super) fn read(node: Node, problems: &Problems) -> Option<ProbeSpec> {
    let loss_ppm = node.get("loss").value(leaf::share_ppm, problems).unwrap_or(0);
    let exceed_ppm = node.get("exceed").value(leaf::share_ppm, problems)?;
    let slice_ns = node.get("slice").value(nanoseconds, problems);
    let highest = node.get("highest").value(|node| leaf::number(node, 0.0, f64::MAX), problems);
    let search = SearchSpec {
        loss_ppm,
        exceed_ppm,
        slice_ns,
        highest,
        device: node.get("device").value(leaf::name, problems)?,
        priority: node.get("priority").value(leaf::name, problems)?,
        goal: read_goal(node.get("goal"), problems),
        connections: node.get("connections").value(whole, problems),
    };
    Some(ProbeSpec {
        probe: Probe::Search,
        pacing: Pacing::Search(search),
        length: Length::Time(slice_ns.unwrap_or(USUAL_SLICE_NS)),
        warmup_ns: 0,
        interval_ns: NO_ROWS_NS,
        metrics: read_metrics(node, problems),
    })
}

fn read_goal(node: Node, problems: &Problems) -> Option<SearchGoal> {
    let trial_ns = node.get("trial").value(nanoseconds, problems)?;
    Some(SearchGoal {
        loss_ppm: node.get("loss").value(leaf::share_ppm, problems).unwrap_or(0),
        exceed_ppm: node.get("exceed").value(leaf::share_ppm, problems).unwrap_or(0),
        trial_ns,
        sum_ns: node.get("sum").value(nanoseconds, problems).unwrap_or(trial_ns),
        width_ppm: node.get("width").value(leaf::share_ppm, problems)?,
    })
}

/// Adds a goal that cannot be searched, and figures whose goal is missing.
pub(super) fn check_goal(probes: Node, specs: &[ProbeSpec], cells: &[Cell], problems: &mut Problems) {
    let search = probes.get(Probe::Search.name());
    let goal = specs.iter().find_map(|spec| match spec.pacing {
        Pacing::Search(SearchSpec { goal, .. }) => goal,
        _ => None,
    });
    let paced = probes.get(Probe::Paced.name()).get("message_rate");
    let needs_load = specs.iter().any(|spec| spec.pacing == Pacing::Searched);
    let needing = paced.place().filter(|_| needs_load);
    let Some(goal) = goal else {
        for metric in search.get("metrics").list(leaf::any_metric, problems) {
            if metric.value.is_of_goal() {
                let title = format!("{} needs a goal", metric.value);
                problems.add(metric.problem(title, "no bounds are searched").help(ADD_GOAL));
            }
        }
        if let Some(place) = needing {
            let title = "no search of this study finds a load without loss";
            problems.add(Problem::at(place, title, "needs probe.search.goal").help(ADD_GOAL));
        }
        return;
    };
    check_sum(search.get("goal"), goal, problems);
    let mut paced = cells.iter().filter(|cell| measures(Probe::Paced, cell));
    if let (Some(place), Some(cell)) = (needing, paced.find(|cell| !measures(Probe::Search, cell))) {
        let title = format!("no search finds a load of {}", cell.label());
        problems.add(
            Problem::at(place, title, "a search is of UDP, sent by stacklab")
                .help("leave TCP and other generators out, or name a number of messages per second"),
        );
    }
}

/// Adds bursts and overloads of the sender's own queue, which holds the sender up instead of losing anything, and those
/// that are not forward. The messages of an overload must have one order.
pub(super) fn check_overloads(
    probes: Node,
    specs: &[ProbeSpec],
    topology: &Topology,
    link_config: Option<&LinkConfig>,
    all: &[Factors],
    problems: &mut Problems,
) {
    let search = probes.get(Probe::Search.name());
    let metrics = search.get("metrics").list(leaf::any_metric, problems);
    for asked in &metrics {
        if matches!(asked.value, Metric::BackToBack | Metric::RecoveryTime) {
            check_overload(asked, specs, topology, link_config, all, problems);
        }
    }
}

fn check_overload(
    asked: &At<Metric>,
    specs: &[ProbeSpec],
    topology: &Topology,
    link_config: Option<&LinkConfig>,
    all: &[Factors],
    problems: &mut Problems,
) {
    let name = asked.value.name();
    let mut directions = all.iter().flat_map(|factors| factors.setting_levels(Factor::Direction));
    if let Some(level) = directions.find(|level| level.value != Direction::Forward.name()) {
        let problem = level.problem(format!("{name} is sent forward"), "another direction");
        let problem = problem.with_related_place(&asked.place, "together with this");
        problems.add(problem.help(format!("leave this direction out, or {name}")));
    }
    for factor in [Factor::Clients, Factor::Flows] {
        let several = all.iter().find_map(|factors| factors.find_several(factor));
        if let (Some(level), Metric::RecoveryTime) = (several, asked.value) {
            let problem = level.problem(format!("{name} is that of one flow"), "several");
            let problem = problem.with_related_place(&asked.place, "together with this");
            problems.add(problem.help(format!("leave {factor} out, or {name}")));
        }
    }
    if is_of_path(specs) || link_config.is_none_or(|link_config| !topology.queues_at_sender(link_config)) {
        return;
    }
    let what = if asked.value == Metric::BackToBack { "bursts" } else { "an overload" };
    let title = format!("{what} would wait in the queue of the sender's own link");
    let help = "add topology = \"routed\" to [testbed], and a sender_link that is faster than its rate";
    problems.add(asked.problem(title, "it holds the sender up, and loses nothing").help(help));
}

/// Adds comparisons of losses at different loads: the highest load is the same for the arms of one trial.
pub(super) fn check_common_loads(probes: Node, comparisons: Node, study: &Study, problems: &mut Problems) {
    let search = probes.get(Probe::Search.name());
    let metrics = search.get("metrics").list(leaf::any_metric, problems);
    let Some(losses) = metrics.iter().find(|metric| metric.value == Metric::FrameLossRate) else { return };
    let plan = Plan::new(study, 0);
    let of_losses = study.questions().into_iter().filter(|question| question.metric == losses.value);
    for question in of_losses {
        if plan.measures_together(&question, Probe::Search) {
            continue;
        }
        let factor = question.factor;
        let baseline = question.baseline.level(factor);
        let candidate = question.candidate.level(factor);
        let title =
            format!("frame_loss_rate would be that of `{baseline}` and `{candidate}` at different loads");
        let mut problem = losses.problem(title, "the arms of one trial have the same loads");
        let mut compared = comparisons.items().filter_map(|node| node.get("factor").at(leaf::name, problems));
        if let Some(compared) = compared.find(|compared: &At<Factor>| compared.value == factor) {
            problem = problem.with_related_place(&compared.place, "and these are in different trials");
        }
        problems.add(problem.help(if study.schedule.is_alone() {
            "set blocks.schedule = \"interleaved\", or leave frame_loss_rate out".to_owned()
        } else {
            format!("give the comparison by {factor} `metrics` without frame_loss_rate")
        }));
        return;
    }
}

/// Trials at a bound at the most: a search needs several bounds, and ends after 400 trials.
const MAX_TRIALS: u64 = 50;

const ADD_GOAL: &str = "add goal = {} to [probe.search]: the throughput of RFC 2544";

fn check_sum(node: Node, goal: SearchGoal, problems: &mut Problems) {
    if let Some(place) = node.get("sum").place()
        && goal.sum_ns < goal.trial_ns
    {
        let least = print_duration(goal.trial_ns);
        let title = "all trials at a bound are shorter than one of them";
        problems.add(Problem::at(place, title, format!("expected at least {least}")));
    }
    let most_ns = goal.trial_ns.saturating_mul(MAX_TRIALS);
    if let Some(place) = node.get("sum").place()
        && goal.sum_ns > most_ns
    {
        let title = format!("a bound would need more than {MAX_TRIALS} trials");
        problems.add(Problem::at(place, title, format!("expected at most {}", print_duration(most_ns))));
    }
}

/// Adds what a search cannot do: find the capacity of a path without a device, or of two directions at once.
pub(super) fn check(
    probe: Node,
    probes: &[ProbeSpec],
    topology: &At<Topology>,
    testbed: Node,
    all: &[Factors],
    problems: &mut Problems,
) {
    let Some(place) = probe.get(Probe::Search.name()).place() else { return };
    let has_guests = all.iter().any(|factors| factors.setting_levels(Factor::Os).iter().any(has_guest));
    match topology.value {
        Topology::Link if testbed.get("rate").0.is_none() && !has_guests && !is_of_path(probes) => {
            problems.add(
                Problem::at(place, "the path has no device whose load could be searched", "needs a device")
                    .help("add topology = \"routed\" to [testbed], or a rate, or guests (factors.os)"),
            );
        }
        Topology::Wifi(_) => {
            problems.add(
                Problem::at(
                    place,
                    "a search needs topology \"link\" or \"routed\"",
                    "not possible over Wi-Fi",
                )
                .with_related_place(&topology.place, "together with this")
                .help("leave probe.search out: probe.stream floods the radio channel"),
            );
        }
        Topology::Link | Topology::Routed(_) => {}
    }
    let both = Direction::Both.name();
    for factors in all {
        if let Some(level) =
            factors.setting_levels(Factor::Direction).iter().find(|level| level.value == both)
        {
            problems.add(
                level
                    .problem("a search has one direction", "both at once have two loads")
                    .with_related_place(place, "together with this")
                    .help("leave this direction out, or probe.search"),
            );
            return;
        }
    }
}

fn is_of_path(probes: &[ProbeSpec]) -> bool {
    probes
        .iter()
        .any(|spec| matches!(spec.pacing, Pacing::Search(SearchSpec { device: SearchDevice::Path, .. })))
}

/// Between machines the device is the path, whatever the study says.
pub(super) fn set_device(probes: &mut [ProbeSpec], cells: &[Cell]) {
    let are_machines = cells.iter().any(|cell| !Systems::of(cell).are_built());
    for spec in probes {
        if let Pacing::Search(search) = &mut spec.pacing
            && are_machines
        {
            search.device = SearchDevice::Path;
        }
    }
}

/// In a study with a search, routers that are namespaces have a kernel thread unless it says otherwise: without one no
/// router ever loses a packet.
pub(super) fn set_router_queue(probes: &[ProbeSpec], topology: &Topology, cells: &mut [Cell]) {
    let searches = probes.iter().any(|spec| spec.probe == Probe::Search);
    if !searches || !matches!(topology, Topology::Routed(_)) {
        return;
    }
    for cell in cells {
        if cell.settings.router_queue.is_none() && Systems::of_routers(cell) == Systems::NAMESPACES {
            cell.settings.router_queue = Some(RouterQueue::Thread);
        }
    }
}
