//! Errors of testbeds. Each names the attempted step, the host, and what to do next.

use crate::topology::Node;
use stacklab_model::{Family, Mechanism, Rate, System};
use std::io;
use std::path::PathBuf;

/// The reason why a testbed cannot be built or used. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The process may not create network namespaces.
    #[error("cannot {attempted}: {reason}; {advice}")]
    Closed {
        /// The step that the kernel refused.
        attempted: &'static str,
        /// The kernel's error.
        reason: io::Error,
        /// The advice, with the exact command if there is one.
        advice: String,
    },
    /// The MTU is not possible on this kind of link.
    #[error("MTU {mtu} is not possible: IPv6 needs at least {}, a veth pair takes at most {}", limits.0, limits.1)]
    Mtu {
        /// The requested MTU, bytes.
        mtu: u32,
        /// The minimum and the maximum, bytes.
        limits: (u32, u32),
    },
    /// The shaper counts whole bytes per second.
    #[error("a rate of {0} is not possible: the minimum is 8 bit/s")]
    Rate(Rate),
    /// A host's process did not start.
    #[error("cannot start `{}` as {host} in a new network namespace: {reason}; {}", program.display(), hint(reason))]
    Start {
        /// The host.
        host: Node,
        /// The program that was to run.
        program: PathBuf,
        /// The kernel's error, about the namespace or the program.
        reason: io::Error,
    },
    /// A guest's file cannot be created or read.
    #[error("cannot use {}: {reason}; check its permissions and the free disk space", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A program that is not part of stacklab is missing.
    #[error("there is no program `{program}` here: {remedy}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// How to get it.
        remedy: &'static str,
    },
    /// A daemon on the receiver does not work.
    #[error("the {program} on the receiver {what}; to get another one: {remedy}")]
    Service {
        /// The daemon, with its version.
        program: String,
        /// The daemon's state, and its last output.
        what: String,
        /// How to get its program.
        remedy: &'static str,
    },
    /// The image of a system is missing or incomplete.
    #[error("{system} cannot run here: {reason}; get it with: {command}")]
    NoImage {
        /// The system.
        system: System,
        /// What is missing or wrong.
        reason: String,
        /// The command that gets an image of it.
        command: String,
    },
    /// The system is a real machine, which a testbed cannot build.
    #[error("{0} is a real machine: it cannot be a host of a virtual testbed")]
    NotBuilt(System),
    /// Getting an image failed.
    #[error("could not {attempted}: {reason}{advice}")]
    Get {
        /// The step.
        attempted: String,
        /// The error of the program that did the step, or the system's error.
        reason: String,
        /// What to do next, after a semicolon; may be empty.
        advice: String,
    },
    /// The testbed does not carry packets as its mechanism should.
    #[error("{mechanism} does not carry {family}: {reason}")]
    NotCarried {
        /// The mechanism on the middle link.
        mechanism: Mechanism,
        /// The sender's family.
        family: Family,
        /// The observation, and the hop.
        reason: String,
    },
    /// A station does not get into its Wi-Fi network.
    #[error("the {station} is not associated with the Wi-Fi network {network}: {reason}")]
    NotAssociated {
        /// The station.
        station: Node,
        /// The network's name.
        network: String,
        /// What failed, or was not found.
        reason: String,
    },
    /// A Wi-Fi network does not carry packets as planned.
    #[error("the Wi-Fi network does not carry {family} as planned: {reason}")]
    NotCarriedByWifi {
        /// The family.
        family: Family,
        /// The observation on the medium.
        reason: String,
    },
    /// A testbed has both namespaces and guests as hosts. Its namespaces use this kernel, which does not support what
    /// they need.
    #[error(
        "testbeds with guests as hosts ({guests}) also use this kernel: {missing}; to add it: {remedy}; or remove \
         factors.os and factors.routers, so that the whole testbed can be built in one guest"
    )]
    Guests {
        /// The systems of the guests.
        guests: String,
        /// The mechanisms, and what each needs from the kernel.
        missing: String,
        /// How to add it to the kernel, or an alternative that does not need it.
        remedy: String,
    },
    /// A router's own kernel does not support its mechanism.
    #[error(
        "{router} as a router lacks features for a mechanism ({unsupported}): build one that has them (stacklab image build uml-full, then \
         factors.routers = [\"uml-full\"]), or use linux-6.1, which has all but jool"
    )]
    RouterUnsupported {
        /// The router's system.
        router: System,
        /// The mechanism, and the kernel feature that it needs and that this kernel does not support.
        unsupported: String,
    },
    /// The requested guest cannot host a study's testbeds.
    #[error(
        "{guest} lacks features for the study ({unsupported}): build a guest that has them (stacklab image build uml-full, then \
         --in-vm=uml-full), or name --in-vm=linux-6.1, which has all but jool"
    )]
    GuestUnsupported {
        /// The guest.
        guest: System,
        /// The kernel feature that the study needs and that this kernel does not support.
        unsupported: String,
    },
    /// A guest that hosts testbeds failed.
    #[error("the testbed in {guest} failed: {reason}")]
    Hosted {
        /// The guest's name and version.
        guest: String,
        /// The step that was attempted in the guest, and why it failed.
        reason: String,
    },
    /// A step of building the testbed failed.
    #[error("cannot {attempted} on {host}: {reason}; {}", hint(reason))]
    Setup {
        /// The host. The step was attempted in its namespace.
        host: Node,
        /// The step.
        attempted: String,
        /// The kernel's error.
        reason: io::Error,
    },
}

/// The advice for a kernel error.
fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::PermissionDenied => {
            "this needs root (sudo) or an open user namespace: see `stacklab doctor`"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "/proc/sys is read-only, as in most containers: run outside, or in a privileged container"
        }
        // With its own text it is about a disk, and has its advice.
        io::ErrorKind::StorageFull if reason.get_ref().is_some() => "then run it again",
        io::ErrorKind::StorageFull => {
            "the disk is full, or a limit of the kernel is reached: see `df` and `sysctl user.max_net_namespaces`"
        }
        _ => "`stacklab doctor` shows what this kernel supports",
    }
}

/// A failed step, before its host is known.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted}: {reason}")]
pub struct Fault {
    /// The step, as text that follows `cannot`.
    pub attempted: String,
    /// The kernel's error, or what was found instead.
    pub reason: io::Error,
}

impl Fault {
    /// Adds the host to the fault.
    pub fn at(self, host: Node) -> TestbedError {
        TestbedError::Setup { host, attempted: self.attempted, reason: self.reason }
    }
}

/// Adds the attempted step to an error.
pub trait Attempt<T> {
    /// Adds the attempted step, as text that follows `cannot`.
    fn attempt(self, what: impl Into<String>) -> Result<T, Fault>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl Into<String>) -> Result<T, Fault> {
        self.map_err(|reason| Fault { attempted: what.into(), reason })
    }
}

impl<T> Attempt<T> for Result<T, rtnetlink::Error> {
    fn attempt(self, what: impl Into<String>) -> Result<T, Fault> {
        self.map_err(|error| match error {
            rtnetlink::Error::NetlinkError(answer) => answer.to_io(),
            other => io::Error::other(other.to_string()),
        })
        .attempt(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_where_why_and_what_to_do() {
        let refused = Err::<(), _>(io::Error::from_raw_os_error(libc::EPERM));
        let error = refused.attempt("create the veth pair").unwrap_err().at(Node::Sender);
        let text = error.to_string();
        for part in ["create the veth pair", "on sender", "not permitted", "sudo"] {
            assert!(text.contains(part), "`{part}` is missing in: {text}");
        }
    }
}
