//! Several customers before one far router, and what a study may therefore not ask for.

use crate::diagnostics::Problems;
use crate::read::At;
use crate::read::factors::{Factors, has_guest};
use stacklab_model::{Direction, Factor, Mechanism, Probe, ProbeSpec};

pub(super) fn check(all: &[Factors], probes: &[ProbeSpec], problems: &mut Problems) {
    for factors in all {
        let Some(level) = factors.find_several(Factor::Clients) else { continue };
        let several = Several { level: &level, factors };
        several.check_mechanisms(problems);
        several.check_systems(problems);
        several.check_direction(problems);
        several.check_flows(problems);
        several.check_probes(probes, problems);
        if !problems.is_empty() {
            return;
        }
    }
}

struct Several<'a> {
    level: &'a At<u32>,
    factors: &'a Factors,
}

impl Several<'_> {
    fn refuse<T>(&self, other: &At<T>, title: String, label: &str, help: &str, problems: &mut Problems) {
        let problem = other.problem(title, label.to_owned());
        problems.add(problem.with_related_place(&self.level.place, "together with this").help(help));
    }

    fn check_mechanisms(&self, problems: &mut Problems) {
        for level in self.factors.setting_levels(Factor::Mechanism) {
            if level.value.parse().is_ok_and(|mechanism: Mechanism| !mechanism.joins_customers()) {
                let title =
                    format!("`{}` has one customer, and `clients` has {}", level.value, self.level.value);
                let help = format!("leave factors.clients out, or use {}", list_joining());
                self.refuse(level, title, "not with several customers", &help, problems);
            }
        }
    }

    fn check_systems(&self, problems: &mut Problems) {
        for factor in [Factor::Os, Factor::RouterOs] {
            let Some(guest) = self.factors.setting_levels(factor).iter().find(|level| has_guest(level))
            else {
                continue;
            };
            let title =
                format!("`clients` needs namespaces, and `{}` is a system of its links alone", guest.value);
            let help = format!(
                "leave factors.{factor} out, or factors.clients; --in-vm builds all hosts in a guest"
            );
            self.refuse(guest, title, "has the links of one customer", &help, problems);
        }
    }

    fn check_direction(&self, problems: &mut Problems) {
        let directions = self.factors.setting_levels(Factor::Direction);
        if let Some(back) = directions.iter().find(|level| level.value != Direction::Forward.name()) {
            let title = "`clients` send, and the receiver does not".to_owned();
            self.refuse(
                back,
                title,
                "begins at the receiver",
                "leave this direction out, or factors.clients",
                problems,
            );
        }
    }

    fn check_flows(&self, problems: &mut Problems) {
        let Some(flows) = self.factors.setting(Factor::Flows) else { return };
        let clients = self.level.value;
        for level in flows.numbers().filter(|level| level.value < clients) {
            let title = format!("of {clients} `clients` only {} would have a flow", level.value);
            let help = "leave factors.flows out: each of the clients then has one";
            self.refuse(&level, title, &format!("expected at least {clients}"), help, problems);
        }
        for mechanism in self.factors.setting_levels(Factor::Mechanism) {
            let Some(ports) = mechanism.value.parse().ok().and_then(Mechanism::count_ports) else { continue };
            let most = ports.saturating_mul(self.find_least());
            for level in flows.numbers().filter(|level| level.value > most) {
                let title =
                    format!("a customer of `{}` has {ports} ports, one for each flow", mechanism.value);
                let label = format!("expected at most {most}");
                self.refuse(&level, title, &label, "use fewer flows, or more clients", problems);
            }
        }
    }

    fn find_least(&self) -> u32 {
        let clients = self.factors.setting(Factor::Clients);
        clients.and_then(|levels| levels.numbers().map(|level| level.value).min()).unwrap_or(1)
    }

    fn check_probes(&self, probes: &[ProbeSpec], problems: &mut Problems) {
        for spec in probes {
            if !matches!(spec.probe, Probe::Stream | Probe::Paced | Probe::Search) {
                let title = format!("`clients` send streams, and probe `{}` is of one flow", spec.probe);
                let problem = self.level.problem(title, "several customers");
                problems.add(problem.help("leave the probe out, or factors.clients"));
            }
        }
    }
}

/// The mechanisms that can have several customers.
fn list_joining() -> String {
    let all = Mechanism::ALL.iter().filter(|mechanism| mechanism.joins_customers());
    all.map(|mechanism| mechanism.name()).collect::<Vec<_>>().join(", ")
}
