//! Programs of a study's own, and what they set as requirements for the rest of it.

use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::read::factors::Factors;
use crate::read::generators::{OF_TESTBEDS, check_namespaces};
use crate::read::{At, NO_ROWS_NS, Node, nanoseconds, read_metrics, whole};
use stacklab_model::{
    Cell, ComparisonSpec, Factor, Length, Pacing, Probe, ProbeSpec, ProgramSpec, Topology,
    misspelt_placeholder, printable_text,
};

/// Longest name of a program, characters.
const MAX_NAME_CHARS: usize = 40;

pub(super) fn read_probe(node: Node, problems: &Problems) -> Option<ProbeSpec> {
    Some(ProbeSpec {
        probe: Probe::Program,
        pacing: Pacing::Lockstep,
        length: Length::Time(node.get("time").value(nanoseconds, problems)?),
        warmup_ns: 0,
        interval_ns: NO_ROWS_NS,
        metrics: read_metrics(node, problems),
    })
}

/// Reads the programs, and adds what does not fit them: other probes, hosts that they cannot run in, settings that
/// nobody would make.
pub(super) fn read(
    node: Node,
    probe: Node,
    topology: Option<&At<Topology>>,
    all: &[Factors],
    problems: &mut Problems,
) -> Vec<ProgramSpec> {
    let mut programs: Vec<ProgramSpec> = Vec::new();
    for item in node.items() {
        let Some(program) = read_program(item, problems) else { continue };
        check_name(&program.name, item.get("name"), problems);
        check_levels(&program.name, item.get("name"), all, problems);
        if programs.iter().any(|other| other.name == program.name)
            && let Some(place) = item.get("name").place()
        {
            let title = format!("there are two programs `{}`", program.name);
            problems.add(Problem::at(place, title, "expected another name"));
        }
        programs.push(program);
    }
    check_probes(node, probe, problems);
    // Also of those in which something else is wrong.
    let names: Vec<String> = node.items().filter_map(|item| leaf::text(item.get("name").0?).ok()).collect();
    for factors in all {
        for level in factors.setting_levels(Factor::Program) {
            check_level(level, &names, problems);
        }
        if let (Some(place), Some(level)) = (node.place(), factors.setting_levels(Factor::Program).first()) {
            let at = At { value: level.value.clone(), place: place.clone() };
            check_namespaces(&at, "a program", topology, factors, problems);
            check_settings(&at, factors, problems);
        }
        if !problems.is_empty() {
            break;
        }
    }
    programs
}

/// Adds comparisons whose instructions are to be counted by request, where the client of a measured program does not
/// take a number of them.
pub(super) fn check_counts(
    comparison: Node,
    programs: &[ProgramSpec],
    cells: &[Cell],
    comparisons: &[ComparisonSpec],
    problems: &mut Problems,
) {
    for (node, spec) in comparison.items().zip(comparisons) {
        let Some(asked) = node.get("instructions").place().filter(|_| spec.instructions) else { continue };
        let mut compared = programs.iter().filter(|program| {
            let is_measured = cells.iter().any(|cell| cell.settings.program.as_ref() == Some(&program.name));
            let is_arm = [&spec.baseline, &spec.candidate].contains(&&program.name);
            is_measured && (spec.factor != Factor::Program || is_arm)
        });
        if let Some(program) = compared.find(|program| !program.takes_requests()) {
            let title = format!("the client of `{}` does not take a number of requests", program.name);
            problems.add(Problem::at(asked, title, "instructions are counted by request").help(
                "write {requests} into its command where the number stands, or leave `instructions` out",
            ));
        }
    }
}

