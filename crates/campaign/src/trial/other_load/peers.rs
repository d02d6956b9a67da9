//! The processes of this machine at the other ends of this program's TCP connections. An agent, or a server of iperf3,
//! that is measured on this machine works for the measurement, and does not count as other load: also in another
//! network namespace, as a container has. One behind a translator that changes the connection's addresses is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// An IPv4 address in an IPv6 socket, as `/proc/net/tcp6` has it.
const MAPPED: &str = "0000000000000000FFFF0000";

/// A line of `/proc/net/tcp`.
#[derive(Debug, PartialEq, Eq)]
struct TcpConnection {
    ends: [String; 2],
    inode: u64,
}

/// Which of these processes have the other end of a connection of this one.
pub(super) fn find_peers(pids: impl Iterator<Item = u32>) -> BTreeSet<u32> {
    let own_sockets = list_sockets("self");
    let here = read_connections("self");
    let own: Vec<&TcpConnection> = here.iter().filter(|one| own_sockets.contains(&one.inode)).collect();
    let mut peers = BTreeSet::new();
    if own.is_empty() {
        return peers;
    }
    // Each namespace has its own loopback: a connection with both ends here is not looked for elsewhere.
    let outgoing: Vec<&TcpConnection> =
        own.iter().copied().filter(|one| find_other_ends(&here, &[one]).is_empty()).collect();
    let own_namespace = read_namespace("self");
    let own_pid = std::process::id();
    for (namespace, pids) in group_by_namespace(pids.filter(|pid| *pid != own_pid)) {
        let sockets = if Some(&namespace) == own_namespace.as_ref() {
            find_other_ends(&here, &own)
        } else if outgoing.is_empty() {
            continue;
        } else {
            find_other_ends(&read_connections(&pids[0].to_string()), &outgoing)
        };
        if !sockets.is_empty() {
            peers.extend(pids.iter().filter(|pid| !list_sockets(&pid.to_string()).is_disjoint(&sockets)));
        }
    }
    peers
}

/// Processes by the network namespace that they are in, without those of other users, whose namespace cannot be read.
fn group_by_namespace(pids: impl Iterator<Item = u32>) -> BTreeMap<String, Vec<u32>> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for pid in pids {
        if let Some(namespace) = read_namespace(&pid.to_string()) {
            groups.entry(namespace).or_default().push(pid);
        }
    }
    groups
}

/// The network namespace of a process, such as `net:[4026531840]`.
fn read_namespace(process: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
    Some(link.to_str()?.to_owned())
}

/// The connections in the network namespace of a process.
fn read_connections(process: &str) -> Vec<TcpConnection> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{process}/net/{name}")));
    tables.iter().flatten().flat_map(|table| table.lines().filter_map(read_connection)).collect()
}

/// The sockets among these connections that are the other ends of this process's own.
fn find_other_ends(connections: &[TcpConnection], own: &[&TcpConnection]) -> BTreeSet<u64> {
    let reversed: BTreeSet<[&str; 2]> =
        own.iter().map(|one| [one.ends[1].as_str(), one.ends[0].as_str()]).collect();
    let others = connections.iter().filter(|other| own.iter().all(|one| one.inode != other.inode));
    others
        .filter(|one| reversed.contains(&[one.ends[0].as_str(), one.ends[1].as_str()]))
        .map(|one| one.inode)
        .collect()
}

/// The sockets that a process has open. Those of another user's process cannot be read, and are none.
fn list_sockets(process: &str) -> BTreeSet<u64> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| read_inode(fs::read_link(file.path()).ok()?.to_str()?)).collect()
}

fn read_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn read_end(field: &str) -> String {
    field.trim_start_matches(MAPPED).to_owned()
}

/// A line such as `0: 0100007F:1452 0100007F:C8A2 01 .. inode ..`; `None` for the heading.
fn read_connection(line: &str) -> Option<TcpConnection> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    Some(TcpConnection {
        ends: [read_end(fields.get(1)?), read_end(fields.get(2)?)],
        inode: fields.get(9)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_has_its_other_end_in_either_table() {
        let rest = "01 00000000:00000000 00:00000000 00000000 0 0";
        let mapped = "0000000000000000FFFF00000100007F";
        let lines = [
            format!("0: 0100007F:C8A2 0100007F:1452 {rest} 11 1"),
            format!("1: {mapped}:1452 {mapped}:C8A2 {rest} 12 1"),
            format!("2: 0100007F:1452 0100007F:C8A3 {rest} 13 1"),
        ];
        let connections = lines.map(|line| read_connection(&line).unwrap());
        assert_eq!(read_connection("  sl  local_address rem_address st tx_queue"), None);
        let found = find_other_ends(&connections, &[&connections[0]]);
        assert_eq!(found, BTreeSet::from([12]));
    }

    #[test]
    fn own_sockets_are_listed_over_both_families() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(place).unwrap();
            let before = list_sockets("self").len();
            let _stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert!(list_sockets("self").len() > before.saturating_sub(1));
            // Both ends are this process's own: it is no peer of itself.
            assert!(!find_peers([std::process::id()].into_iter()).contains(&std::process::id()));
        }
    }
}
