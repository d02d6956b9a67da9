//! What the client's programs read to find their resolver, and whom they trust.

use stacklab_testbed::{Attempt, Fault, hide_folder, mount_over};
use std::fs;
use std::io::Write;
use std::path::Path;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const NSSWITCH_CONF: &str = "/etc/nsswitch.conf";
/// Where the caches of names listen, which would answer with what the machine knows.
const CACHES: [&str; 2] = ["/run/nscd", "/var/run/nscd"];

/// Shows the calling thread, which has its own mount namespace, a `resolv.conf` with the resolver on the loopback
/// interface, an `nsswitch.conf` that asks it, and no cache.
pub(super) fn show_own_resolver() -> Result<(), Fault> {
    show(RESOLV_CONF, "nameserver 127.0.0.1\n")?;
    // Without the file the C library asks DNS.
    if let Ok(present) = fs::read_to_string(NSSWITCH_CONF) {
        show(NSSWITCH_CONF, &ask_dns_for_hosts(&present))?;
    }
    for folder in CACHES.map(Path::new) {
        if folder.is_dir() && !folder.is_symlink() {
            hide_folder(folder)?;
        }
    }
    Ok(())
}

/// Where programs look for the authorities that they trust (Debian, Fedora, openSUSE).
const BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// Shows this authority as the only one that is trusted. Returns a file that has it, if the machine has such files.
pub(super) fn show_authority(pem: &str) -> Result<Option<&'static str>, Fault> {
    let mut shown = None;
    for bundle in BUNDLES {
        if Path::new(bundle).is_file() {
            show(bundle, pem)?;
            shown = shown.or(Some(bundle));
        }
    }
    Ok(shown)
}

fn show(place: &str, text: &str) -> Result<(), Fault> {
    // The mount keeps the file, which nobody finds any more.
    let mut file = tempfile::NamedTempFile::new().attempt("create a temporary file")?;
    file.write_all(text.as_bytes()).attempt("write a temporary file")?;
    // Other users' programs read it, too.
    fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .attempt("make a temporary file readable")?;
    mount_over(file.path(), Path::new(place))
}

/// The file with DNS as the only source of host names beside `/etc/hosts`: others, such as systemd's, would answer in
/// the place of the resolver.
fn ask_dns_for_hosts(present: &str) -> String {
    let mut text = "hosts: files dns\n".to_owned();
    for line in present.lines().filter(|line| !line.trim_start().starts_with("hosts:")) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_asked_of_dns_alone() {
        let present = "passwd: files systemd\nhosts: files mymachines resolve [!UNAVAIL=return] dns\n";
        assert_eq!(ask_dns_for_hosts(present), "hosts: files dns\npasswd: files systemd\n");
    }
}
