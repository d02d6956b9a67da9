//! A container on its host's link by a macvlan device. What the device itself has carried proves its way, and that the
//! host has forwarded nothing: packets that took the host's own stack would be another mechanism's.

use crate::addressing::routed_hardware_address;
use crate::kernel::namespace::open_other;
use crate::kernel::netlink::{add_device, change, index, interface, with_netlink};
use crate::{AtHost, Attempt, Fault, Host, INTERFACE, InterfaceBytes, MIDDLE, Node, TestbedError};
use rtnetlink::LinkMacVlan;
use rtnetlink::packet_route::link::{LinkAttribute, MacVlanMode};
use std::fs::read_to_string;
use std::os::fd::AsRawFd;

/// The name under which the container's device is created. Before Linux 6.13 or so, no device of the creating namespace
/// may have the name, although the new one is in another.
const CREATED: &str = "macvlan";

/// Creates the device of this namespace's middle link in the namespace of the container's process. There
/// [`name_device`] gives it its name.
pub(crate) fn create_macvlan(container: u32, mtu: u32) -> Result<(), Fault> {
    let namespace = open_other(container).attempt("open the container's network namespace")?;
    let hardware = routed_hardware_address(Node::Receiver, INTERFACE);
    let device = LinkMacVlan::new(CREATED, index(MIDDLE)?, MacVlanMode::Bridge)
        .address(hardware.to_vec())
        .mtu(mtu)
        .setns_by_fd(namespace.as_raw_fd());
    add_device(device.build(), "a macvlan device for the container (CONFIG_MACVLAN)")
}

/// Gives the created device the name of a client's link.
pub(crate) fn name_device() -> Result<(), Fault> {
    change(CREATED, "rename", |link| link.name(INTERFACE.to_owned()))
}

/// Lets TCP send single segments by the device. The kernel keeps its segmentation offloads on and leaves the work to
/// the link below, so they cannot be switched off as those of other links.
pub(crate) fn send_single_segments() -> Result<(), Fault> {
    let single = LinkAttribute::GsoMaxSegs(1);
    change(INTERFACE, "limit the segments of", |link| link.append_extra_attribute(single.clone()))?;
    let link = with_netlink(async |netlink| interface(&netlink, INTERFACE).await)?;
    if !link.attributes.contains(&single) {
        return Err("the kernel keeps another limit")
            .attempt("limit the container's device to single segments");
    }
    Ok(())
}

/// The bytes that the container's device has carried so far, in both directions: data flow in either. Fails once the
/// host has forwarded a packet.
pub(crate) fn count_bytes_past_host(host: &Host, container: u32) -> Result<u64, TestbedError> {
    let forwarded = count_forwarded_packets(host.pid()).at(host.node())?;
    if forwarded > 0 {
        let reason = format!("it has forwarded {forwarded} packets, and a macvlan container needs none");
        return Err(reason).attempt("prove that packets pass by the container's host").at(host.node());
    }
    let bytes = InterfaceBytes::of_process(container).and_then(|mut table| table.now());
    let [received, sent] = bytes.attempt("read the counts of the container's device").at(Node::Receiver)?;
    Ok(received + sent)
}

/// The packets of both families that the stack in the namespace of a process has forwarded.
fn count_forwarded_packets(process: u32) -> Result<u64, Fault> {
    let mut all = 0;
    for (name, find) in [("snmp", find_forwarded_v4 as fn(&str) -> Option<u64>), ("snmp6", find_forwarded_v6)]
    {
        let path = format!("/proc/{process}/net/{name}");
        let table = read_to_string(&path).attempt(format!("read {path}"))?;
        all += find(&table).ok_or("it has no count of forwarded packets").attempt(format!("read {path}"))?;
    }
    Ok(all)
}

/// Names are in a line, and their values in the next.
fn find_forwarded_v4(table: &str) -> Option<u64> {
    let mut lines = table.lines().filter(|line| line.starts_with("Ip:"));
    let mut names = lines.next()?.split_whitespace();
    let column = names.position(|name| name == "ForwDatagrams")?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

fn find_forwarded_v6(table: &str) -> Option<u64> {
    let line = table.lines().find(|line| line.starts_with("Ip6OutForwDatagrams"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_packets_are_found_in_both_tables() {
        let table = "Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams\n\
                     Ip: 1 64 90 0 0 7\nIcmp: InMsgs\nIcmp: 3\n";
        assert_eq!(find_forwarded_v4(table), Some(7));
        assert_eq!(find_forwarded_v4("Ip: Forwarding\nIp: 1\n"), None);
        assert_eq!(find_forwarded_v6("Ip6InReceives    \t90\nIp6OutForwDatagrams   \t8\n"), Some(8));
        assert_eq!(find_forwarded_v6("Ip6InReceives 90\n"), None);
    }
}
