//! The configuration of dnsmasq: DNS for one name, and DHCP for addresses of the link, over both families. It uses no
//! settings of this machine.

use crate::Fault;
use crate::link::addressing::address;
use crate::services::ask::NAME;
use crate::services::daemon::write;
use crate::services::program::Program;
use stacklab_model::{Family, Role, Service, Services};
use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

pub(super) const PROGRAM: Program = Program {
    name: "dnsmasq",
    services: &[Service::Dns, Service::Dhcp],
    what_for: "services dns and dhcp",
    remedy: "sudo apt-get install dnsmasq-base",
    version: ("--version", "version "),
    command,
};

fn command(file: &Path, services: &Services, own: &Path) -> Result<Command, Fault> {
    let path = own.join("dnsmasq.conf");
    write(&path, &config(services, own))?;
    let mut command = Command::new(file);
    // Run in the foreground as the starting user: a user namespace may have no other user.
    command.arg("--no-daemon").arg(format!("--conf-file={}", path.display()));
    Ok(command)
}

/// The range of addresses that it may lease, as the last part of the address. No client here leases one.
const RANGE: [u8; 2] = [100, 199];

fn config(services: &Services, folder: &Path) -> String {
    let mut text = "no-resolv\nno-poll\nno-hosts\nlog-facility=-\n".to_owned();
    if services.contains(Service::Dns) {
        let [v4, v6] = [Family::Ipv4, Family::Ipv6].map(|family| address(family, Role::Receiver).0);
        let _ = writeln!(text, "host-record={NAME},{v4},{v6}");
    } else {
        text += "port=0\n";
    }
    if services.contains(Service::Dhcp) {
        for family in Family::ALL {
            let (own, prefix) = address(*family, Role::Receiver);
            let [low, high] = RANGE.map(|last| with_last(own, last));
            let _ = match own {
                IpAddr::V4(_) => writeln!(text, "dhcp-range={low},{high},1h"),
                IpAddr::V6(_) => writeln!(text, "dhcp-range={low},{high},{prefix},1h"),
            };
        }
        let _ = writeln!(text, "no-ping\ndhcp-leasefile={}", folder.join("leases").display());
    }
    text
}

fn with_last(address: IpAddr, last: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c, last].into()
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[15] = last;
            octets.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(services: &str) -> String {
        config(&services.parse().unwrap(), Path::new("/tmp/x"))
    }

    #[test]
    fn it_serves_both_families_and_takes_nothing_from_the_machine() {
        assert_eq!(
            of("dns+dhcp"),
            "no-resolv\nno-poll\nno-hosts\nlog-facility=-\n\
             host-record=server.test,198.18.0.2,2001:2:0:1::2\n\
             dhcp-range=198.18.0.100,198.18.0.199,1h\n\
             dhcp-range=2001:2:0:1::64,2001:2:0:1::c7,64,1h\n\
             no-ping\ndhcp-leasefile=/tmp/x/leases\n"
        );
    }

    #[test]
    fn it_does_only_what_it_is_there_for() {
        assert!(!of("dns").contains("dhcp"));
        assert!(of("dhcp").contains("port=0") && !of("dhcp").contains("host-record"));
    }
}
