//! What can go wrong, with what was attempted, where, and what to do next.

use crate::topology::Node;
use stacklab_model::{Family, Mechanism, Rate, System};
use std::io;
use std::path::PathBuf;

/// Why there is no testbed. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The process may not make network namespaces.
    #[error("cannot {attempted}: {reason}; {advice}")]
    Closed {
        /// The step that was refused.
        attempted: &'static str,
        /// The kernel's answer.
        reason: io::Error,
        /// What to do, with the exact command where there is one.
        advice: String,
    },
    /// No link of this kind has such an MTU.
    #[error("MTU {mtu} is not possible: IPv6 needs at least {}, a veth pair takes at most {}", limits.0, limits.1)]
    Mtu {
        /// The MTU asked for, bytes.
        mtu: u32,
        /// Least and largest possible, bytes.
        limits: (u32, u32),
    },
    /// The shaper counts whole bytes per second.
    #[error("a rate of {0} is not possible: the least is 8 bit/s")]
    Rate(Rate),
    /// A host's process did not start.
    #[error("cannot start `{}` as {host} in a namespace of its own: {reason}; {}", program.display(), hint(reason))]
    Start {
        /// The host.
        host: Node,
        /// The program that was to run.
        program: PathBuf,
        /// The answer of the kernel, to the namespace or to the program.
        reason: io::Error,
    },
    /// A file of a guest's cannot be made or read.
    #[error("cannot use {}: {reason}; see that it can be read, and that its disk has room", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A program that is not stacklab's is missing.
    #[error("there is no program `{program}` here: {remedy}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// How to get it.
        remedy: &'static str,
    },
    /// A daemon on the receiver does not serve.
    #[error("the {program} on receiver {what}; to get another one: {remedy}")]
    Service {
        /// The daemon, with its version.
        program: String,
        /// What became of it, and what it said last.
        what: String,
        /// How to get its program.
        remedy: &'static str,
    },
    /// What a system boots from is not there, or not whole.
    #[error("{system} cannot run here: {reason}; get it with: {command}")]
    NoImage {
        /// The system.
        system: System,
        /// What is missing or wrong.
        reason: String,
        /// The command that gets an image of it.
        command: String,
    },
    /// A real machine is not built.
    #[error("{0} is a machine of its own and no part of a testbed that is built")]
    NotBuilt(System),
    /// Getting an image failed.
    #[error("could not {attempted}: {reason}{advice}")]
    Get {
        /// The step.
        attempted: String,
        /// What the program that did it said, or the system.
        reason: String,
        /// What to do next, after a semicolon; may be empty.
        advice: String,
    },
    /// What was built does not carry packets as it should.
    #[error("{mechanism} does not carry {family}: {reason}")]
    NotCarried {
        /// How packets were to cross the middle link.
        mechanism: Mechanism,
        /// The sender's family.
        family: Family,
        /// What was found, and at which hop.
        reason: String,
    },
    /// Hosts that are namespaces are on this kernel where others are its guests, and it has not what they need.
    #[error(
        "rows of hosts some of which are guests ({guests}) are on this kernel: {missing}; get it: {remedy}; or leave \
         factors.os and factors.routers out, which allows the whole row inside one guest"
    )]
    Guests {
        /// What the guests run.
        guests: String,
        /// Which mechanism needs what of the kernel.
        missing: String,
        /// How the kernel gets it, or what does without.
        remedy: String,
    },
    /// A router's own kernel does not support its mechanism.
    #[error(
        "{router} as a router lacks what a mechanism needs ({unsupported}): build one that has it (stacklab image build uml-full, then \
         factors.routers = [\"uml-full\"]), or use linux-6.1, which has all but jool"
    )]
    RouterUnsupported {
        /// What the router runs.
        router: System,
        /// The mechanism, and what it needs of a kernel that this one has not.
        unsupported: String,
    },
    /// The guest that was asked for cannot hold a study's testbeds.
    #[error(
        "{guest} lacks what the study needs ({unsupported}): build a guest that has it (stacklab image build uml-full, then \
         --in-vm=uml-full), or name --in-vm=linux-6.1, which has all but jool"
    )]
    GuestUnsupported {
        /// The guest.
        guest: System,
        /// What the study needs of a kernel that this one has not.
        unsupported: String,
    },
    /// A guest that hosts testbeds failed.
    #[error("the lab inside {guest} failed: {reason}")]
    Hosted {
        /// What runs it.
        guest: String,
        /// What was attempted in it, and why it failed.
        reason: String,
    },
    /// A step of building the testbed failed.
    #[error("cannot {attempted} on {host}: {reason}; {}", hint(reason))]
    Setup {
        /// The host in whose namespace it was attempted.
        host: Node,
        /// The step.
        attempted: String,
        /// The kernel's answer.
        reason: io::Error,
    },
}

/// What to do about a refusal.
fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::PermissionDenied => {
            "this needs root (sudo) or an open user namespace: see `stacklab doctor`"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "/proc/sys is read-only, as in most containers: run outside, or in a privileged container"
        }
        io::ErrorKind::StorageFull => {
            "a limit of the kernel is reached: see `sysctl user.max_net_namespaces`"
        }
        _ => "`stacklab doctor` says what this kernel can do",
    }
}

/// A step that failed, not yet knowing on which host.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted}: {reason}")]
pub(crate) struct Fault {
    /// The step, in words that follow `cannot`.
    pub attempted: String,
    /// The kernel's answer, or what was found instead.
    pub reason: io::Error,
}

impl Fault {
    /// The same fault, knowing its host.
    pub fn at(self, host: Node) -> TestbedError {
        TestbedError::Setup { host, attempted: self.attempted, reason: self.reason }
    }
}

/// Names the step that a result belongs to.
pub(crate) trait Attempt<T> {
    /// Says what was attempted, in words that follow `cannot`.
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
