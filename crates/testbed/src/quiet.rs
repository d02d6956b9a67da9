//! A namespace in which nothing speaks but the traffic under test.

use crate::error::{Attempt, Fault};
use crate::netlink::{interface, with_netlink};
use rtnetlink::LinkUnspec;
use std::fs;

/// Written to `all`, and to `default`, which later interfaces start from.
const PER_INTERFACE: [(&str, &str); 6] = [
    // A machine may have IPv6 off for new interfaces; a testbed has both families.
    ("disable_ipv6", "0"),
    // Addresses are usable at once: on a link of two, nobody else can have them.
    ("accept_dad", "0"),
    ("accept_ra", "0"),
    ("autoconf", "0"),
    ("router_solicitations", "0"),
    // Multicast listener reports are sent at once, not spread over the first second, where a run may have begun.
    ("mldv2_unsolicited_report_interval", "1"),
];

/// Quiets the namespace of the calling thread and raises its loopback. To be done before the link is there.
pub(crate) fn quiet() -> Result<(), Fault> {
    for scope in ["all", "default"] {
        for (setting, value) in PER_INTERFACE {
            write(&format!("/proc/sys/net/ipv6/conf/{scope}/{setting}"), value)?;
        }
    }
    // Otherwise a connection starts with what the kernel remembers of the one before, and runs are not independent.
    // The setting is TCP's own and holds for both families.
    write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")?;
    // Else the kernel refuses a TCP receiver that would answer with the flow label of whoever connects.
    write("/proc/sys/net/ipv6/flowlabel_consistency", "0")?;
    with_netlink(async |netlink| {
        let index = interface(&netlink, "lo").await?.header.index;
        let up = LinkUnspec::new_with_index(index).up().build();
        netlink.link().change(up).execute().await.attempt("raise the loopback interface")
    })
}

/// `/proc/sys/net` shows each thread the settings of its own namespace, so the machine's are out of reach here.
fn write(path: &str, value: &str) -> Result<(), Fault> {
    fs::write(path, value).attempt(format!("write {value} to {path}"))
}
