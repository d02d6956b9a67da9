//! What disturbs a campaign.

use super::campaign::{Campaign, Kind, Place};
use super::memory_group::MemoryGroup;
use crate::support::program::{Running, signal};
use crate::support::random::Random;
use crate::support::sys::monotonic_ns;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

/// Whom a signal or a limit meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whom {
    /// The coordinator.
    Coordinator,
    /// One of the hosts: an agent that holds its namespace, a guest.
    Host,
}

/// A disturbance. Those of a file system are there from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// A signal.
    Signal(Whom, &'static str),
    /// Ctrl-C twice.
    TwoInterrupts,
    /// SIGSTOP, and SIGCONT after a while.
    Stopped(Whom, Duration),
    /// SIGSTOP, and SIGKILL after a while.
    StoppedThenKilled(Whom, Duration),
    /// A host is stopped and never goes on.
    Frozen,
    /// The record's file system has room for so many KiB.
    FullDisk(u64),
    /// From this moment on no file may become longer than the record is, and so many bytes: writing fails with EFBIG.
    NoLongerFiles(u64),
    /// From this moment on writing the record fails with EIO.
    BrokenDisk,
    /// From this moment on memory is limited to what is used, and so many bytes.
    NoMoreMemory(Whom, u64),
    /// From this moment on one process, and what it starts, is in a control group that may have so many bytes more.
    MemoryGroup(Whom, u64),
    /// The realtime clock is set again and again, by steps of this seed.
    ClockSet(u64),
    /// The link is down for a while.
    LinkDown(Duration),
}

/// When there was a disturbance, nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disturbed {
    /// From here on it certainly was there.
    pub from: u64,
    /// Until here it certainly was.
    pub to: u64,
    /// From here on it certainly was not.
    pub over: u64,
}

/// The processes of a campaign that may be disturbed.
struct Processes {
    coordinator: u32,
    hosts: Vec<u32>,
}

impl Processes {
    fn choose(&self, whom: Whom, random: &mut Random) -> Option<u32> {
        match whom {
            Whom::Coordinator => Some(self.coordinator),
            Whom::Host if self.hosts.is_empty() => None,
            Whom::Host => Some(random.one_of(&self.hosts)),
        }
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Whom::Host { "a host" } else { "the coordinator" })
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disturbance::Signal(whom, name) => write!(f, "SIG{name} to {whom}"),
            Disturbance::TwoInterrupts => f.write_str("SIGINT twice to the coordinator"),
            Disturbance::Stopped(whom, _) => write!(f, "SIGSTOP and SIGCONT to {whom}"),
            Disturbance::StoppedThenKilled(whom, _) => write!(f, "SIGSTOP and SIGKILL to {whom}"),
            Disturbance::Frozen => f.write_str("SIGSTOP to a host"),
            Disturbance::FullDisk(_) => f.write_str("ENOSPC at the record"),
            Disturbance::NoLongerFiles(_) => f.write_str("EFBIG at the record"),
            Disturbance::BrokenDisk => f.write_str("EIO at the record"),
            Disturbance::NoMoreMemory(whom, _) => write!(f, "no more memory for {whom}"),
            Disturbance::MemoryGroup(whom, _) => write!(f, "a memory limit of its group for {whom}"),
            Disturbance::ClockSet(_) => f.write_str("the realtime clock set"),
            Disturbance::LinkDown(_) => f.write_str("link down"),
        }
    }
}

impl Disturbance {
    /// One that can be had for this kind of campaign.
    pub(super) fn draw(random: &mut Random, kind: Kind, is_long: bool) -> Self {
        let whom = random.one_of(&[Whom::Coordinator, Whom::Host]);
        let pause = Duration::from_millis(300 + random.below(900));
        let room = random.below(192 * 1024);
        let down = Duration::from_millis(1000 + random.below(if is_long { 9000 } else { 2000 }));
        let mut all = vec![
            Disturbance::Signal(whom, "KILL"),
            Disturbance::Signal(whom, "TERM"),
            Disturbance::TwoInterrupts,
            Disturbance::Stopped(whom, pause),
            Disturbance::StoppedThenKilled(whom, pause),
            Disturbance::FullDisk(random.one_of(&[64, 128, 192, 256, 320, 512])),
            Disturbance::NoLongerFiles(room),
            Disturbance::NoMoreMemory(whom, 16 * room),
            Disturbance::MemoryGroup(whom, 65_536 + 8 * room),
        ];
        // What the coordinator starts is traced too, and a guest that traces its own processes cannot be.
        if !matches!(kind, Kind::Guests(_)) {
            all.push(Disturbance::BrokenDisk);
        }
        // The link to an agent that listens is the machine's own, and a guest has its end of the link for itself.
        if !matches!(kind, Kind::ToAgent | Kind::Guests(_)) {
            all.push(Disturbance::LinkDown(down));
            if is_long {
                all.push(Disturbance::Frozen);
            }
        }
        // The guest takes its time to boot.
        if is_long && matches!(kind, Kind::Separate | Kind::Interleaved) {
            all.push(Disturbance::ClockSet(random.below(u64::MAX)));
        }
        random.one_of(&all)
    }

