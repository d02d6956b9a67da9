//! Names of hosts, in the record and on the page.

use stacklab_model::{Role, Services, System, Systems};
use stacklab_testbed::Node;

/// Names of the two end hosts, sender first.
pub fn names(systems: &Systems, services: &Services) -> [String; 2] {
    let [sender, receiver] = &systems.0;
    let name = |role: Role, system: &System, part: &str| match (system, services.is_empty()) {
        (System::Namespace, true) => role.name().to_owned(),
        (System::Namespace, false) => format!("{role} ({part} of {services})"),
        (system, _) => format!("{role} ({system})"),
    };
    [name(Role::Sender, sender, "client"), name(Role::Receiver, receiver, "server")]
}

/// Name of a router.
pub fn router_name(router: Node, routers: &Systems) -> String {
    match &routers.0[usize::from(router == Node::Router2)] {
        System::Namespace => router.name().to_owned(),
        system => format!("{router} ({system})"),
    }
}
