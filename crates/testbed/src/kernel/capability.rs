//! The abilities of this kernel, found by trying them in a temporary network namespace.

use crate::kernel::namespace::in_new_namespace;
use crate::kernel::netlink::{add_device, interface, with_netlink};
use crate::kernel::sys::{create_tun, open_tun};
use crate::kernel::sysctl::{forward, silence_where_allowed};
use crate::kernel::tc::htb;
use crate::kernel::tc::part::QueuePart;
use crate::kernel::tc::queue::{create, remove_root};
use crate::kernel::tc::tbf::{Bucket, words};
use crate::link::switch_off_all;
use crate::mechanism::devices::write_tunnel_device;
use crate::mechanism::nat::try_rules;
use crate::mechanism::offload::try_table;
use crate::mechanism::translate::jool_here;
use crate::mechanism::udp_port::GUE;
use crate::mechanism::{esp, fou, segments};
use crate::{Attempt, Fault, INTERFACE, TestbedError};
use rtnetlink::packet_route::link::{InfoData, InfoIpTunnel, LinkAttribute, LinkInfo};
use rtnetlink::{LinkBridge, LinkVeth};
use stacklab_model::{Device, Family, Mechanism, Rate, Remote, Setup};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A kernel feature or program that a testbed may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// Its name.
    pub name: &'static str,
    /// The purpose that it is needed for.
    pub what_for: &'static str,
    /// Success, or the attempted step and the kernel's error.
    pub result: Result<(), String>,
    /// The advice for an ability that is missing.
    pub remedy: &'static str,
}

/// Tries each ability once, in a network namespace that is gone on return. Call it after [`crate::enter`].
///
/// Some modules (`sit`, `ip_gre`, `ip6_tunnel`) add a device to every namespace when they are loaded, including the
/// machine's own. They are not loaded for this; the result says so. The kernel loads other modules as needed.
pub fn abilities() -> Vec<Ability> {
    let devices = Mechanism::devices();
    let tried = in_new_namespace(|| {
        let probes = PROBES.iter().map(|probe| (probe.attempt)().map_err(|fault| fault.to_string()));
        let tunnels = devices.iter().enumerate();
        let tunnels = tunnels.map(|(number, (mechanism, device))| try_tunnel(number, *mechanism, device));
        probes.chain(tunnels).collect::<Vec<_>>()
    });
    let (whole, results) = match tried {
        Ok(results) => (Ok(()), results),
        Err(error) => {
            let untried = Err("there is no network namespace to try it in".to_owned());
            let whole = Err(format!("cannot make a network namespace: {error}"));
            (whole, vec![untried; PROBES.len() + devices.len()])
        }
    };
    let remedy = "run as root (sudo), or open user namespaces; or a kernel with CONFIG_NET_NS";
    let probes = PROBES.iter().map(|probe| (probe.name, probe.what_for, probe.remedy));
    let devices = devices.iter().map(|(_, device)| (device.ability, device.what_for, device.remedy));
    let all = [("network namespace", "every testbed", remedy)].into_iter().chain(probes).chain(devices);
    let all = all.zip([vec![whole], results].concat());
    all.map(|((name, what_for, remedy), result)| {
        let tun = (name == TUN && result.is_err()).then(check_tun).and_then(Result::err);
        Ability { name, what_for, result, remedy: tun.map_or(remedy, |(_, remedy)| remedy) }
    })
    .collect()
}

/// Whether the file of TUN and TAP devices can be opened; or why not, and what makes it usable. Call it after
/// [`crate::enter`].
pub fn check_tun() -> Result<(), (String, &'static str)> {
    open_tun().map(drop).map_err(|error| (error.to_string(), error.remedy()))
}

const TUN: &str = "tun";

/// The ability of a host that is a router.
pub const FORWARDING: &str = "forwarding";

/// The settings that a host in a network namespace could not have, and would leave at the kernel's defaults. Call it
/// after [`crate::enter`].
pub fn kept_settings() -> Result<Vec<String>, TestbedError> {
    let tried = in_new_namespace(silence_where_allowed);
    let tried = tried.map_err(|error| TestbedError(format!("cannot make a network namespace: {error}")))?;
    tried.map_err(|fault| TestbedError(fault.to_string()))
}

