//! The table of connections of a router, in its namespace: what is in it, what the kernel refused, and its deletion.

use crate::kernel::batch::RequestBatch;
use crate::kernel::genl::message::attribute;
use crate::kernel::sysctl;
use crate::mechanism::conntrack::{COUNT, FURTHER, LIMIT, read_setting};
use crate::{Attempt, Fault};
use nix::sys::socket::SockProtocol;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The request for the deletion of connections (`IPCTNL_MSG_CT_DELETE`): without a name, of all. Its attributes say
/// which bits of their mark are looked at, and what they must be.
const DELETE_CONNECTIONS: u16 = 1 << 8 | 2;
const MARK: u16 = 8;
const MARK_MASK: u16 = 21;
/// Where the thread's namespace has what the kernel refused: a line of hexadecimal numbers for each processor, below
/// their names.
const STATISTICS: &str = "/proc/thread-self/net/stat/nf_conntrack";
const REFUSED: [&str; 3] = ["insert_failed", "drop", "early_drop"];
/// How long an entry of UDP stays without a message, with and without an answer, and how long it is to stay, seconds:
/// longer than any search.
const TIMEOUTS: [&str; 2] = ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"];
const STAYS: &str = "86400";
/// How long the kernel may take to free what was deleted.
const MAX_FREEING: Duration = Duration::from_secs(10);

/// The number of connections; none in a kernel that tracks none.
pub(crate) fn count_connections() -> Result<u64, Fault> {
    if tracks_connections() { read_setting(COUNT) } else { Ok(0) }
}

fn tracks_connections() -> bool {
    Path::new("/proc/sys/net/netfilter").join(COUNT).exists()
}

/// Keeps entries of UDP that no message needs any more, in this namespace. The kernel would count one that has expired,
/// and make another one for its next message.
pub(crate) fn keep_entries() -> Result<(), Fault> {
    for timeout in TIMEOUTS {
        sysctl::write(&format!("netfilter/{timeout}"), STAYS)?;
    }
    Ok(())
}

/// The most connections that a namespace may have.
pub(crate) fn read_limit() -> Result<u64, Fault> {
    read_setting(LIMIT)
}

/// Packets so far for which the kernel made no entry, or deleted another one.
pub(crate) fn count_refused() -> Result<u64, Fault> {
    if !tracks_connections() {
        return Ok(0);
    }
    let what = format!("read {STATISTICS} (it needs a kernel with CONFIG_NF_CONNTRACK_PROCFS)");
    let text = fs::read_to_string(STATISTICS).attempt(&*what)?;
    sum_columns(&text, &REFUSED).ok_or("it has no such numbers").attempt(what)
}

/// The sum of these columns over all processors.
fn sum_columns(text: &str, columns: &[&str]) -> Option<u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_whitespace().collect();
    let mut sum = 0;
    for line in lines {
        let numbers: Vec<&str> = line.split_whitespace().collect();
        for refused in columns {
            let place = names.iter().position(|name| name == refused)?;
            sum += u64::from_str_radix(numbers.get(place)?, 16).ok()?;
        }
    }
    Some(sum)
}

/// Deletes all connections by one request, but further ones where these are kept. Returns the time until the kernel
/// counts no more than `left`.
pub(crate) fn delete_connections(keeps_further: bool, left: u64) -> Result<Duration, Fault> {
    const WHAT: &str = "delete connections (it needs a kernel with CONFIG_NF_CT_NETLINK)";
    // Family, version, and no resource.
    let mut body = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    if keeps_further {
        body.extend(attribute(MARK, &0_u32.to_be_bytes()));
        body.extend(attribute(MARK_MASK, &FURTHER.to_be_bytes()));
    }
    let mut batch = RequestBatch::open(SockProtocol::NetlinkNetFilter).attempt("open a netlink socket")?;
    batch.delete(DELETE_CONNECTIONS, &body).attempt(WHAT)?;
    let begins = Instant::now();
    batch.finish().attempt(WHAT)?;
    loop {
        let count = count_connections()?;
        let took = begins.elapsed();
        if count <= left {
            return Ok(took);
        }
        if took > MAX_FREEING {
            let reason = format!("after {} s it still counts {count}, not {left}", MAX_FREEING.as_secs());
            return Err(reason).attempt(WHAT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::memory::MemoryWatch;
    use crate::kernel::namespace::in_new_namespace;
    use crate::mechanism::conntrack;
    use stacklab_model::{Tables, Tracking};

    #[test]
    fn refused_packets_of_all_processors_are_added() {
        let text = "entries clashres found insert insert_failed drop early_drop icmp_error\n\
                    0a 00 00 00 00000001 00000010 00000000 07\n\
                    0a 00 00 00 00000000 00000000 000000ff 07\n";
        assert_eq!(sum_columns(text, &REFUSED), Some(1 + 16 + 255));
        assert_eq!(sum_columns("entries found\n00 00\n", &REFUSED), None);
    }

    /// The file also has the number of connections, once for each processor.
    #[test]
    fn statistics_are_those_of_the_threads_namespace() {
        let tables = Tables { tracking: Tracking::On(300), ..Tables::default() };
        let read = in_new_namespace(|| {
            conntrack::build(tables, &mut MemoryWatch::default())?;
            keep_entries()?;
            fs::read_to_string(STATISTICS).attempt("read the statistics")
        });
        let text = read.unwrap().unwrap();
        let processors = text.lines().count() as u64 - 1;
        assert_eq!(sum_columns(&text, &["entries"]), Some(600 * processors), "{text}");
    }

    #[test]
    fn further_connections_are_kept() {
        let tables = Tables { tracking: Tracking::On(300), ..Tables::default() };
        let counted = in_new_namespace(|| {
            conntrack::build(tables, &mut MemoryWatch::default())?;
            delete_connections(true, 600)?;
            let kept = count_connections()?;
            delete_connections(false, 0)?;
            Ok::<_, Fault>([kept, count_connections()?, count_refused()?])
        });
        assert_eq!(counted.unwrap().unwrap(), [600, 0, 0]);
    }
}