fn read_program(node: Node, problems: &mut Problems) -> Option<ProgramSpec> {
    for command in ["server", "client"] {
        let Some(text) = node.get(command).at(leaf::text, problems) else { continue };
        if let Some((unknown, meant)) = misspelt_placeholder(&text.value) {
            let title = format!("there is no placeholder `{{{unknown}}}`");
            problems.add(text.problem(title, format!("did you mean `{{{meant}}}`?")));
        }
    }
    Some(ProgramSpec {
        name: node.get("name").value(leaf::text, problems)?,
        server: node.get("server").value(leaf::text, problems)?,
        client: node.get("client").value(leaf::text, problems)?,
        transport: node.get("transport").value(leaf::name, problems)?,
        port: node.get("port").value(whole, problems)?.try_into().ok()?,
        limit_ns: node.get("limit").value(nanoseconds, problems)?,
        requests: node.get("requests").value(whole, problems)?.into(),
        needs: node.get("needs").list(leaf::text, problems).into_iter().map(|file| file.value).collect(),
        version: node.get("version").value(leaf::text, problems),
    })
}

/// A name is a level, and stands in tables.
fn check_name(name: &str, node: Node, problems: &mut Problems) {
    let is_plain = printable_text(name) == name && name.trim() == name && !name.contains(',');
    let is_short = name.chars().count() <= MAX_NAME_CHARS;
    if let Some(place) = node.place()
        && !(is_plain && is_short)
    {
        let title = "this cannot be the name of a program";
        let expected = format!("expected up to {MAX_NAME_CHARS} printable characters, without a comma");
        problems.add(Problem::at(place, title, expected));
    }
}

/// `without` names a level without its factor: a program that is missing would take another factor's level along.
fn check_levels(name: &str, node: Node, all: &[Factors], problems: &mut Problems) {
    for factors in all {
        if let Some(factor) = find_other_factor(name, factors)
            && let Some(place) = node.place()
        {
            let title = format!("`{name}` is a level of `{factor}`, too");
            problems.add(Problem::at(place, title, "expected another name"));
            return;
        }
    }
}

/// The factor but `program` that has a level of this name.
fn find_other_factor(name: &str, factors: &Factors) -> Option<Factor> {
    if factors.family.iter().any(|level| level.value.to_string() == name) {
        return Some(Factor::Family);
    }
    if factors.replica.iter().any(|level| level.value == name) {
        return Some(Factor::Replica);
    }
    for setting in &factors.settings {
        let has_it = setting.levels.iter().any(|level| level.value == name);
        if setting.factor != Factor::Program && has_it {
            return Some(setting.factor);
        }
    }
    None
}

/// Programs are measured by their own probe, and by no other; and it measures nothing else.
fn check_probes(node: Node, probe: Node, problems: &mut Problems) {
    let own = probe.get(Probe::Program.name()).place();
    let Some(place) = node.place() else {
        if let Some(own) = own {
            let title = "probe program needs programs";
            problems.add(
                Problem::at(own, title, "measures nothing in this study").help("add [[program]] tables"),
            );
        }
        return;
    };
    for other in Probe::ALL.iter().filter(|other| **other != Probe::Program) {
        if let Some(other) = probe.get(other.name()).place() {
            let title = "programs are measured by probe.program alone";
            problems.add(
                Problem::at(other, title, "not possible here").with_related_place(place, "the programs"),
            );
        }
    }
}

fn check_level(level: &At<String>, names: &[String], problems: &mut Problems) {
    if names.contains(&level.value) {
        return;
    }
    let expected = match names {
        [] => "the study has no [[program]]".to_owned(),
        names => format!("expected one of {}", names.join(", ")),
    };
    let title = format!("there is no [[program]] `{}`", level.value);
    problems.add(level.problem(title, expected).nearest(&level.value, names.iter().map(String::as_str)));
}

fn check_settings(program: &At<String>, factors: &Factors, problems: &mut Problems) {
    for setting in &factors.settings {
        let is_of_testbeds = OF_TESTBEDS.contains(&setting.factor) && setting.factor != Factor::Services;
        let is_known = setting.factor == Factor::Program || is_of_testbeds;
        if let Some(level) = setting.levels.first().filter(|_| !is_known) {
            let title = format!("`{}` cannot be set for programs", setting.factor);
            let problem = level.problem(title, "expected factors of hosts and links alone");
            problems.add(problem.with_related_place(&program.place, "the programs"));
        }
    }
}
