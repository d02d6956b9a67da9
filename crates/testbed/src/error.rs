//! Errors of testbeds. Each names the attempted step, the host, and what to do next.

use crate::Node;
use crate::kernel::sys::NoTun;
use std::error::Error;
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

pub(crate) fn hint(reason: &io::Error) -> &'static str {
    if let Some(no_tun) = reason.get_ref().and_then(|inner| inner.downcast_ref::<NoTun>()) {
        return no_tun.remedy();
    }
    match reason.kind() {
        io::ErrorKind::PermissionDenied => {
            "this needs root (sudo) or an open user namespace: see `stacklab doctor`"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "/proc/sys is read-only: start the container with --security-opt unmask=ALL (podman) or --security-opt \
             systempaths=unconfined (docker)"
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
    /// A failed step, as text that follows `cannot`, and the reason.
    pub(crate) fn new(attempted: String, reason: io::Error) -> Self {
        Fault { attempted, reason }
    }

    /// The error with advice, where there is no host to name.
    pub fn advise(self) -> TestbedError {
        let advice = hint(&self.reason);
        TestbedError(format!("{self}; {advice}"))
    }

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

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Attempt<T> for Result<T, E> {
    fn attempt(self, what: impl Into<String>) -> Result<T, Fault> {
        self.map_err(|error| Fault { attempted: what.into(), reason: of_system(error.into()) })
    }
}

/// The system's error, by whatever library reports it. Other errors keep their text.
fn of_system(error: Box<dyn Error + Send + Sync>) -> io::Error {
    let error = match error.downcast::<io::Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    if let Some(error) = error.downcast_ref::<nix::Error>() {
        return (*error).into();
    }
    match error.downcast_ref() {
        Some(rtnetlink::Error::NetlinkError(answer)) => answer.to_io(),
        _ => io::Error::other(error),
    }
}

/// Adds the host to a failed step.
pub trait AtHost<T> {
    /// Adds the host.
    fn at(self, host: Node) -> Result<T, TestbedError>;
}

impl<T> AtHost<T> for Result<T, Fault> {
    fn at(self, host: Node) -> Result<T, TestbedError> {
        self.map_err(|fault| fault.at(host))
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
