//! The settings of a network namespace (sysctl).

use crate::kernel::netlink::change;
use crate::{Attempt, Fault};
use std::fs;

/// Writes a setting below `/proc/sys/net`, which shows each thread its namespace's settings: the machine's are out of
/// reach.
pub fn write(name: &str, value: &str) -> Result<(), Fault> {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).attempt(format!("write {value} to {path}"))
}

/// These are written to `all`, and to `default`, which new interfaces copy.
const PER_INTERFACE: [(&str, &str); 7] = [
    // A machine may disable IPv6 on new interfaces. A testbed uses both families.
    ("disable_ipv6", "0"),
    // Addresses are usable at once: on a link with two hosts, duplicates cannot occur.
    ("accept_dad", "0"),
    // Nor are they lost while a link is down, like those of IPv4.
    ("keep_addr_on_down", "1"),
    ("accept_ra", "0"),
    ("autoconf", "0"),
    ("router_solicitations", "0"),
    // Send multicast listener reports at once, not spread over the first second, which may overlap a run.
    ("mldv2_unsolicited_report_interval", "1"),
];

/// Silences the calling thread's namespace, and sets its loopback interface up. Call it before the link exists.
pub fn silence() -> Result<(), Fault> {
    for scope in ["all", "default"] {
        for (setting, value) in PER_INTERFACE {
            write(&format!("ipv6/conf/{scope}/{setting}"), value)?;
        }
    }
    // Otherwise a connection starts with metrics of the previous one. The setting applies to both families.
    write("ipv4/tcp_no_metrics_save", "1")?;
    // Otherwise the kernel refuses a TCP receiver that reflects the flow label of its peer.
    write("ipv6/flowlabel_consistency", "0")?;
    change("lo", "raise", |link| link.up())
}

/// The settings of every host of a routed testbed: no reverse path filter, no ICMP redirects.
pub fn prepare_routing() -> Result<(), Fault> {
    let settings = [
        ("ipv4", "rp_filter"),
        ("ipv4", "send_redirects"),
        ("ipv4", "accept_redirects"),
        ("ipv6", "accept_redirects"),
    ];
    let write_all = |scope| {
        settings.iter().try_for_each(|(family, name)| write(&format!("{family}/conf/{scope}/{name}"), "0"))
    };
    ["all", "default"].into_iter().try_for_each(write_all)
}

pub(crate) fn forward() -> Result<(), Fault> {
    write("ipv4/ip_forward", "1")?;
    write("ipv6/conf/all/forwarding", "1")?;
    write("ipv6/conf/default/forwarding", "1")?;
    // Answer every packet that is too large, so that path MTU discovery does not wait.
    write("ipv4/icmp_ratelimit", "0")?;
    write("ipv6/icmp/ratelimit", "0")
}

/// Keeps discovered path MTUs for a whole campaign instead of ten minutes. `false` if the setting cannot be changed:
/// without root, and in kernels before 5.16, which have one setting for all namespaces.
pub fn keep_path_mtus() -> bool {
    ["ipv4", "ipv6"].iter().all(|family| write(&format!("{family}/route/mtu_expires"), "1000000").is_ok())
}
