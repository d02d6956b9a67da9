//! A container's host: what brings packets that the host gets at its own address to the container, by a rule of
//! nftables or by the programs of container engines. The host is the far router, and the container its client.

use crate::addressing::{hardware_address_text, prefix_bits, routed_hardware_address};
use crate::kernel::namespace::open_other;
use crate::kernel::netlink::add_neighbour;
use crate::kernel::sys::keep_open;
use crate::mechanism::nat::{RuleCount, add_rules, name_family, read_counter};
use crate::{Attempt, CustomerId, Fault, INTERFACE, MIDDLE, Router, Site, TestbedError, find};
use stacklab_model::{Family, Mechanism, Publisher, Transport};
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The ports that programs publish.
pub(crate) const PORTS: RangeInclusive<u16> = Publisher::PORTS;

/// An installed package would start a daemon.
const GET_DOCKER_PROXY: &str = "apt-get download docker.io && dpkg-deb -x docker.io_*.deb docker, and \
                                PATH=$PWD/docker/usr/sbin:$PATH (to install the package starts Docker's daemon)";

const GET_SLIRP: &str = "sudo apt-get install --no-install-recommends slirp4netns";

const TABLE: &str = "stacklab_publish";
const COUNTER: &str = "carried";

/// Installs what is not a program.
pub(crate) fn build(router: &Router, publisher: Publisher) -> Result<(), Fault> {
    match (publisher, router.site) {
        (Publisher::Dnat, Site::Far) => add_rules(&write_rules(router)),
        (Publisher::Macvlan, Site::Near) => introduce_container(router),
        _ => Ok(()),
    }
}

/// The container on the middle link is a neighbour of the near router.
fn introduce_container(router: &Router) -> Result<(), Fault> {
    let hardware = routed_hardware_address(Site::Far.client(), INTERFACE);
    for family in Family::ALL {
        let container = Site::Far.client_address(router.customer, router.mechanism, *family);
        add_neighbour(MIDDLE, container, hardware)?;
    }
    Ok(())
}

/// Another destination for what comes to the host's own address, and a rule that counts it when it is forwarded to the
/// container. Engines have a rule there too, which accepts it.
fn write_rules(router: &Router) -> String {
    let mut rules = String::new();
    for family in Family::ALL {
        let kind = name_family(*family);
        let own = router.own_outer(*family);
        let container = router.site.client_address(router.customer, router.mechanism, *family);
        rules += &format!(
            "add table {kind} {TABLE}\n\
             add counter {kind} {TABLE} {COUNTER}\n\
             add chain {kind} {TABLE} in {{ type nat hook prerouting priority dstnat; }}\n\
             add rule {kind} {TABLE} in iifname \"{MIDDLE}\" {kind} daddr {own} meta l4proto {{ tcp, udp }} dnat to {container}\n\
             add chain {kind} {TABLE} relay {{ type filter hook forward priority filter; }}\n\
             add rule {kind} {TABLE} relay iifname \"{MIDDLE}\" ct status dnat counter name {COUNTER}\n"
        );
    }
    rules
}

/// The bytes of packets of both families with another destination that this namespace has forwarded.
pub(crate) fn count_forwarded_bytes() -> Result<u64, Fault> {
    let mut all = 0;
    for family in Family::ALL {
        let RuleCount { bytes, .. } = read_counter(name_family(*family), TABLE, COUNTER)?;
        all += bytes;
    }
    Ok(all)
}

/// The program that a publisher is, if it is one. The error says how to get it.
pub(crate) fn publisher_program(publisher: Publisher) -> Result<Option<PathBuf>, TestbedError> {
    match publisher {
        Publisher::Dnat | Publisher::Macvlan => Ok(None),
        Publisher::DockerProxy => find("docker-proxy", GET_DOCKER_PROXY).map(Some),
        Publisher::Pasta => find("pasta", "sudo apt-get install --no-install-recommends passt").map(Some),
        Publisher::Slirp => find("slirp4netns", GET_SLIRP).map(Some),
    }
}

/// Docker's proxies: one for each port, transport and family, as Docker starts them.
pub(crate) fn write_docker_proxies(program: &Path, router: &Router) -> Vec<Command> {
    let mut commands = Vec::new();
    for family in Family::ALL {
        let host = router.own_outer(*family).to_string();
        let container = router.site.client_address(router.customer, router.mechanism, *family).to_string();
        for transport in [Transport::Tcp, Transport::Udp] {
            for port in PORTS.map(|port| port.to_string()) {
                // It reports success at file 3, which Docker reads.
                let mut command = Command::new("/bin/sh");
                command.args(["-c", "exec \"$@\" 3>/dev/null", "sh"]).arg(program);
                command.args(["-proto", transport.name(), "-host-ip", &host, "-host-port", &port]);
                command.args(["-container-ip", &container, "-container-port", &port]);
                commands.push(command);
            }
        }
    }
    commands
}

