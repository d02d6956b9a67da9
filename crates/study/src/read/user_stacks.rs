//! What a stack without a kernel does not have, and a study may therefore not ask of it.

use crate::diagnostics::Problems;
use crate::language::leaf;
use crate::read::factors::Factors;
use crate::read::{At, Node};
use stacklab_model::{Factor, System, Systems};

/// Options of sockets and ways of sending that smoltcp does not have, with the levels that ask for none.
const OF_KERNELS: [(Factor, &[&str]); 7] = [
    (Factor::Io, &["auto", "send", "sendmmsg"]),
    (Factor::Socket, &["native"]),
    (Factor::Mss, &[]),
    (Factor::Dscp, &["0"]),
    (Factor::FlowLabel, &["0"]),
    (Factor::BusyPoll, &["0"]),
    (Factor::KernelPacing, &["false"]),
];

/// Its algorithms of congestion control; a kernel has no `none`.
const CONTROLS: [&str; 3] = ["none", "reno", "cubic"];
const CONTROLS_BESIDE_A_KERNEL: [&str; 2] = ["reno", "cubic"];

/// Flows of a trial: the stack looks at each of its sockets for every packet.
const MAX_FLOWS: u32 = 256;

/// Adds what smoltcp cannot do with the levels of the other factors.
pub(super) fn check(testbed: Node, factors: &Factors, problems: &mut Problems) {
    let Some(level) = factors.setting_levels(Factor::Os).iter().find(|level| has_smoltcp(level)) else {
        return;
    };
    for (factor, harmless) in OF_KERNELS {
        let levels = factors.setting_levels(factor);
        let Some(asked) = levels.iter().find(|asked| !harmless.contains(&asked.value.as_str())) else {
            continue;
        };
        let title = format!("smoltcp has no `{factor}`");
        refuse(asked, &title, "not possible here", level, "leave the factor out, or the system", problems);
    }
    check_congestion_control(level, factors, problems);
    for flows in factors.setting_levels(Factor::Flows) {
        if flows.value.parse().is_ok_and(|flows: u32| flows > MAX_FLOWS) {
            let title = format!("smoltcp has at most {MAX_FLOWS} flows");
            refuse(
                flows,
                &title,
                "more than that",
                level,
                "use fewer flows, or leave the system out",
                problems,
            );
        }
    }
    let offloads = testbed.get("offloads");
    if let (Some(true), Some(place)) = (offloads.value(leaf::boolean, problems), offloads.place()) {
        let problem =
            level.problem("smoltcp takes no packets that are longer than the link's", "not with offloads");
        problems
            .add(problem.with_related_place(place, "together with this").help("leave testbed.offloads out"));
    }
    check_sizes(level, factors, problems);
}

fn has_smoltcp(level: &At<String>) -> bool {
    level.value.parse().is_ok_and(|systems: Systems| systems.0.contains(&System::Smoltcp))
}

/// Adds a problem of a level together with the system.
fn refuse<T>(
    asked: &At<T>,
    title: &str,
    label: &str,
    level: &At<String>,
    help: &str,
    problems: &mut Problems,
) {
    let problem = asked.problem(title.to_owned(), label.to_owned());
    problems.add(problem.with_related_place(&level.place, "together with this system").help(help));
}

fn check_congestion_control(level: &At<String>, factors: &Factors, problems: &mut Problems) {
    let is_pure = level.value.parse() == Ok(Systems([System::Smoltcp, System::Smoltcp]));
    let known = if is_pure { &CONTROLS[..] } else { &CONTROLS_BESIDE_A_KERNEL };
    for asked in factors.setting_levels(Factor::CongestionControl) {
        if !known.contains(&asked.value.as_str()) {
            let title = format!("`{}` has no congestion control `{}`", level.value, asked.value);
            let label = format!("expected {}", known.join(", "));
            refuse(asked, &title, &label, level, "use another one, or leave the system out", problems);
        }
    }
}

/// Adds datagrams that do not fit a packet.
fn check_sizes(level: &At<String>, factors: &Factors, problems: &mut Problems) {
    for (size, packet, mtu) in factors.find_large_datagrams() {
        let title = format!("smoltcp does not fragment, and this takes a packet of {packet} bytes");
        let label = format!("more than the link's MTU of {mtu}");
        refuse(size, &title, &label, level, "use smaller datagrams, or TCP alone", problems);
    }
}
