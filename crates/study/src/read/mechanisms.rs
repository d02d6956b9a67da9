//! Routers, and what is built between them.

use super::factors::Factors;
use super::{At, at, nanoseconds};
use crate::leaf;
use crate::problems::{Place, Problem, Problems};
use crate::tree::Node;
use stacklab_model::{Factor, Mechanism, Middle, Topology};

/// Factors that a testbed of routers does not have: they change an end of the one link of two hosts.
const OF_ONE_LINK: [Factor; 5] =
    [Factor::Os, Factor::Services, Factor::Mtu, Factor::QueueLength, Factor::Pinning];

/// Reads how the hosts are joined.
pub(super) fn topology(bed: Option<&Node>, problems: &Problems) -> Option<At<Topology>> {
    let key = |name| bed.and_then(|node| node.get(name));
    let said: At<String> = at(key("topology"), leaf::text, problems)?;
    let middle = Middle {
        delay_ns: at(key("delay"), nanoseconds, problems).map_or(0, |delay| delay.value),
        loss: at(key("loss"), leaf::share, problems).map_or(0.0, |loss| loss.value),
    };
    let value = if said.value == "routed" { Topology::Routed(middle) } else { Topology::Link };
    Some(At { value, place: said.place })
}

/// Adds what does not go together.
pub(super) fn check(
    topology: Option<&At<Topology>>,
    bed: Option<&Node>,
    factors: &Factors,
    problems: &mut Problems,
) {
    let Some(topology) = topology else { return };
    let setting = factors.setting(Factor::Mechanism);
    if topology.value == Topology::Link {
        let level = setting.and_then(|setting| setting.levels.first());
        let keys = ["delay", "loss"].map(|name| Some((name, bed?.get(name)?.place.clone())));
        let needs = level.map(|level| ("factors.mechanism".to_owned(), level.place.clone())).into_iter();
        let needs =
            needs.chain(keys.into_iter().flatten().map(|(name, place)| (format!("testbed.{name}"), place)));
        for (what, place) in needs {
            problems.add(
                Problem::at(place, format!("`{what}` needs two routers"), "not possible on one link")
                    .help("add topology = \"routed\" to [testbed], or leave it out"),
            );
        }
        return;
    }
    for factor in OF_ONE_LINK {
        // What a factor is where it is left out may be said.
        let plain = match factor {
            Factor::Os => Some("namespace"),
            Factor::Services => Some("none"),
            _ => None,
        };
        let levels = factors.setting(factor).map(|setting| &setting.levels[..]).unwrap_or_default();
        let Some(level) = levels.iter().find(|level| Some(level.value.as_str()) != plain) else { continue };
        let help = match factor {
            Factor::Mtu => "leave the factor out; testbed.mtu holds for all three links",
            Factor::Os => "leave the factor out; --in-vm has the whole row of hosts in a guest",
            _ => "leave the factor out",
        };
        problems.add(
            Problem::at(
                level.place.clone(),
                format!("`{factor}` cannot be set behind routers"),
                "not possible here",
            )
            .related(topology.place.clone(), "together with this")
            .help(help),
        );
    }
    let Some(setting) = setting else { return };
    let known = |level: &At<String>| level.value.parse::<Mechanism>().ok();
    for level in &setting.levels {
        let Some(mechanism) = known(level) else { continue };
        let carries = factors.family.iter().any(|family| mechanism.carries(family.value));
        if let (false, Some(family)) = (carries, factors.family.first()) {
            problems.add(not_carried(
                &level.value,
                level.place.clone(),
                &family.value.to_string(),
                &family.place,
            ));
        }
    }
    for family in &factors.family {
        let carried =
            setting.levels.iter().filter_map(known).any(|mechanism| mechanism.carries(family.value));
        if let (false, Some(level)) = (carried, setting.levels.first()) {
            problems.add(
                Problem::at(
                    family.place.clone(),
                    format!("no mechanism of this study carries {}", family.value),
                    "measures nothing",
                )
                .related(level.place.clone(), "this does not")
                .help("leave this family out, or add \"native\" to factors.mechanism"),
            );
        }
    }
}

fn not_carried(mechanism: &str, place: Place, family: &str, family_place: &Place) -> Problem {
    Problem::at(place, format!("`{mechanism}` does not carry {family}"), "measures nothing")
        .related(family_place.clone(), "the only family")
        .help("add the other family to factors.family, or leave this mechanism out")
}
