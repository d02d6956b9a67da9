//! The system of a host: the stack under test.

use crate::ScopedAddr;
use crate::names::{find_new_name, json_is_text, nearest};
use std::fmt;
use std::str::FromStr;

/// A host's system. The levels of the factors `os` and `router_os` name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum System {
    /// `namespace`: this machine's kernel, in a network namespace.
    Namespace,
    /// `gvisor`: gVisor's user-space stack, attached to the link of a namespace.
    Gvisor,
    /// `smoltcp`: the stack of that library, within the agent, which sends and receives the link's frames.
    Smoltcp,
    /// `linux-6.1` and the like: Debian's kernel of that series in a virtual machine.
    Linux(String),
    /// `disk:PATH`: a disk image of the user's own in a virtual machine, which starts `stacklab guest` by itself.
    Disk(String),
    /// `uml`: a Linux kernel as a process (user-mode Linux), in Debian's build.
    Uml,
    /// `uml-NAME`: a user-mode Linux kernel that was built on this machine under that name.
    OwnUml(String),
    /// `localhost`: this machine unchanged, on its own interfaces.
    Localhost,
    /// `ssh:HOST`: a machine reached by the user's ssh. HOST has the syntax of ssh: a name, an address, with this
    /// host's zone if that is link-local (`ssh:user@fe80::1%eth0`).
    Ssh(String),
}

/// The stack of `smoltcp` with its version: a test compares it with the lock file.
pub const SMOLTCP: &str = "smoltcp 0.14.0";

/// The valid names, for messages.
pub const SYSTEMS: &str = "namespace, gvisor, smoltcp, linux-SERIES (such as linux-6.1), uml, uml-NAME, disk:PATH, localhost or ssh:USER@HOST";

/// The error of a name that is not a system.
fn unknown(found: &str) -> String {
    if let Some(new) = find_new_name("system", found) {
        return format!("system `{found}` was renamed to `{new}`");
    }
    let names = [
        "namespace",
        "gvisor",
        "smoltcp",
        "linux-6.1",
        "linux-6.12",
        "linux-5.10",
        "linux-7.2",
        "uml",
        "localhost",
    ];
    let hint = nearest(found, names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    format!("there is no system `{found}`: expected {SYSTEMS}{hint}")
}

impl System {
    /// Whether the system is on a link that the testbed creates. Otherwise it is a real machine on real networks.
    pub fn is_built(&self) -> bool {
        !matches!(self, System::Localhost | System::Ssh(_))
    }

    /// Whether the system is a kernel that runs as a process and uses this machine's files.
    pub fn is_uml(&self) -> bool {
        matches!(self, System::Uml | System::OwnUml(_))
    }

    /// Whether the system boots from an image, or from a disk of the user's own.
    pub fn boots(&self) -> bool {
        self.is_built() && !self.is_of_this_kernel()
    }

    /// Whether its processes are this kernel's, which counts their CPU time: the agent does all that smoltcp does.
    pub fn is_of_this_kernel(&self) -> bool {
        matches!(self, System::Namespace | System::Smoltcp)
    }

    /// Whether its kernel reports its own processor time. gVisor does not. User-mode Linux counts packet processing as
    /// idle time while no process runs: a fully loaded router reports that it is idle.
    pub fn counts_cpu(&self) -> bool {
        !matches!(self, System::Gvisor | System::Uml | System::OwnUml(_))
    }

    /// Whether it has a separate kernel, which does so.
    pub fn counts_own_cpu(&self) -> bool {
        !self.is_of_this_kernel() && self.counts_cpu()
    }

    pub fn kind(&self) -> &'static str {
        match self {
            System::Namespace => "namespace",
            System::Gvisor => "gvisor",
            System::Smoltcp => "smoltcp",
            System::Linux(_) | System::Disk(_) => "vm",
            System::Uml | System::OwnUml(_) => "uml",
            System::Localhost => "localhost",
            System::Ssh(_) => "ssh",
        }
    }
}

