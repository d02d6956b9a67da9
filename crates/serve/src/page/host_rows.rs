//! The hosts and links of a study, for the drawing of the testbed.

use stacklab_campaign::rig::{ACCESS_POINT, names, router_name};
use stacklab_model::wifi::WifiConfig;
use stacklab_model::{RoutedKind, Services, Systems, Topology, once_each};
use stacklab_report::page::TestbedDrawing;
use stacklab_study::Study;
use stacklab_testbed::Node;

/// A row for each pair of systems and set of services, or for each Wi-Fi network. With routers, one row for all
/// mechanisms, which have the same hosts.
pub(super) fn of(study: &Study) -> Vec<TestbedDrawing> {
    if matches!(study.topology, Topology::Wifi(_)) {
        return study.networks().iter().map(on_wifi).collect();
    }
    let Topology::Routed(links) = study.topology else {
        let pair = |(systems, services): &(Systems, Services)| TestbedDrawing {
            names: names(systems, services).to_vec(),
            ..TestbedDrawing::default()
        };
        return study.labs().iter().map(pair).collect();
    };
    let mechanisms: Vec<String> = study.mechanisms().iter().map(ToString::to_string).collect();
    let hosts =
        once_each(study.rows().into_iter().map(|RoutedKind { clients, routers, .. }| (clients, routers)));
    let row = |(clients, routers): (Systems, Systems)| {
        let [sender, receiver] = names(&clients, &Services::default());
        let [one, other] = [Node::Router1, Node::Router2].map(|node| router_name(node, &routers));
        let names = vec![sender, one, other, receiver];
        TestbedDrawing { names, mechanisms: mechanisms.clone(), links, ..TestbedDrawing::default() }
    };
    hosts.into_iter().map(row).collect()
}

fn on_wifi(network: &WifiConfig) -> TestbedDrawing {
    let [sender, receiver] = names(&Systems::NAMESPACES, &Services::default());
    let names = vec![sender, ACCESS_POINT.to_owned(), receiver];
    TestbedDrawing { names, channel: network.facts(), ..TestbedDrawing::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Links;
    use stacklab_study::{Input, parse};

    fn rows(text: &str) -> Vec<TestbedDrawing> {
        of(&parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}")))
    }

    #[test]
    fn every_system_has_a_row_of_two_hosts() {
        let rows = rows(include_str!("../../../../studies/systems.toml"));
        let names: Vec<String> = rows.iter().map(|row| row.names.join(" - ")).collect();
        assert_eq!(
            names,
            [
                "sender - receiver",
                "sender (gvisor) - receiver (gvisor)",
                "sender (linux-6.1) - receiver (linux-6.1)",
                "sender (linux-6.12) - receiver (linux-6.12)"
            ]
        );
        assert!(
            rows.iter().all(|row| row.mechanisms.is_empty() && row.links == Links::default()),
            "{rows:?}"
        );
    }

    #[test]
    fn routers_stand_between_the_ends_once_for_all_mechanisms() {
        let study = include_str!("../../../../studies/mechanisms.toml");
        let plain = rows(study);
        assert_eq!(plain.len(), 1, "{plain:?}");
        assert_eq!(plain[0].names, ["sender", "router1", "router2", "receiver"]);
        // Each mechanism once, in the order of the cells.
        assert_eq!(plain[0].mechanisms.len(), 13);
        assert_eq!(plain[0].mechanisms[0], "native");
        assert!(
            ["6in4", "wireguard6"].iter().all(|one| plain[0].mechanisms.iter().any(|known| known == one))
        );
        assert_eq!(plain[0].links, Links::default());
        let far = rows(
            &study
                .replace("topology = \"routed\"", "topology = \"routed\"\ndelay = \"5ms\"\nloss = \"0.1 %\""),
        );
        assert_eq!(far[0].links.middle.impairments(), ["delay 5 ms", "loss 0.1 %"]);
        let others =
            rows(&study.replace("[factors]", "[factors]\nrouter_os = [\"namespace\", \"uml -> linux-6.1\"]"));
        assert_eq!(others.len(), 2, "{others:?}");
        assert_eq!(others[1].names, ["sender", "router1 (uml)", "router2 (linux-6.1)", "receiver"]);
    }

    #[test]
    fn an_access_point_stands_between_stations_once_for_each_network() {
        let study = include_str!("../../../../studies/quickstart.toml")
            .replace("[testbed]", "[testbed]\ntopology = \"wifi\"")
            .replace("[factors]", "[factors]\nwifi.security = [\"open\", \"wpa2\"]");
        let rows = rows(&study);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows.iter().all(|row| row.names == ["sender", "access point", "receiver"]));
        let security = rows.iter().map(|row| row.channel[5].as_str());
        assert!(security.eq(["security open", "security wpa2"]), "{rows:?}");
    }
}
