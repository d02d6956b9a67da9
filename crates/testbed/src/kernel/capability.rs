//! What this kernel can do, found by doing it in a network namespace that is thrown away.

use crate::error::{Attempt, Fault};
use crate::kernel::namespace::in_new_namespace;
use crate::kernel::netlink::{interface, with_netlink};
use crate::kernel::sys::create_tun;
use crate::kernel::sysctl::silence;
use crate::kernel::tc::htb;
use crate::kernel::tc::request::add_queue;
use crate::kernel::tc::tbf::{Bucket, words};
use crate::link::addressing::{INTERFACE, SIXRD};
use crate::link::offload::switch_off_all;
use crate::mechanism::translate::jool_here;
use rtnetlink::packet_route::link::{InfoData, InfoIpTunnel, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::{LinkBridge, LinkGre, LinkGre6, LinkIp6Tnl, LinkSit, LinkVeth, LinkWireguard};
use stacklab_model::Rate;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Something that a testbed may need of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// What it is called.
    pub name: &'static str,
    /// What it is needed for.
    pub what_for: &'static str,
    /// Whether it was done, or what was attempted and what the kernel answered.
    pub result: Result<(), String>,
    /// What to do where it was refused.
    pub remedy: &'static str,
}

/// Tries everything once, in a network namespace that is gone when this returns; call it after [`crate::enter`].
///
/// A module that would put a device into every namespace as soon as it is loaded, the machine's own included
/// (`sit`, `ip_gre`, `ip6_tunnel`), is not loaded by trying: where it is only loadable, that is the answer.
/// Other modules are loaded by the kernel as it needs them.
pub fn abilities() -> Vec<Ability> {
    let tried = in_new_namespace(|| PROBES.iter().map(Probe::run).collect::<Vec<_>>());
    let namespace = Ability {
        name: "network namespace",
        what_for: "every testbed",
        result: tried
            .as_ref()
            .map(|_| ())
            .map_err(|error| format!("cannot make a network namespace: {error}")),
        remedy: "run as root (sudo), or open user namespaces; or a kernel with CONFIG_NET_NS",
    };
    let others = tried.unwrap_or_else(|_| {
        PROBES
            .iter()
            .map(|probe| probe.ability(Err("there is no network namespace to try it in".into())))
            .collect()
    });
    [vec![namespace], others].concat()
}

/// How one ability is found.
struct Probe {
    name: &'static str,
    what_for: &'static str,
    remedy: &'static str,
    /// The module that must already be there, where loading it would put a device into the machine's own
    /// namespace.
    intrusive_module: Option<&'static str>,
    attempt: fn() -> Result<(), Fault>,
}

/// Ends of tunnels, from the networks for documentation. They must be given: a tunnel without ends is the device
/// that the module itself has made.
const ENDS_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
const ENDS_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];