json_is_text!(System);

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            System::Linux(series) => write!(f, "linux-{series}"),
            System::OwnUml(name) => write!(f, "uml-{name}"),
            System::Disk(path) => write!(f, "disk:{path}"),
            System::Ssh(host) => write!(f, "ssh:{host}"),
            named => f.write_str(named.kind()),
        }
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let after = |prefix| text.strip_prefix(prefix).filter(|rest: &&str| !rest.is_empty());
        Ok(match text {
            "namespace" => System::Namespace,
            "gvisor" => System::Gvisor,
            "smoltcp" => System::Smoltcp,
            "uml" => System::Uml,
            "localhost" => System::Localhost,
            _ if after("ssh:").is_some_and(names_a_machine) => System::Ssh(text[4..].to_owned()),
            _ if after("uml-").is_some_and(names_a_folder) => System::OwnUml(text[4..].to_owned()),
            _ if after("disk:").is_some() => System::Disk(text[5..].to_owned()),
            _ => {
                let series = after("linux-").ok_or_else(|| unknown(text))?;
                let numbers: Vec<&str> = series.split('.').collect();
                if numbers.len() != 2 || !numbers.iter().all(|part| is_number(part)) {
                    return Err(unknown(text));
                }
                System::Linux(series.to_owned())
            }
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// ssh's configuration may give the name to a shell (`%h` in ProxyCommand). `%` stands only before the zone of a
/// link-local address.
fn names_a_machine(name: &str) -> bool {
    if name.starts_with('-') || !name.chars().all(may_be_in_machine) {
        return false;
    }
    if !name.contains('%') {
        return true;
    }
    let host = name.rsplit_once('@').map_or(name, |(_, host)| host);
    name.matches('%').count() == 1 && host.parse::<ScopedAddr>().is_ok_and(|address| address.zone().is_some())
}

fn may_be_in_machine(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | ':' | '[' | ']' | '%' | '+' | '/')
}

fn names_a_folder(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// The systems of both ends of a cell, or of both routers between them; the sender's first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Systems(pub [System; 2]);

const TO: &str = "->";

impl Systems {
    pub const NAMESPACES: Systems = Systems([System::Namespace, System::Namespace]);

    pub fn guests(&self) -> impl Iterator<Item = &System> {
        self.0.iter().filter(|system| **system != System::Namespace)
    }

    /// Whether both systems are connected by a link that the testbed creates.
    pub fn are_built(&self) -> bool {
        self.0.iter().all(System::is_built)
    }
}

impl fmt::Display for Systems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            // Alone it would only receive.
            [sender, receiver] if sender != receiver || matches!(sender, System::Ssh(_)) => {
                write!(f, "{sender} {TO} {receiver}")
            }
            [both, _] => write!(f, "{both}"),
        }
    }
}

impl FromStr for Systems {
    type Err = String;

    /// One system for both hosts, or `SENDER -> RECEIVER`. If only a machine reached by ssh is named, it receives,
    /// and this machine sends.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(TO) {
            Some((sender, receiver)) => Ok(Systems([sender.trim().parse()?, receiver.trim().parse()?])),
            None => match text.trim().parse()? {
                ssh @ System::Ssh(_) => Ok(Systems([System::Localhost, ssh])),
                both => Ok(Systems([both.clone(), both])),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_smoltcp_is_that_of_the_lock_file() {
        let (name, version) = SMOLTCP.split_once(' ').unwrap();
        let locked = format!("name = \"{name}\"\nversion = \"{version}\"");
        assert!(include_str!("../../../../Cargo.lock").contains(&locked));
    }

    #[test]
    fn systems_print_as_they_are_written() {
        for text in [
            "namespace",
            "gvisor",
            "smoltcp",
            "linux-6.12",
            "uml",
            "uml-my_tree-7.2",
            "namespace -> linux-5.10",
            "ssh:a@b -> ssh:c",
            "ssh:a -> ssh:a",
            "ssh:fe80::1%eth0 -> ssh:user@fe80::2%ens3.4",
            "disk:/a/b c.qcow2",
        ] {
            assert_eq!(text.parse::<Systems>().unwrap().to_string(), text);
        }
        assert_eq!("ssh:lab".parse::<Systems>().unwrap().to_string(), "localhost -> ssh:lab");
        assert_eq!("gvisor->uml".parse::<Systems>().unwrap().to_string(), "gvisor -> uml");
    }

    #[test]
    fn what_is_no_system_is_said_with_the_nearest_one() {
        for text in [
            "",
            "linux",
            "linux-",
            "linux-6",
            "linux-6.x",
            "uml-",
            "uml-a/b",
            "ssh:",
            "ssh:-oProxyCommand=x",
            "ssh:-A",
            "ssh:host;reboot",
            "ssh:$(reboot)",
            "ssh:a b",
            "ssh:fe80::1%",
            "ssh:fe80::1%eth0;reboot",
            "ssh:fe80::1%$(reboot)",
            "ssh:user@2001:db8::1%eth0",
            "ssh:host%eth0",
            "ssh:a%b@fe80::1",
            "disk:",
            "a -> gvisor",
        ] {
            assert!(text.parse::<Systems>().is_err(), "{text}");
        }
        let said = "gvisr".parse::<System>().unwrap_err().to_string();
        assert!(said.contains("did you mean `gvisor`"), "{said}");
    }
}
