//! Errors of testbeds. Each names the attempted step, the host, and what to do next.

use crate::topology::Node;
use std::io;
use std::path::Path;

/// The reason why a testbed cannot be built or used. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TestbedError(pub String);

impl TestbedError {
    /// A file or folder that cannot be created or read.
    pub fn file(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |reason| {
            let path = path.as_ref().display();
            TestbedError(format!(
                "cannot use {path}: {reason}; check its permissions and the free disk space"
            ))
        }
    }

    /// A program that is not part of stacklab is missing; how to get it.
    pub fn no_program(program: &str, remedy: &str) -> Self {
        TestbedError(format!("there is no program `{program}` here: {remedy}"))
    }
}

/// The advice for a kernel error.
pub(crate) fn hint(reason: &io::Error) -> &'static str {
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
    attempted: String,
    reason: io::Error,
}

impl Fault {
    /// Adds the host to the fault.
    pub fn at(self, host: Node) -> TestbedError {
        let Fault { attempted, reason } = self;
        TestbedError(format!("cannot {attempted} on {host}: {reason}; {}", hint(&reason)))
    }
}

/// Adds the attempted step to an error.
pub trait Attempt<T> {
    /// Adds the attempted step, as text that follows `cannot`.
    fn attempt(self, what: impl Into<String>) -> Result<T, Fault>;
}

impl<T, E: Into<Refused>> Attempt<T> for Result<T, E> {
    fn attempt(self, what: impl Into<String>) -> Result<T, Fault> {
        self.map_err(|error| Fault { attempted: what.into(), reason: error.into().0 })
    }
}

/// An error of the system, by whatever library reports it.
pub struct Refused(io::Error);

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Refused(error)
    }
}

impl From<nix::Error> for Refused {
    fn from(error: nix::Error) -> Self {
        Refused(error.into())
    }
}

impl From<rtnetlink::Error> for Refused {
    fn from(error: rtnetlink::Error) -> Self {
        Refused(match error {
            rtnetlink::Error::NetlinkError(answer) => answer.to_io(),
            other => io::Error::other(other.to_string()),
        })
    }
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Refused(io::Error::other(reason))
    }
}

impl From<&str> for Refused {
    fn from(reason: &str) -> Self {
        Refused(io::Error::other(reason))
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
