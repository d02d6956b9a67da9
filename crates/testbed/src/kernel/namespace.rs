//! Runs code in a network namespace: on a separate thread that ends there, so no other thread leaves the machine's
//! namespace; or as the whole process, before it starts another program there ([`join`]).

use crate::kernel::sys::{NetworkNamespace, die_with_parent, signal_group};
use crate::{Attempt, Fault, Streams};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::{io, thread};

/// Runs `work` on a new thread in the network namespace of a living process. Sockets created there stay there.
pub fn in_namespace<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(work, || enter_namespace(pid))
}

/// Moves the calling thread into the network namespace of a living process. The thread must end there.
pub(crate) fn enter_namespace(pid: u32) -> io::Result<()> {
    Ok(setns(open_other(pid)?, CloneFlags::CLONE_NEWNET)?)
}

/// Opens the network namespace of another process. What is done there is never done to the machine: this process's own
/// namespace is refused, whatever /proc says.
pub(crate) fn open_other(pid: u32) -> io::Result<File> {
    let path = format!("/proc/{pid}/ns/net");
    open_unless_own(&path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

fn open_unless_own(path: &str) -> io::Result<File> {
    let file = File::open(path)?;
    let own = fs::metadata("/proc/self/ns/net")?;
    let other = file.metadata()?;
    if other.dev() == own.dev() && other.ino() == own.ino() {
        return Err(io::Error::other("it is this process's own network namespace, not a host's"));
    }
    Ok(file)
}

/// A process that leads its own group. Dropping it kills the group and waits for the process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Set once the child has been waited for. After that another process may get its process ID.
    status: Option<ExitStatus>,
    cpu: Option<ChildCpu>,
}

/// CPU time of a process and of those that it waited for, from start to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChildCpu {
    /// In programs, nanoseconds.
    pub user_ns: u64,
    /// In the kernel, nanoseconds.
    pub system_ns: u64,
}

impl ChildCpu {
    /// Both, nanoseconds.
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// What was used since.
    pub fn since(self, before: Self) -> Self {
        ChildCpu {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
        }
    }

    /// Of all children that this process has waited for.
    fn so_far() -> io::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let user_ns = count_ns(usage.user_time());
        let system_ns = count_ns(usage.system_time());
        Ok(ChildCpu { user_ns, system_ns })
    }
}

fn count_ns(time: TimeVal) -> u64 {
    u64::try_from(time.num_microseconds()).unwrap_or(0).saturating_mul(1000)
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        Ok(Process { child: command.process_group(0).spawn()?, status: None, cpu: None })
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended. Does not wait.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let before = ChildCpu::so_far()?;
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                self.cpu = Some(ChildCpu::so_far()?.since(before));
            }
        }
        Ok(self.status)
    }

    /// Its CPU time, once [`Process::status`] has found that it has ended. No other thread may wait for another child
    /// at that moment.
    pub fn cpu(&self) -> Option<ChildCpu> {
        self.cpu
    }

    /// Its output and input, if both are pipes. `None` once taken.
    pub fn streams(&mut self) -> Option<Streams> {
        let (output, input) = self.child.stdout.take().zip(self.child.stdin.take())?;
        Some((Box::new(output), Box::new(input)))
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.status.is_none() { signal_group(self.id(), signal) } else { Ok(()) }
    }

    /// Kills its group and waits for it. Does nothing if it was waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        if self.status.is_none() {
            self.signal(Signal::SIGKILL)?;
            self.status = Some(self.child.wait()?);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Starts a program in the network namespace of a living process, which may be this one, on these processors (empty:
/// on any), in its own process group. The kernel kills it when the calling thread ends.
pub fn spawn_in_namespace(pid: u32, command: &mut Command, processors: &[usize]) -> Result<Process, Fault> {
    let program = command.get_program().to_string_lossy().into_owned();
    let network = match pid == std::process::id() {
        true => NetworkNamespace::Own,
        false => NetworkNamespace::Of(open_other(pid).attempt("open a host's network namespace")?),
    };
    die_with_parent(command, network, processors);
    Process::spawn(command).attempt(format!("start {program}"))
}

/// Gives the calling thread a private mount namespace: mounts from here on are visible to no other process.
pub fn unshare_mounts() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
}

/// Shows the /sys of the calling thread's network namespace to that thread, in a private mount namespace: the thread
/// should end soon.
pub(crate) fn mount_own_sysfs() -> Result<(), Fault> {
    let sysfs = Some("sysfs");
    let own = unshare_mounts().and_then(|()| mount(sysfs, "/sys", sysfs, MsFlags::empty(), None::<&str>));
    own.attempt("mount the namespace's own /sys")
}

/// Moves this process into the network namespace of another process, and into its user namespace if that is a
/// different one. This process must have one thread, like a program that is about to execute another.
pub fn join(pid: u32) -> io::Result<()> {
    let user = format!("/proc/{pid}/ns/user");
    // Open both before entering the first: entering changes what may be opened.
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    let other = File::open(&user)?;
    if fs::read_link(&user)? != fs::read_link("/proc/self/ns/user")? {
        setns(other, CloneFlags::CLONE_NEWUSER)?;
    }
    Ok(setns(network, CloneFlags::CLONE_NEWNET)?)
}

/// Asks a process to end, with SIGTERM.
pub fn end(pid: u32) -> io::Result<()> {
    // A process ID fits: Linux allows at most 2^22.
    Ok(kill(Pid::from_raw(pid as i32), Signal::SIGTERM)?)
}

/// Runs `work` on a new thread in a new network namespace, which vanishes with the thread, and with the sockets and
/// devices that `work` returns.
pub fn in_new_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(work, || unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from))
}

/// Runs `work` on a new thread that has a new /proc, which shows this PID namespace. Nothing else sees the mount.
pub(crate) fn with_own_proc<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(work, || {
        unshare_mounts()?;
        Ok(mount_proc()?)
    })
}

/// Mounts a new /proc over the present one.
pub(crate) fn mount_proc() -> nix::Result<()> {
    let proc = Some("proc");
    mount(proc, "/proc", proc, MsFlags::empty(), None::<&str>)
}

fn on_a_thread<T: Send>(
    work: impl FnOnce() -> T + Send,
    enter: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, || {
            enter()?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn measure_script(script: &str) -> u64 {
        let mut process = Process::spawn(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(process.cpu(), None);
        while process.status().unwrap().is_none() {
            thread::sleep(Duration::from_millis(20));
        }
        process.cpu().unwrap().user_ns
    }

    #[test]
    fn cpu_time_is_that_of_the_process_and_its_children() {
        let idle = measure_script("sleep 0.2");
        let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let own = measure_script(count);
        let of_child = measure_script(&format!("sh -c '{count}'; true"));
        assert!(own > 5 * idle && of_child > 5 * idle, "{idle} {own} {of_child}");
    }
}
