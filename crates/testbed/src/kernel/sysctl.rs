//! The settings of a network namespace (sysctl).

use crate::error::{Attempt, Fault};
use crate::kernel::netlink::{interface, with_netlink};
use rtnetlink::LinkUnspec;
use std::fs;

/// Writes a setting below `/proc/sys/net`, which shows each thread the settings of its own namespace: the machine's are out
/// of reach.
pub(crate) fn write(name: &str, value: &str) -> Result<(), Fault> {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).attempt(format!("write {value} to {path}"))
}

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

/// Silences the calling thread's namespace, so that nothing sends but the traffic under test, and raises its loopback. To be
/// done before the link is there.
pub(crate) fn silence() -> Result<(), Fault> {
    for scope in ["all", "default"] {
        for (setting, value) in PER_INTERFACE {
            write(&format!("ipv6/conf/{scope}/{setting}"), value)?;
        }
    }
    // Otherwise a connection starts with the metrics that the kernel saved of the one before, and runs are not independent.
    // The setting is TCP's own and holds for both families.
    write("ipv4/tcp_no_metrics_save", "1")?;
    // Else the kernel refuses a TCP receiver that would answer with the flow label of whoever connects.
    write("ipv6/flowlabel_consistency", "0")?;
    with_netlink(async |netlink| {
        let index = interface(&netlink, "lo").await?.header.index;
        let up = LinkUnspec::new_with_index(index).up().build();
        netlink.link().change(up).execute().await.attempt("raise the loopback interface")
    })
}

/// The settings of every host of a routed testbed: no reverse path filter, no ICMP redirects.
pub(crate) fn prepare_routing() -> Result<(), Fault> {
    for scope in ["all", "default"] {
        write(&format!("ipv4/conf/{scope}/rp_filter"), "0")?;
        // Do not send ICMP redirects, and do not follow any.
        write(&format!("ipv4/conf/{scope}/send_redirects"), "0")?;
        write(&format!("ipv4/conf/{scope}/accept_redirects"), "0")?;
        write(&format!("ipv6/conf/{scope}/accept_redirects"), "0")?;
    }
    Ok(())
}

/// Forwards packets of both families.
pub(crate) fn forward() -> Result<(), Fault> {
    write("ipv4/ip_forward", "1")?;
    write("ipv6/conf/all/forwarding", "1")?;
    write("ipv6/conf/default/forwarding", "1")?;
    // Every packet that is too large is answered, so that path MTU discovery does not wait.
    write("ipv4/icmp_ratelimit", "0")?;
    write("ipv6/icmp/ratelimit", "0")
}

/// Keeps discovered path MTUs for a campaign, not for ten minutes; `false` where the setting cannot be reached: without root,
/// and in kernels before 5.16, which have one for all namespaces.
pub(crate) fn keep_path_mtus() -> bool {
    ["ipv4", "ipv6"].iter().all(|family| write(&format!("{family}/route/mtu_expires"), "1000000").is_ok())
}
