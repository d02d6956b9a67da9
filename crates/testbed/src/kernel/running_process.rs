//! A process, and its network namespace, that is still the same one later.

use crate::kernel::namespace::join;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::MetadataExt;

/// A process, and not another one that has its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningProcess {
    /// Its number.
    pub pid: u32,
    /// When it was started, clock ticks since boot.
    started: u64,
    network: u64,
}

impl RunningProcess {
    /// The process that has this number now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, which may hold anything, stands in parentheses before the other fields.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let started = fields.split(' ').nth(19).and_then(|field| field.parse().ok());
        let started =
            started.ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has no start time")))?;
        let network = std::fs::metadata(format!("/proc/{pid}/ns/net"))?.ino();
        Ok(RunningProcess { pid, started, network })
    }

    /// Moves this process into its network namespace, as [`join`] does.
    pub fn enter(self) -> io::Result<()> {
        join(self.pid)?;
        let entered = std::fs::metadata("/proc/self/ns/net")?.ino();
        if self.runs() && entered == self.network {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "its process has ended: stacklab lab down"))
    }

    /// Whether it still runs, and where it was.
    pub fn runs(self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_not_another_one_with_its_number() {
        let own = RunningProcess::of(std::process::id()).unwrap();
        assert!(own.runs() && own.started > 0);
        assert!(!RunningProcess { started: own.started + 1, ..own }.runs());
        assert!(!RunningProcess { network: own.network + 1, ..own }.runs());
        assert!(RunningProcess::of(u32::MAX).is_err());
    }
}
