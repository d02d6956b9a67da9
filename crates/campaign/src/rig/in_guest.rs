//! Studies whose testbeds cannot be in a guest, since a part of what they measure is on this kernel.

use crate::CampaignError;
use stacklab_guests::Requirements;
use stacklab_model::{CONNECTION_METRICS, Generator, Metric, RouterQueue, System};
use stacklab_study::Study;

/// An error if a study needs testbeds on this kernel, and they would be in this guest: as `--in-vm` asks, or because
/// this kernel lacks something.
pub(super) fn check_guest(
    study: &Study,
    needs: &Requirements,
    system: &System,
    is_asked_for: bool,
) -> Result<(), CampaignError> {
    let connections = CONNECTION_METRICS.iter().find(|metric| study.measures(|other| other == **metric));
    if let Some(metric) = connections {
        let why = (!is_asked_for).then(|| needs.describe_all_missing());
        return Err(refuse_connections(*metric, system, why.as_deref()));
    }
    let queued = needs.rows.iter().find(|row| row.queue != RouterQueue::Inline);
    if let Some(row) = queued {
        let queue = row.queue;
        return Err(CampaignError::Usage(format!(
            "router_queue \"{queue}\" is for routers on this kernel, and the study's testbeds would be in {system}: \
             --set 'factors.router_os=[\"{system}\"]' makes each router a guest; or set factors.router_queue = [\"inline\"], or \
             add the missing modules to this kernel (see: stacklab doctor)"
        )));
    }
    if let Some(generator) = study.cells.iter().map(Generator::of).find(|generator| generator.is_other()) {
        return Err(CampaignError::Usage(format!(
            "generator {generator} runs between namespaces of this kernel, and the study's testbeds would be in {system}, where \
             its program is not installed: set factors.generator = [\"stacklab\"], or add the missing modules to this kernel (see: stacklab doctor)"
        )));
    }
    if !study.programs.is_empty() {
        return Err(CampaignError::Usage(format!(
            "programs run between namespaces of this kernel, and the study's testbeds would be in {system}, where they are not \
             installed: add the missing modules to this kernel (see: stacklab doctor)"
        )));
    }
    Ok(())
}

/// `missing` is what this kernel lacks; `None` if `--in-vm` asks for the guest.
fn refuse_connections(metric: Metric, system: &System, missing: Option<&str>) -> CampaignError {
    let advice = match missing {
        None => "leave --in-vm out".to_owned(),
        Some(missing) => format!(
            "{missing}; add the missing modules to this kernel (see: stacklab doctor), or leave out what needs them"
        ),
    };
    CampaignError::Usage(format!(
        "{metric} counts the connections of routers on this kernel, and the study's testbeds would be in {system}: {advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Topology;
    use stacklab_study::{Input, parse};

    const STUDY: &str = "title = \"t\"\n[testbed]\ntopology = \"routed\"\n[factors]\nmechanism = [\"nat44\"]\n\
        router_queue = [\"inline\"]\nfamily = [\"ipv4\"]\ntransport = [\"udp\"]\nsize = [64]\n\
        [probe.search]\nmetrics = [\"connection_rate\"]\nloss = \"0.5 %\"\n";

    fn check(text: &str) -> Option<String> {
        let study = parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}"));
        let Topology::Routed(links) = study.topology else { panic!("{text}") };
        let link_config = study.link_config.clone();
        let rows = study.rows();
        let needs = Requirements { rows, link_config, links, forward_only: true, watches_memory: false };
        check_guest(&study, &needs, &System::Uml, true).err().map(|error| error.to_string())
    }

    #[test]
    fn connections_are_counted_on_this_kernel() {
        let refused = check(STUDY).unwrap();
        for part in ["connection_rate counts the connections", "would be in uml: leave --in-vm out"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(check(&STUDY.replace("connection_rate", "load_at_loss")), None);
        let missing = "nat44 needs NAT, which this kernel does not support";
        let refused = refuse_connections(Metric::TeardownRate, &System::Uml, Some(missing)).to_string();
        assert!(refused.contains("in uml: nat44 needs NAT") && !refused.contains("--in-vm"), "{refused}");
    }

    #[test]
    fn queues_of_routers_are_on_this_kernel() {
        let threads = STUDY.replace("connection_rate", "load_at_loss").replace("inline", "thread");
        assert!(check(&threads).unwrap().contains("makes each router a guest"));
    }
}
