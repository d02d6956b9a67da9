//! Actions in a child process between fork and exec, priorities of threads, and terminals.

use crate::unshare_mounts;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::pty::{Winsize, openpty};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpid, getppid, setsid};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

pub(crate) enum NetworkNamespace {
    New,
    /// This process's own, which an ordinary user may not enter, being in it.
    Own,
    Of(File),
}

/// Makes the command keep this process's file open. The caller closes its own copy after starting the command.
pub fn keep_open(command: &mut Command, file: RawFd) {
    // SAFETY: fcntl is async-signal-safe, and the closure owns nothing but a number.
    unsafe {
        command.pre_exec(move || {
            let answer = libc::fcntl(file, libc::F_SETFD, 0);
            if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    };
}

/// Gives the command a private mount namespace, whose mounts vanish with the last of its processes.
pub fn mount_unseen(command: &mut Command) {
    // SAFETY: it makes system calls only; nix copies the short path to its own stack.
    unsafe { command.pre_exec(|| Ok(unshare_mounts()?)) };
}

pub(crate) fn limit(command: &mut Command, of: Resource, most: u64) {
    // SAFETY: setrlimit is async-signal-safe, and the closure owns nothing but numbers.
    unsafe { command.pre_exec(move || Ok(setrlimit(of, most, most)?)) };
}

/// Makes the command start in a network namespace and on these processors (empty: on any). The kernel kills it when
/// the thread that spawned it ends, however that ends.
pub(crate) fn die_with_parent(command: &mut Command, namespace: NetworkNamespace, processors: &[usize]) {
    let parent = getpid();
    let mut allowed = CpuSet::new();
    let pinned = !processors.is_empty() && processors.iter().all(|cpu| allowed.set(*cpu).is_ok());
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes system calls only
    // (prctl, getppid, sched_setaffinity, setns, unshare), allocates nothing, takes no lock and owns nothing but
    // plain numbers and an open file.
    unsafe { command.pre_exec(move || prepare_child(parent, pinned.then_some(&allowed), &namespace)) };
}

fn prepare_child(parent: Pid, processors: Option<&CpuSet>, namespace: &NetworkNamespace) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the signal was requested. The signal would then never be sent.
    if getppid() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    if let Some(processors) = processors {
        sched_setaffinity(Pid::from_raw(0), processors)?;
    }
    match namespace {
        NetworkNamespace::Of(namespace) => setns(namespace, CloneFlags::CLONE_NEWNET)?,
        NetworkNamespace::New => unshare(CloneFlags::CLONE_NEWNET)?,
        NetworkNamespace::Own => {}
    }
    Ok(())
}

/// Kills a process group. Its leader has not been waited for yet, so its process ID cannot be reused.
pub fn kill_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::SIGKILL)
}

/// Sends a signal to such a process group.
pub fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    // A process ID fits: Linux allows at most 2^22.
    Ok(killpg(Pid::from_raw(leader as i32), signal)?)
}

const DEBUGFS: &str = "/sys/kernel/debug";
const FAIR_SERVERS: &str = "sched/fair_server";

/// Runs the calling thread before all without a priority (SCHED_FIFO, the least of its priorities).
pub fn run_first() -> io::Result<()> {
    // The kernel's `sched_param` is an integer. musl has the call in name only: it fails with ENOSYS.
    let least: libc::c_int = 1;
    // SAFETY: the call reads the parameter, which lives until it returns.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const least) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reserves no processor time for threads without a priority (the fair server of Linux 6.12 and newer), which would run
/// before one that [`run_first`]. Of the whole system: call it in a guest. `false` without such a setting.
pub fn reserve_nothing() -> io::Result<bool> {
    match mount(Some("debugfs"), DEBUGFS, Some("debugfs"), MsFlags::empty(), None::<&str>) {
        Ok(()) | Err(Errno::EBUSY) => {}
        Err(Errno::ENODEV | Errno::ENOENT) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let servers = match fs::read_dir(Path::new(DEBUGFS).join(FAIR_SERVERS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        servers => servers?,
    };
    for server in servers {
        fs::write(server?.path().join("runtime"), "0")?;
    }
    Ok(true)
}

/// Opens a pseudoterminal of this size. Returns the user's end and the commands' end.
pub fn open_terminal(rows: u16, columns: u16) -> io::Result<(File, File)> {
    let pair = openpty(Some(&size(rows, columns)), None)?;
    Ok((File::from(pair.master), File::from(pair.slave)))
}

/// Makes the command the leader of a new session, like a shell. Its standard input is the controlling terminal.
pub fn lead_terminal(command: &mut Command) {
    // SAFETY: it makes two system calls and owns nothing.
    unsafe { command.pre_exec(take_terminal) };
}

fn take_terminal() -> io::Result<()> {
    setsid()?;
    // SAFETY: the request takes a number and changes no memory.
    let answer = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts a terminal into raw mode. Returns the previous mode for [`put_back`].
pub fn make_raw(terminal: &impl AsFd) -> io::Result<Termios> {
    let before = tcgetattr(terminal)?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    put_back(terminal, &raw)?;
    Ok(before)
}

/// Restores the terminal's previous mode.
pub fn put_back(terminal: &impl AsFd, before: &Termios) -> io::Result<()> {
    Ok(tcsetattr(terminal, SetArg::TCSANOW, before)?)
}

/// A terminal's rows and columns.
pub fn window_size(terminal: &impl AsFd) -> io::Result<(u16, u16)> {
    let mut size = size(0, 0);
    window(terminal.as_fd(), libc::TIOCGWINSZ, &mut size)?;
    Ok((size.ws_row, size.ws_col))
}

/// Sets a terminal's rows and columns.
pub fn resize_terminal(terminal: &impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
    window(terminal.as_fd(), libc::TIOCSWINSZ, &mut size(rows, columns))
}

fn window(terminal: BorrowedFd<'_>, request: libc::Ioctl, size: &mut Winsize) -> io::Result<()> {
    // SAFETY: both requests take a pointer to a winsize, which outlives the call.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), request, std::ptr::from_mut(size)) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_command_leads_its_terminal_and_knows_its_size() {
        let (mut own, its) = open_terminal(7, 33).unwrap();
        assert_eq!(window_size(&its).unwrap(), (7, 33));
        resize_terminal(&own, 8, 34).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "read word; echo \"$word $(stty size < /dev/tty)\""]);
        command.stdin(its.try_clone().unwrap()).stdout(its.try_clone().unwrap()).stderr(its);
        lead_terminal(&mut command);
        let mut child = command.spawn().unwrap();
        drop(command);
        own.write_all(b"hello\n").unwrap();
        let mut said = Vec::new();
        let mut room = [0; 256];
        while let Ok(count @ 1..) = own.read(&mut room) {
            said.extend(&room[..count]);
        }
        assert!(child.wait().unwrap().success());
        let said = String::from_utf8(said).unwrap();
        assert!(said.ends_with("hello 8 34\r\n"), "{said:?}");
    }
}
