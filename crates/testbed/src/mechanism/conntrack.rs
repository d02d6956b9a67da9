//! Connection tracking on a router: a rule that needs it, and further connections, which no packet of a study belongs
//! to. A counter proves that packets are tracked, and the kernel's own count that the connections are there.

use crate::kernel::batch::RequestBatch;
use crate::kernel::genl::message::attribute;
use crate::kernel::memory::MemoryWatch;
use crate::mechanism::nat::{add_rules, name_family, read_counter};
use crate::mechanism::routes::octets;
use crate::mechanism::rules::choose_address;
use crate::{Attempt, Fault};
use nix::sys::socket::SockProtocol;
use stacklab_model::{Family, Table, Tables, Tracking};
use std::fs;
use std::net::IpAddr;
use std::ops::Range;

/// The names of the table and of its counter.
const TABLE: &str = "stacklab_conntrack";
const COUNTER: &str = "tracked";

/// The kernel's settings below `/proc/sys/net/netfilter`: the connections of this namespace, and the most that each
/// namespace may have.
pub(super) const COUNT: &str = "nf_conntrack_count";
pub(super) const LIMIT: &str = "nf_conntrack_max";
/// Connections that a study itself may have at once: the flows and probes of a cell.
const MAX_OWN: u64 = 20_000;

/// The request for a new connection (`IPCTNL_MSG_CT_NEW` of connection tracking), and its attributes
/// (linux/netfilter/nfnetlink_conntrack.h).
const NEW_CONNECTION: u16 = 1 << 8;
const ORIGINAL: u16 = 1 | NESTED;
const REPLY: u16 = 2 | NESTED;
const STATUS: u16 = 3;
const TIMEOUT: u16 = 7;
const MARK: u16 = 8;
const ADDRESSES: u16 = 1 | NESTED;
const PROTOCOL: u16 = 2 | NESTED;
const NESTED: u16 = 0x8000;
/// Both directions were seen, so that the kernel does not drop it for a newer one; and it is complete.
const SEEN_ASSURED_CONFIRMED: u32 = 2 | 4 | 8;
/// Longer than any campaign.
const TIMEOUT_SECONDS: u32 = 30 * 24 * 3600;
/// The mark of further connections, by which they are kept when those of a search are deleted.
pub(super) const FURTHER: u32 = 1;
/// The ports of a name server's client, for example.
const PORTS: [u16; 2] = [40_000, 53];

pub(crate) fn build(tables: Tables, memory: &mut MemoryWatch) -> Result<(), Fault> {
    let Tracking::On(connections) = tables.tracking else { return Ok(()) };
    add_rules(&Family::ALL.iter().map(|family| write_rule(*family)).collect::<String>())?;
    if connections > 0 || tables.destinations > 1 {
        check_limit(connections, tables.destinations, read_setting(LIMIT)?)?;
    }
    if connections == 0 {
        return Ok(());
    }
    memory.add_to_both(Table::Connections, connections, |family, numbers| {
        let what = format!("add {connections} tracked {family} connections");
        let before = read_setting(COUNT)?;
        let asked = u64::from(numbers.end - numbers.start);
        add_connections(family, numbers).attempt(&*what)?;
        let added = read_setting(COUNT)?.saturating_sub(before);
        if added != asked {
            return Err(format!("the kernel counts {added} of {asked} more")).attempt(what);
        }
        Ok(())
    })
}

/// The number of forwarded packets of a family in this namespace that were tracked.
pub(crate) fn count_connection_packets(family: Family) -> Result<u64, Fault> {
    Ok(read_counter(name_family(family), TABLE, COUNTER)?.packets)
}

/// A rule that counts what belongs to a connection. It turns tracking on.
fn write_rule(family: Family) -> String {
    let kind = name_family(family);
    format!(
        "add table {kind} {TABLE}\n\
         add counter {kind} {TABLE} {COUNTER}\n\
         add chain {kind} {TABLE} relay {{ type filter hook forward priority filter; }}\n\
         add rule {kind} {TABLE} relay ct state new,established,related counter name {COUNTER}\n"
    )
}

/// The kernel refuses connections beyond its limit, also those of the study, which has one with each destination: a
/// stream of each family lasts longer than the kernel forgets them.
fn check_limit(connections: u32, destinations: u32, limit: u64) -> Result<(), Fault> {
    let of_study = MAX_OWN.max(u64::from(destinations) * 2);
    let needed = u64::from(connections) * 2 + of_study;
    if needed <= limit {
        return Ok(());
    }
    let what = match connections {
        0 => format!("track the connections with {destinations} destinations of each family"),
        _ => format!("track {connections} connections of each family"),
    };
    Err(format!(
        "with those of the study they are up to {needed}, and this kernel tracks {limit} at most: ask for fewer, or \
         sudo sysctl -w net.netfilter.{LIMIT}={needed}"
    ))
    .attempt(what)
}