    /// Where a campaign must be to be disturbed so.
    pub(super) fn place(self) -> Place {
        match self {
            Disturbance::FullDisk(kib) => Place::SmallDisk(kib),
            Disturbance::ClockSet(seed) => Place::Guest(seed),
            _ => Place::Here,
        }
    }

    /// Whether it disturbs the traffic of a campaign that goes on.
    pub(super) fn is_of_traffic(self) -> bool {
        matches!(self, Disturbance::Stopped(Whom::Host, _) | Disturbance::LinkDown(_))
    }

    /// Disturbs, by this group if it is one. Returns when, if it came in time.
    pub(super) fn disturb(
        self,
        campaign: &Campaign,
        running: &Running,
        group: Option<&MemoryGroup>,
        random: &mut Random,
    ) -> Option<Disturbed> {
        let mut from = monotonic_ns();
        let mut to = None;
        let ours = Processes { coordinator: running.pid(), hosts: campaign.hosts(running.pid()) };
        match self {
            Disturbance::Signal(whom, name) => tell(ours.choose(whom, random)?, name),
            Disturbance::TwoInterrupts => {
                tell(running.pid(), "INT");
                sleep(Duration::from_millis(random.below(20)));
                tell(running.pid(), "INT");
            }
            Disturbance::Stopped(whom, pause) => stop(ours.choose(whom, random)?, pause, "CONT"),
            Disturbance::StoppedThenKilled(whom, pause) => stop(ours.choose(whom, random)?, pause, "KILL"),
            Disturbance::Frozen => tell(ours.choose(Whom::Host, random)?, "STOP"),
            Disturbance::FullDisk(_) | Disturbance::ClockSet(_) => {}
            Disturbance::NoLongerFiles(room) => {
                let length = fs::metadata(campaign.record()).map_or(0, |record| record.len());
                limit(running.pid(), "fsize", length + room);
            }
            Disturbance::BrokenDisk => fail_writes(running.pid(), &campaign.record())?,
            Disturbance::NoMoreMemory(whom, room) => {
                let pid = ours.choose(whom, random)?;
                let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
                let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
                let kib: u64 = size.trim().split(' ').next()?.parse().ok()?;
                limit(pid, "as", kib * 1024 + room);
            }
            Disturbance::MemoryGroup(whom, _) => {
                group.expect("it was made for this").take(ours.choose(whom, random)?).then_some(())?;
            }
            Disturbance::LinkDown(down) => {
                let host = ours.choose(Whom::Host, random)?;
                link(host, "down").then_some(())?;
                from = monotonic_ns();
                sleep(down);
                to = Some(monotonic_ns());
                link(host, "up");
            }
        }
        let over = monotonic_ns();
        Some(Disturbed { from, to: to.unwrap_or(over), over })
    }
}

/// Sends a signal to a process that may have ended.
fn tell(pid: u32, name: &str) {
    if fs::exists(format!("/proc/{pid}/exe")).is_ok_and(|there| there) {
        signal(pid, name);
    }
}

fn stop(pid: u32, pause: Duration, then: &str) {
    tell(pid, "STOP");
    sleep(pause);
    tell(pid, then);
}

/// Limits what a process that runs may have, bytes.
fn limit(pid: u32, what: &str, bytes: u64) {
    let arguments = ["--pid".to_owned(), pid.to_string(), format!("--{what}={bytes}:{bytes}")];
    // It fails if the process has ended.
    let _ = Command::new("prlimit").args(arguments).stderr(Stdio::null()).status().unwrap();
}

/// Lets a process's writes to a record and its journal fail, by strace. Returns once it does, unless the process has
/// ended.
fn fail_writes(pid: u32, record: &Path) -> Option<()> {
    let calls = "write,pwrite64,ftruncate,fsync,fdatasync";
    let journal = format!("{}-journal", record.display());
    let mut strace = Command::new("strace")
        .args(["-f", "-e", &format!("inject={calls}:error=EIO"), "-P"])
        .arg(record)
        .args(["-P", &journal, "-p", &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(strace.stderr.take().unwrap()).lines();
    let is_attached = said.any(|line| line.unwrap().contains("attached"));
    // It ends with the process. What it prints is read, so that it never waits for that.
    thread::spawn(move || {
        said.for_each(drop);
        strace.wait()
    });
    is_attached.then_some(())
}

/// Sets the link of a host. Returns whether there was one.
fn link(host: u32, state: &str) -> bool {
    let namespace = format!("--net=/proc/{host}/ns/net");
    let mut command = Command::new("nsenter");
    command.args([namespace.as_str(), "ip", "link", "set", "st0", state]).stderr(Stdio::null());
    command.status().unwrap().success()
}