/// The command of a program that gives the namespace of the container's process its device. Drop the file once it has
/// been started.
pub(crate) struct DeviceCommand {
    pub command: Command,
    _container: File,
}

/// The device gets its addresses and routes as those of other clients do. What pasta could add to a container, such as
/// a way to the host itself, is left out.
pub(crate) fn write_pasta(
    program: &Path,
    router: &Router,
    container: u32,
    mtu: u32,
) -> Result<DeviceCommand, Fault> {
    let namespace = open_other(container).attempt("open the container's network namespace")?;
    let ports = format!("{}-{}", PORTS.start(), PORTS.end());
    let node = router.site.router();
    let hardware = hardware_address_text(routed_hardware_address(node, INTERFACE));
    let mut command = Command::new(program);
    command.args(["-f", "-q", "--runas", "0", "--netns-only", "--no-map-gw", "--no-dhcp", "--no-dhcpv6"]);
    command.args(["--no-ra", "-i", MIDDLE, "-I", INTERFACE, "-M", &hardware, "-m", &mtu.to_string()]);
    for family in Family::ALL {
        let own = router.site.client_address(router.customer, router.mechanism, *family).to_string();
        let gateway = router.site.gateway(router.customer, router.mechanism, *family).to_string();
        command.args(["-a", &own, "-g", &gateway]);
    }
    let bits = prefix_bits(Family::Ipv4).to_string();
    command.args(["-n", &bits, "-t", &ports, "-u", &ports, "-T", "none", "-U", "none"]);
    // It may not look into other processes, so it gets the namespace as a file.
    command.args(["--netns", &format!("/proc/self/fd/{}", namespace.as_raw_fd())]);
    keep_open(&mut command, namespace.as_raw_fd());
    command.stdin(Stdio::null());
    Ok(DeviceCommand { command, _container: namespace })
}

/// The command of slirp4netns for a sender. Its own addresses on the device are not used: the container has those of
/// other clients, and any address leads to others.
pub(crate) fn write_slirp(
    program: &Path,
    mechanism: Mechanism,
    container: u32,
    mtu: u32,
) -> Result<DeviceCommand, Fault> {
    let namespace = open_other(container).attempt("open the container's network namespace")?;
    let (network, bits) = Site::Near.network(CustomerId::FIRST, mechanism, Family::Ipv4);
    let mut command = Command::new(program);
    command.args(["--enable-ipv6", "--disable-host-loopback", "--disable-dns", "--netns-type=path"]);
    command.args([format!("--mtu={mtu}"), format!("--cidr={network}/{bits}")]);
    command.args([&format!("/proc/self/fd/{}", namespace.as_raw_fd()), INTERFACE]);
    keep_open(&mut command, namespace.as_raw_fd());
    command.stdin(Stdio::null());
    Ok(DeviceCommand { command, _container: namespace })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Translator;

    fn far_router(mechanism: Mechanism) -> Router {
        Router::of_chain(Site::Far, mechanism, 1500, Translator::Tayga)
    }

    #[test]
    fn rules_lead_from_the_host_to_the_container() {
        let rules = write_rules(&far_router(Mechanism::Dnat));
        for rule in [
            "ip daddr 198.18.0.2 meta l4proto { tcp, udp } dnat to 198.18.2.1\n",
            "ip6 daddr 2001:2:0:ffff::2 meta l4proto { tcp, udp } dnat to 2001:2:0:2::1\n",
        ] {
            assert!(rules.contains(rule), "{rules}");
        }
    }

    #[test]
    fn every_port_of_both_families_has_a_proxy() {
        let commands = write_docker_proxies(Path::new("docker-proxy"), &far_router(Mechanism::DockerProxy));
        assert_eq!(commands.len(), PORTS.count() * 4);
        let last: Vec<_> = commands[commands.len() - 1].get_args().skip(3).collect();
        let expected = "docker-proxy -proto udp -host-ip 2001:2:0:ffff::2 -host-port 5208 -container-ip 2001:2:0:2::1 -container-port 5208";
        assert_eq!(last, expected.split(' ').collect::<Vec<_>>());
    }
}