const PROBES: [Probe; 15] = [
    Probe {
        name: "ipv6",
        what_for: "both families on every testbed",
        remedy: "boot without ipv6.disable=1; in a container, one that may write to /proc/sys",
        intrusive_module: None,
        attempt: silence,
    },
    Probe {
        name: "veth",
        what_for: "the link of every testbed",
        remedy: "sudo modprobe veth, or a kernel with CONFIG_VETH",
        intrusive_module: None,
        attempt: || add_link(LinkVeth::new(INTERFACE, "st1").build(), "veth"),
    },
    Probe {
        name: "offload control",
        what_for: "packets on the link as they are in the kernel",
        remedy: "needs veth, and CAP_NET_ADMIN",
        intrusive_module: None,
        // The interface is the one that the probe before has made.
        attempt: || switch_off_all(INTERFACE),
    },
    Probe {
        name: "tbf",
        what_for: "a link with a known rate",
        remedy: "sudo modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF",
        intrusive_module: None,
        attempt: || {
            let bucket = Bucket::new(Rate(1_000_000_000), 1500);
            let bucket = bucket.map_err(io::Error::other).attempt("describe a tbf queue")?;
            add_queue_to_loopback("tbf", bucket.encode())
        },
    },
    Probe {
        name: "htb",
        what_for: "several rates on one link",
        remedy: "sudo modprobe sch_htb, or a kernel with CONFIG_NET_SCH_HTB",
        intrusive_module: None,
        // TCA_HTB_INIT is struct tc_htb_glob: version 3, rate to quantum 10, no default class, no debugging.
        attempt: || add_queue_to_loopback("htb", htb::discipline()),
    },
    Probe {
        name: "netem",
        what_for: "a link with delay or loss",
        remedy: "sudo modprobe sch_netem, or a kernel with CONFIG_NET_SCH_NETEM",
        intrusive_module: None,
        // struct tc_netem_qopt: latency, limit 1000, loss, gap, duplicate, jitter.
        attempt: || add_queue_to_loopback("netem", words([0, 1000, 0, 0, 0, 0])),
    },
    Probe {
        name: "tun",
        what_for: "translators and user-space stacks",
        remedy: "sudo modprobe tun, or a kernel with CONFIG_TUN",
        intrusive_module: None,
        attempt: || create_tun().map(drop).attempt("create a tun device"),
    },
    Probe {
        name: "jool",
        what_for: "translators in the kernel, NAT64 with state",
        remedy: "sudo apt-get install jool-dkms jool-tools, then sudo modprobe jool && sudo modprobe jool_siit; or a guest that has it: \
                 stacklab image build uml-full",
        // Trying it loads nothing.
        intrusive_module: None,
        attempt: || jool_here().map(drop),
    },
    Probe {
        name: "sit",
        what_for: "6in4, 6to4 and 6rd",
        remedy: "sudo modprobe sit, or a kernel with CONFIG_IPV6_SIT",
        intrusive_module: Some("sit"),
        attempt: || {
            let [local, remote] = ENDS_V4;
            add_link(LinkSit::new("st-sit").local(local).remote(remote).build(), "sit")
        },
    },
    Probe {
        name: "sit 6rd",
        what_for: "6rd",
        remedy: "a kernel with CONFIG_IPV6_SIT_6RD, as Debian's are",
        intrusive_module: Some("sit"),
        attempt: || {
            let [local, _] = ENDS_V4;
            let device = LinkSit::new("st-6rd").local(local).ipv6_rd_prefix(SIXRD.0);
            let device = device.ipv6_rd_prefixlen(SIXRD.1.into()).build();
            add_link(device, "sit device with a 6rd prefix")?;
            has_sixrd_prefix("st-6rd")
        },
    },
    Probe {
        name: "gre",
        what_for: "either family in GRE over IPv4",
        remedy: "sudo modprobe ip_gre, or a kernel with CONFIG_NET_IPGRE",
        intrusive_module: Some("ip_gre"),
        attempt: || {
            let [local, remote] = ENDS_V4;
            add_link(LinkGre::new("st-gre").local(local).remote(remote).build(), "gre")
        },
    },
    Probe {
        name: "ip6gre",
        what_for: "either family in GRE over IPv6",
        remedy: "sudo modprobe ip6_gre, or a kernel with CONFIG_IPV6_GRE",
        intrusive_module: Some("ip6_gre"),
        attempt: || {
            let [local, remote] = ENDS_V6;
            add_link(LinkGre6::new("st-ip6gre").local(local).remote(remote).build(), "ip6gre")
        },
    },
    Probe {
        name: "ip6tnl",
        what_for: "IPv4 in IPv6",
        remedy: "sudo modprobe ip6_tunnel, or a kernel with CONFIG_IPV6_TUNNEL",
        intrusive_module: Some("ip6_tunnel"),
        attempt: || {
            let [local, remote] = ENDS_V6;
            add_link(LinkIp6Tnl::new("st-ip6tnl").local(local).remote(remote).build(), "ip6tnl")
        },
    },
    Probe {
        name: "bridge",
        what_for: "several hosts on one link",
        remedy: "sudo modprobe bridge, or a kernel with CONFIG_BRIDGE",
        intrusive_module: None,
        attempt: || add_link(LinkBridge::new("st-bridge").build(), "bridge"),
    },
    Probe {
        name: "wireguard",
        what_for: "an encrypted tunnel",
        remedy: "sudo modprobe wireguard, or a kernel with CONFIG_WIREGUARD",
        intrusive_module: None,
        attempt: || add_link(LinkWireguard::new("st-wg").build(), "wireguard"),
    },
];

impl Probe {
    fn run(&self) -> Ability {
        let result = match self.intrusive_module.filter(|module| is_only_loadable(module, Path::new("/"))) {
            Some(module) => Err(format!(
                "module {module} is not loaded; it was not tried, for that would add devices to this machine"
            )),
            None => (self.attempt)().map_err(|fault| fault.to_string()),
        };
        self.ability(result)
    }

    fn ability(&self, result: Result<(), String>) -> Ability {
        Ability { name: self.name, what_for: self.what_for, result, remedy: self.remedy }
    }
}

/// Whether a module is among the running kernel's modules, but not in the kernel yet.
fn is_only_loadable(module: &str, root: &Path) -> bool {
    if root.join("sys/module").join(module).exists() {
        return false;
    }
    let Ok(release) = fs::read_to_string(root.join("proc/sys/kernel/osrelease")) else { return false };
    let list = root.join("lib/modules").join(release.trim()).join("modules.dep");
    fs::read_to_string(list).is_ok_and(|list| list.contains(&format!("/{module}.ko")))
}

fn add_link(link: LinkMessage, kind: &str) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        netlink.link().add(link).execute().await.attempt(format!("create a {kind} interface"))
    })
}

/// A kernel without 6rd makes the device and passes over the prefix: a device that has it tells it.
fn has_sixrd_prefix(name: &str) -> Result<(), Fault> {
    let link = with_netlink(async |netlink| interface(&netlink, name).await)?;
    let told = link.attributes.iter().any(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.iter().any(|info| match info {
            LinkInfo::Data(InfoData::IpTunnel(data)) => data.contains(&InfoIpTunnel::Ipv6RdPrefix(SIXRD.0)),
            _ => false,
        }),
        _ => false,
    });
    let refused = || io::Error::new(io::ErrorKind::Unsupported, "the kernel passes over the 6rd prefix");
    told.then_some(()).ok_or_else(refused).attempt("create a sit device with a 6rd prefix")
}

fn add_queue_to_loopback(kind: &str, options: Vec<u8>) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, "lo").await?.header.index;
        add_queue(&netlink, index, kind, options).await.attempt(format!("add a {kind} queue"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_on_disk_but_not_in_the_kernel_is_only_loadable() {
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