struct CapabilityProbe {
    name: &'static str,
    what_for: &'static str,
    remedy: &'static str,
    attempt: fn() -> Result<(), Fault>,
}

/// A tunnel's endpoint, from the documentation networks. It must be set: a tunnel without endpoints is the device that
/// the module itself creates. Each tunnel has two: the kernel has one device of a kind between two addresses.
fn choose_end(family: Family, last: u8) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::new(192, 0, 2, last).into(),
        Family::Ipv6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into(),
    }
}

/// The ability of a router that changes addresses.
pub const NAT: &str = "nat";

/// The ability of a router that forwards known connections past its rules.
pub const FLOWTABLES: &str = "flowtables";

const PROBES: [CapabilityProbe; 12] = [
    CapabilityProbe {
        name: "ipv6",
        what_for: "both families on every testbed",
        remedy: "boot without ipv6.disable=1",
        attempt: || silence_where_allowed().map(drop),
    },
    CapabilityProbe {
        name: "veth",
        what_for: "the link of every testbed",
        remedy: "sudo modprobe veth, or a kernel with CONFIG_VETH",
        attempt: || add_device(LinkVeth::new(INTERFACE, "st1").build(), "a veth interface"),
    },
    CapabilityProbe {
        name: "offload control",
        what_for: "packets on the link as they are in the kernel",
        remedy: "needs veth, and CAP_NET_ADMIN",
        attempt: || switch_off_all(INTERFACE),
    },
    CapabilityProbe {
        name: "tbf",
        what_for: "a link with a known rate",
        remedy: "sudo modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF",
        attempt: || {
            let bucket = Bucket::new(Rate(1_000_000_000), 1500).attempt("describe a tbf queue")?;
            add_queue_to_loopback("tbf", bucket.encode())
        },
    },
    CapabilityProbe {
        name: "htb",
        what_for: "several rates on one link",
        remedy: "sudo modprobe sch_htb, or a kernel with CONFIG_NET_SCH_HTB",
        attempt: || add_queue_to_loopback("htb", htb::discipline()),
    },
    CapabilityProbe {
        name: "netem",
        what_for: "a link with delay or loss",
        remedy: "sudo modprobe sch_netem, or a kernel with CONFIG_NET_SCH_NETEM",
        // struct tc_netem_qopt: latency, limit 1000, loss, gap, duplicate, jitter.
        attempt: || add_queue_to_loopback("netem", words([0, 1000, 0, 0, 0, 0])),
    },
    CapabilityProbe {
        name: FORWARDING,
        what_for: "routers between the hosts",
        remedy: "a container needs --security-opt unmask=ALL (podman) or --security-opt \
                 systempaths=unconfined (docker)",
        attempt: forward,
    },
    CapabilityProbe {
        name: TUN,
        what_for: "translators and user-space stacks",
        remedy: "sudo modprobe tun, or a kernel with CONFIG_TUN",
        attempt: || create_tun().map(drop).attempt("create a tun device"),
    },
    CapabilityProbe {
        name: "jool",
        what_for: "translators in the kernel, stateful NAT64",
        remedy: "sudo apt-get install jool-dkms jool-tools, then sudo modprobe jool && sudo modprobe jool_siit; or a guest that has it: \
                 stacklab image build uml-full (five minutes)",
        attempt: || jool_here().map(drop),
    },
    CapabilityProbe {
        name: NAT,
        what_for: "NAT44, NAT66, NPTv6, softwires, MAP-T and firewall rules",
        remedy: "sudo apt-get install --no-install-recommends nftables; or a kernel with CONFIG_NFT_NAT and CONFIG_NFT_MASQ",
        attempt: try_rules,
    },
    CapabilityProbe {
        name: FLOWTABLES,
        what_for: "routers that forward known connections past their rules (factor flow_offload)",
        remedy: "sudo modprobe -a nft_flow_offload nf_flow_table_inet, or a kernel with CONFIG_NFT_FLOW_OFFLOAD; or a guest that has it: \
                 stacklab image get linux-6.1 (under a minute)",
        attempt: try_table,
    },
    CapabilityProbe {
        name: "bridge",
        what_for: "several hosts on one link",
        remedy: "sudo modprobe bridge, or a kernel with CONFIG_BRIDGE",
        attempt: || add_device(LinkBridge::new("st-bridge").build(), "a bridge interface"),
    },
];

