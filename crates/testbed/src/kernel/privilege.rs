//! The privilege to create network namespaces: root, or a user namespace of this process.

use crate::kernel::namespace::{in_new_namespace, mount_proc};
use crate::{TestbedError, unshare_mounts};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::os::unix::fs::MetadataExt;
use std::{fs, io, process};

/// The privilege by which the process can create network namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The process already had the privilege: root or equivalent capabilities. Nothing was changed.
    Root,
    /// The process has entered a user namespace. It is root over what it creates there, and over nothing else.
    UserNamespace,
}

/// Whether a file belongs to this process's user, and not to another one who may put there what they like.
pub fn owns(file: &fs::Metadata) -> bool {
    file.uid() == geteuid().as_raw()
}

/// Makes sure that the process can create network namespaces. Enters a user namespace if needed: call it once, early,
/// because only a process with a single thread may. After an error the process can continue without testbeds; it may
/// then be in a user namespace in which it has no privileges.
pub fn enter() -> Result<Privilege, TestbedError> {
    see_own_processes()?;
    let privilege = if has_capabilities(&own_status()) {
        Privilege::Root
    } else {
        enter_user_namespace()?;
        Privilege::UserNamespace
    };
    // A capability alone is not enough: AppArmor and seccomp may still refuse.
    in_new_namespace(|| ()).map_err(describe_denial("make a network namespace"))?;
    Ok(privilege)
}

/// Makes sure that /proc shows this process's own PID namespace, where hosts are found by their process IDs. Some
/// containers and CI runners have the outer /proc. The process then gets a mount namespace with a new /proc.
fn see_own_processes() -> Result<(), TestbedError> {
    if proc_shows_own() {
        return Ok(());
    }
    let reason = match unshare_mounts().and_then(|()| mount_proc()) {
        Ok(()) if proc_shows_own() => return Ok(()),
        Ok(()) => io::Error::other("it still shows another one's"),
        Err(error) => error.into(),
    };
    Err(TestbedError(format!(
        "cannot have a /proc of this PID namespace's processes: {reason}; mount one, with: mount -t proc proc /proc \
         (in a new namespace: unshare --mount-proc)"
    )))
}

fn proc_shows_own() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == process::id().to_string().as_str())
}

fn own_status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// CAP_NET_ADMIN and CAP_SYS_ADMIN, as bits (linux/capability.h).
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// Whether a process's `status` file shows the capabilities that namespaces and links need.
fn has_capabilities(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & NEEDED == NEEDED)
}

/// Whether a process's `status` file shows a filter of system calls, as most containers have.
fn has_filter(status: &str) -> bool {
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

fn enter_user_namespace() -> Result<(), TestbedError> {
    // Read them before entering the user namespace, where they are unmapped.
    let user = geteuid();
    let group = getegid();
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(io::Error::from)
        .map_err(describe_denial("enter a user namespace"))?;
    // The order matters: without privilege, groups can be mapped only after setgroups is denied.
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, text).map_err(describe_denial("become root in a user namespace"))?;
    }
    Ok(())
}

fn describe_denial(attempted: &'static str) -> impl FnOnce(io::Error) -> TestbedError {
    move |reason| {
        let advice = advice(&reason, read_setting, has_filter(&own_status()));
        TestbedError(format!("cannot {attempted}: {reason}; {advice}"))
    }
}

fn read_setting(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/{name}")).ok()
}

/// Settings that can disable user namespaces: the file under `/proc/sys`, the value that disables them, and a value
/// that enables them.
const LOCKS: [(&str, &str, &str); 4] = [
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"), // Ubuntu from 23.10
    ("kernel/unprivileged_userns_clone", "0", "1"),             // Debian until 10, Arch's hardened kernel
    ("user/max_user_namespaces", "0", "15000"),                 // Red Hat Enterprise Linux 7
    ("user/max_net_namespaces", "0", "15000"),
];

/// `is_filtered`: whether this process has a filter of system calls.
fn advice(reason: &io::Error, setting: impl Fn(&str) -> Option<String>, is_filtered: bool) -> String {
    if reason.raw_os_error() == Some(libc::EINVAL) {
        return "the process has several threads already: it must enter before it starts any".to_owned();
    }
    let lock = LOCKS.iter().find(|(name, closed, _)| setting(name).is_some_and(|now| now.trim() == *closed));
    match lock {
        Some((name, _, open)) => {
            format!("run as root (sudo), or: sudo sysctl -w {}={open}", name.replace('/', "."))
        }
        None if reason.raw_os_error() == Some(libc::ENOSPC) => {
            "a limit is reached: see `sysctl user.max_user_namespaces user.max_net_namespaces`".to_owned()
        }
        // Docker's filter forbids user namespaces, podman's does not.
        None if is_filtered => {
            "a filter of system calls (seccomp) forbids it: start the container with --security-opt seccomp=unconfined"
                .to_owned()
        }
        None => "run as root (sudo)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_capabilities_are_told_from_a_users() {
        assert!(has_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(!has_capabilities("Name:\tx\nCapEff:\t0000000000000000\n"));
        assert!(!has_capabilities("CapEff:\t00000000a80425fb\n"), "root in an ordinary container");
        assert!(!has_capabilities(""));
    }

    fn set_only(setting: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
        move |name| (name == setting).then(|| format!("{value}\n"))
    }

    #[test]
    fn the_advice_names_the_setting_that_is_closed() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        let ubuntu = advice(&refused, set_only("kernel/apparmor_restrict_unprivileged_userns", "1"), true);
        assert_eq!(
            ubuntu,
            "run as root (sudo), or: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        );
        let limit = io::Error::from_raw_os_error(libc::ENOSPC);
        let zero = advice(&limit, set_only("user/max_user_namespaces", "0"), true);
        assert!(zero.contains("sysctl -w user.max_user_namespaces=15000"), "{zero}");
        let open = advice(&refused, set_only("kernel/unprivileged_userns_clone", "1"), false);
        assert_eq!(open, "run as root (sudo)");
        let threads = advice(&io::Error::from_raw_os_error(libc::EINVAL), |_| None, true);
        assert!(threads.contains("threads"), "{threads}");
    }

    #[test]
    fn names_the_option_that_lifts_a_seccomp_filter() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        let filtered = advice(&refused, |_| None, has_filter("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(filtered.ends_with("--security-opt seccomp=unconfined"), "{filtered}");
        let free = advice(&refused, |_| None, has_filter("Seccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(!free.contains("seccomp"), "{free}");
    }
}
