//! What routers need of their kernel, and which guests' kernels lack it.

use crate::Image;
use stacklab_model::{FlowOffload, Mechanism, Method, Publisher, RoutedKind, System, Tracking, Translator};
use stacklab_testbed::mechanism::{nat, offload};
use stacklab_testbed::{FLOWTABLES, NAT};

/// The names of the abilities ([`stacklab_testbed::Ability`]) that the routers' kernels need for a routed testbed.
pub(crate) fn list_kernel_needs(kind: &RoutedKind) -> Vec<&'static str> {
    let mut needs = match &kind.mechanism.definition().method {
        Method::Forwarding => Vec::new(),
        Method::Tunnel(tunnel) => vec![tunnel.device.ability],
        Method::Softwire(tunnel, _) => vec![tunnel.device.ability, NAT],
        Method::Mapping(_) => vec!["tun", NAT],
        Method::Translation(_) => vec![match kind.translator {
            Some(Translator::Jool) => JOOL,
            Some(Translator::Tayga) | None => "tun",
        }],
        Method::Nat(_) => vec![NAT],
        Method::Publishing(Publisher::Dnat) => vec![NAT, TRACKING],
        Method::Publishing(Publisher::DockerProxy | Publisher::Macvlan) => Vec::new(),
        Method::Publishing(Publisher::Pasta | Publisher::Slirp) => vec!["tun"],
    };
    if kind.filters() && !needs.contains(&NAT) {
        needs.push(NAT);
    }
    let keeps_customers_apart = kind.mechanism == Mechanism::DsLite && kind.customers > 1;
    if kind.tables.tracking != Tracking::Off || keeps_customers_apart {
        needs.push(TRACKING);
    }
    if kind.tables.offload == FlowOffload::On {
        needs.push(FLOWTABLES);
    }
    needs
}

pub(crate) const JOOL: &str = "jool";

/// What is known of a connection, in rules of nftables. Kernels that have NAT have it, but for those built here.
const TRACKING: &str = "nft_ct";

/// Whether a guest's kernel does not support the ability. Debian's user-mode Linux lacks some modules, a kernel that
/// was built here the options that were left out, all others Jool. Unknown for a user's disk image.
pub(crate) fn lacks_support(system: &System, need: &str) -> bool {
    let devices = Mechanism::devices();
    let device = devices.iter().find(|(_, device)| device.ability == need).map(|(_, device)| device);
    match system {
        // Kernels are built without them, but for those of a user's tree that has them.
        System::OwnUml(_) if need == FLOWTABLES => {
            Image::find(system).map_or(true, |image| image.lacks_options(&offload::OPTIONS))
        }
        // A kernel that is not built yet will have it.
        System::OwnUml(_) => Image::find(system).is_ok_and(|image| match device {
            Some(device) => image.lacks_options(device.options),
            None if need == NAT => image.lacks_options(&nat::OPTIONS),
            None if need == TRACKING => image.lacks_options(&["CONFIG_NFT_CT=y"]),
            None => need == JOOL && image.jool.is_none(),
        }),
        System::Uml | System::Linux(_) if need == JOOL => true,
        System::Uml if [NAT, FLOWTABLES, TRACKING].contains(&need) => true,
        System::Uml => device.is_some_and(|device| !device.in_debian_uml),
        // An image from before they were packed.
        System::Linux(_) if need == FLOWTABLES => {
            Image::find(system).is_ok_and(|image| image.lacks_module(offload::MODULE))
        }
        System::Linux(_) if need == TRACKING => {
            Image::find(system).is_ok_and(|image| image.lacks_module(TRACKING))
        }
        System::Linux(_) | System::Disk(_) => false,
        System::Namespace | System::Gvisor | System::Smoltcp | System::Localhost | System::Ssh(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flowtables_are_in_debian_kernels_alone() {
        let mut kind = RoutedKind::of_namespaces(Mechanism::Native);
        assert!(!list_kernel_needs(&kind).contains(&FLOWTABLES));
        kind.tables.offload = FlowOffload::On;
        assert_eq!(list_kernel_needs(&kind), [NAT, FLOWTABLES]);
        let own = System::OwnUml("without-an-image".to_owned());
        assert!(lacks_support(&System::Uml, FLOWTABLES) && lacks_support(&own, FLOWTABLES));
        assert!(!lacks_support(&System::Linux("without-an-image".to_owned()), FLOWTABLES));
    }
}