fn try_tunnel(number: usize, mechanism: Mechanism, device: &Device) -> Result<(), String> {
    for module in device.modules {
        // A module of another device that adds none does not either.
        let mut others = Mechanism::devices().into_iter();
        let is_harmless = others.any(|(_, other)| !other.intrusive && other.modules.contains(module));
        if device.intrusive && !is_harmless && is_only_loadable(module, Path::new("/")) {
            return Err(format!(
                "module {module} is not loaded; not tested, because that would add devices to this machine"
            ));
        }
    }
    add_tunnel(number, mechanism).map_err(|fault| fault.to_string())
}

fn add_tunnel(number: usize, mechanism: Mechanism) -> Result<(), Fault> {
    let Some(tunnel) = mechanism.tunnel() else { return Ok(()) };
    match tunnel.device.setup {
        Setup::Segments => return segments::try_routes(),
        Setup::SegmentsToTable => return segments::try_table(),
        Setup::Esp => return esp::try_states(tunnel),
        Setup::Fou => return fou::try_devices(tunnel),
        Setup::Gue => GUE.open(tunnel.outer())?,
        Setup::GreInEsp => esp::try_states(tunnel)?,
        Setup::IpTunnel | Setup::Gre | Setup::WireGuard | Setup::Vxlan | Setup::Geneve => {}
    }
    let name = &format!("st-tunnel{number}");
    let ends = [1, 2].map(|last| choose_end(tunnel.outer(), number as u8 * 2 + last));
    add_device(
        write_tunnel_device(name, mechanism, tunnel, ends),
        &format!("a {} interface", tunnel.device.ability),
    )?;
    match tunnel.remote {
        Remote::InDestination { prefix, .. } => has_sixrd_prefix(name, prefix.0),
        Remote::Configured => Ok(()),
    }
}

fn is_only_loadable(module: &str, root: &Path) -> bool {
    if root.join("sys/module").join(module).exists() {
        return false;
    }
    let Ok(release) = fs::read_to_string(root.join("proc/sys/kernel/osrelease")) else { return false };
    let list = root.join("lib/modules").join(release.trim()).join("modules.dep");
    fs::read_to_string(list).is_ok_and(|list| list.contains(&format!("/{module}.ko")))
}

/// Checks the 6rd prefix of a device: a kernel without 6rd creates the device but ignores the prefix.
fn has_sixrd_prefix(name: &str, prefix: Ipv6Addr) -> Result<(), Fault> {
    let link = with_netlink(async |netlink| interface(&netlink, name).await)?;
    let has_prefix = link.attributes.iter().any(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.iter().any(|info| match info {
            LinkInfo::Data(InfoData::IpTunnel(data)) => data.contains(&InfoIpTunnel::Ipv6RdPrefix(prefix)),
            _ => false,
        }),
        _ => false,
    });
    has_prefix
        .then_some(())
        .ok_or("the kernel ignores the 6rd prefix")
        .attempt("create a sit device with a 6rd prefix")
}

fn add_queue_to_loopback(kind: &'static str, options: Vec<u8>) -> Result<(), Fault> {
    create("lo", vec![QueuePart::discipline(kind, options, &format!("add a {kind} queue to"))])?;
    remove_root("lo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_on_disk_but_not_loaded_is_only_loadable() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["proc/sys/kernel", "lib/modules/6.1.0", "sys/module"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        assert!(!is_only_loadable("sit", root.path()), "not on disk");
        fs::write(at("lib/modules/6.1.0/modules.dep"), "kernel/net/ipv6/sit.ko.xz: kernel/net/x.ko\n")
            .unwrap();
        assert!(is_only_loadable("sit", root.path()));
        assert!(!is_only_loadable("it", root.path()), "another module's name ends so");
        fs::create_dir(at("sys/module/sit")).unwrap();
        assert!(!is_only_loadable("sit", root.path()), "loaded");
    }
}
