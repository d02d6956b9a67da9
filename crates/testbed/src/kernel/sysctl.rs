//! The settings of a network namespace (sysctl).
//!
//! Most containers have a read-only /proc/sys. A setting is therefore written only where its value differs. What cannot
//! be written is tried on a new /proc, which root may mount. What remains is an error, or, of the settings that only
//! keep a link silent, left at the kernel's default and listed.

use crate::Fault;
use crate::kernel::namespace::with_own_proc;
use crate::kernel::netlink::change;
use std::{fs, io};

/// A setting below `/proc/sys/net`, which shows each thread its namespace's settings: the machine's are out of reach.
#[derive(Debug, Clone)]
struct Setting {
    path: String,
    value: String,
}

impl Setting {
    fn new(name: &str, value: &str) -> Self {
        Setting { path: format!("/proc/sys/net/{name}"), value: value.to_owned() }
    }

    /// Writes the value if it differs.
    fn write(&self) -> io::Result<()> {
        if fs::read_to_string(&self.path).is_ok_and(|present| present.trim() == self.value) {
            return Ok(());
        }
        fs::write(&self.path, &self.value)
    }

    fn fault(&self, reason: io::Error) -> Fault {
        let Setting { path, value } = self;
        Fault::new(format!("write {value} to {path}"), reason)
    }
}

/// A setting that this process may not write, and the kernel's answer.
struct RefusedSetting {
    setting: Setting,
    reason: io::Error,
}

/// Makes these settings. Returns those that this process may not write.
fn make(settings: Vec<Setting>) -> Result<Vec<RefusedSetting>, Fault> {
    let refused = write_each(settings)?;
    if refused.is_empty() {
        return Ok(refused);
    }
    let again = refused.iter().map(|refusal| refusal.setting.clone()).collect();
    // A user namespace may not mount it if parts of the present /proc are covered, as in a container.
    with_own_proc(|| write_each(again)).unwrap_or(Ok(refused))
}

fn write_each(settings: Vec<Setting>) -> Result<Vec<RefusedSetting>, Fault> {
    let mut refused = Vec::new();
    for setting in settings {
        let Err(reason) = setting.write() else { continue };
        match reason.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                refused.push(RefusedSetting { setting, reason });
            }
            _ => return Err(setting.fault(reason)),
        }
    }
    Ok(refused)
}

/// Makes these settings, or fails.
fn require(settings: Vec<Setting>) -> Result<(), Fault> {
    match make(settings)?.pop() {
        Some(RefusedSetting { setting, reason }) => Err(setting.fault(reason)),
        None => Ok(()),
    }
}

/// Makes a setting of the calling thread's namespace.
pub fn write(name: &str, value: &str) -> Result<(), Fault> {
    require(vec![Setting::new(name, value)])
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

/// Of these, the one without which a testbed has no IPv6.
const REQUIRED: &str = "disable_ipv6";

/// These are written to the namespace.
const PER_NAMESPACE: [(&str, &str); 2] = [
    // Otherwise a connection starts with metrics of the previous one. The setting applies to both families.
    ("ipv4/tcp_no_metrics_save", "1"),
    // Otherwise the kernel refuses a TCP receiver that reflects the flow label of its peer.
    ("ipv6/flowlabel_consistency", "0"),
];

fn list_silencing() -> Vec<Setting> {
    let mut settings = Vec::new();
    for scope in ["all", "default"] {
        for (name, value) in PER_INTERFACE {
            settings.push(Setting::new(&format!("ipv6/conf/{scope}/{name}"), value));
        }
    }
    settings.extend(PER_NAMESPACE.iter().map(|(name, value)| Setting::new(name, value)));
    settings
}

/// Silences the calling thread's namespace, and sets its loopback interface up. Call it before the link exists.
pub fn silence() -> Result<(), Fault> {
    require(list_silencing())?;
    change("lo", "raise", |link| link.up())
}

/// Like [`silence`], as far as this process may: returns the names of the settings that it may not make. They have the
/// kernel's defaults. Interfaces must then have no link-local address, which would be announced.
pub fn silence_where_allowed() -> Result<Vec<String>, Fault> {
    let mut kept = Vec::new();
    for RefusedSetting { setting, reason } in make(list_silencing())? {
        let name = setting.path.rsplit('/').next().unwrap_or_default();
        if name == REQUIRED {
            return Err(setting.fault(reason));
        }
        // Each is there for `all` and for `default`.
        if !kept.iter().any(|known| known == name) {
            kept.push(name.to_owned());
        }
    }
    change("lo", "raise", |link| link.up())?;
    Ok(kept)
}

/// The settings of every host of a routed testbed: no reverse path filter, no ICMP redirects.
pub fn prepare_routing() -> Result<(), Fault> {
    let settings = [
        ("ipv4", "rp_filter"),
        ("ipv4", "send_redirects"),
        ("ipv4", "accept_redirects"),
        ("ipv6", "accept_redirects"),
    ];
    for scope in ["all", "default"] {
        for (family, name) in settings {
            write(&format!("{family}/conf/{scope}/{name}"), "0")?;
        }
    }
    Ok(())
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