pub(super) fn read_setting(name: &str) -> Result<u64, Fault> {
    let path = format!("/proc/sys/net/netfilter/{name}");
    let text = fs::read_to_string(&path).attempt(format!("read {path}"))?;
    text.trim().parse().attempt(format!("read the number in {path}"))
}

fn add_connections(family: Family, numbers: Range<u32>) -> Result<(), Fault> {
    let mut batch = RequestBatch::open(SockProtocol::NetlinkNetFilter).attempt("open a netlink socket")?;
    // No client has this number.
    let server = choose_address(family, u32::MAX >> 8);
    for number in numbers {
        let body = write_connection(choose_address(family, number), server);
        batch
            .create(NEW_CONNECTION, &body)
            .attempt("add a connection (it needs a kernel with CONFIG_NF_CT_NETLINK)")?;
    }
    batch.finish().attempt("add a connection (it needs a kernel with CONFIG_NF_CT_NETLINK)")
}

/// The body of the request for a UDP connection.
fn write_connection(client: IpAddr, server: IpAddr) -> Vec<u8> {
    let family = match client {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    let [from, to] = PORTS;
    // Family, version, and no resource.
    let mut body = vec![family as u8, 0, 0, 0];
    body.extend(attribute(ORIGINAL, &write_direction([client, server], [from, to])));
    body.extend(attribute(REPLY, &write_direction([server, client], [to, from])));
    body.extend(attribute(STATUS, &SEEN_ASSURED_CONFIRMED.to_be_bytes()));
    body.extend(attribute(TIMEOUT, &TIMEOUT_SECONDS.to_be_bytes()));
    body.extend(attribute(MARK, &FURTHER.to_be_bytes()));
    body
}

/// Addresses and ports of a direction, the source's first.
fn write_direction(addresses: [IpAddr; 2], ports: [u16; 2]) -> Vec<u8> {
    let kinds = if addresses[0].is_ipv4() { [1, 2] } else { [3, 4] };
    let mut of_ip = Vec::new();
    for (kind, address) in kinds.into_iter().zip(addresses) {
        of_ip.extend(attribute(kind, &octets(address)));
    }
    let mut of_protocol = attribute(1, &[libc::IPPROTO_UDP as u8]);
    for (kind, port) in [2, 3].into_iter().zip(ports) {
        of_protocol.extend(attribute(kind, &port.to_be_bytes()));
    }
    [attribute(ADDRESSES, &of_ip), attribute(PROTOCOL, &of_protocol)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::namespace::in_new_namespace;
    use std::net::Ipv4Addr;

    #[test]
    fn a_connection_is_what_the_kernel_reads() {
        let [client, server] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last)));
        let body = write_connection(client, server);
        assert_eq!(body.len(), 4 + 2 * (4 + 4 + 16 + 4 + 24) + 8 + 8 + 8);
        // CTA_TUPLE_ORIG, CTA_TUPLE_IP, CTA_IP_V4_SRC.
        assert_eq!(body[..20], *b"\x02\0\0\0\x34\0\x01\x80\x14\0\x01\x80\x08\0\x01\0\x0a\0\0\x01");
    }

    #[test]
    fn refuses_more_connections_than_the_kernel_tracks() {
        check_limit(20_000, 1, 65_536).unwrap();
        check_limit(20_000, 10_000, 65_536).unwrap();
        let error = check_limit(0, 200_000, 262_144).unwrap_err().to_string();
        assert!(error.contains("track the connections with 200000 destinations"), "{error}");
        assert!(error.contains("sysctl -w net.netfilter.nf_conntrack_max=400000"), "{error}");
        let error = check_limit(200_000, 1, 262_144).unwrap_err().to_string();
        assert!(error.contains("this kernel tracks 262144 at most"), "{error}");
        assert!(error.contains("sysctl -w net.netfilter.nf_conntrack_max=420000"), "{error}");
    }

    #[test]
    fn connections_of_both_families_are_counted() {
        let tables = Tables { tracking: Tracking::On(700), ..Tables::default() };
        let counted = in_new_namespace(|| {
            build(tables, &mut MemoryWatch::default())?;
            read_setting(COUNT)
        });
        assert_eq!(counted.unwrap().unwrap(), 1400);
    }
}
