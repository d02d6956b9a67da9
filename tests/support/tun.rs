//! A path with known faults: packets pass between two TUN devices through this program. It delays, drops, duplicates
//! and reorders them, and counts its actions.

use super::program::require_tool;
use super::sys::{open_tun, wait_readable};
use stacklab_model::Family;
use stacklab_testbed::in_namespace;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Name of the device, the same on both hosts.
const DEVICE: &str = "faulty";
/// Its MTU: the kernel's default for a TUN device.
pub(crate) const MTU: u32 = 1500;
/// How often a waiting thread checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Address of the sending (0) or receiving (1) end, in the benchmark networks (RFC 2544) but outside the testbed's
/// own.
pub(crate) fn address(family: Family, end: usize) -> IpAddr {
    let number = 1 + end as u8;
    match family {
        Family::Ipv4 => Ipv4Addr::new(198, 18, 9, number).into(),
        Family::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, 9, 0, 0, 0, number.into()).into(),
    }
}

/// The faults of one direction. A rule "every `n`th" counts messages of the measured window from 0 by their sequence
/// number (for TCP, segments with payload), and applies to those with the given remainder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// The packets of this family alone have faults. Both leave in the order of their arrival, so that one that is
    /// delayed holds the other family's up: for families that take turns.
    pub only: Option<Family>,
    /// Delay of every packet.
    pub delay: Duration,
    /// Dropped: every `n`th, remainder.
    pub drop: Option<(u64, u64)>,
    /// Dropped too: every `n`th datagram of any content, in the order of their arrival, remainder.
    pub drop_datagram: Option<(u64, u64)>,
    /// Dropped too: every `n`th ICMP echo or answer, in the order of their arrival, remainder.
    pub drop_echo: Option<(u64, u64)>,
    /// Dropped too: packets of more bytes, of which nobody is told: a black hole.
    pub longest: Option<usize>,
    /// Dropped too: all packets from here on.
    pub drop_from: Option<u64>,
    /// Sent twice: every `n`th, remainder.
    pub double: Option<(u64, u64)>,
    /// Held back until this many (third number) later packets have passed: every `n`th, remainder.
    pub hold: Option<(u64, u64, usize)>,
}

/// The faults applied to messages of the measured window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Messages that entered; for TCP, segments with payload.
    pub came: u64,
    /// Messages dropped.
    pub dropped: u64,
    /// Messages duplicated.
    pub doubled: u64,
    /// Messages reordered by RFC 4737: sent with a sequence number below the next expected one.
    pub reordered: u64,
    next_expected: u64,
    let_out: HashSet<u64>,
}

impl Done {
    fn let_out(&mut self, sequence: u64) {
        if !self.let_out.insert(sequence) {
            self.doubled += 1;
        } else if sequence < self.next_expected {
            self.reordered += 1;
        } else {
            self.next_expected = sequence + 1;
        }
    }
}

/// The path. Dropping it ends it and removes both devices.
pub(crate) struct FaultyPath {
    there: Arc<Mutex<Done>>,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl FaultyPath {
    /// Creates it between the namespaces of two processes.
    pub(crate) fn new(pids: [u32; 2], there: Faults, back: Faults) -> Self {
        let [near, far] = [0, 1].map(|end| device(pids[end], end));
        let mut path = FaultyPath { there: Arc::default(), ended: Arc::default(), threads: Vec::new() };
        let copies = [near.try_clone().unwrap(), far.try_clone().unwrap()];
        path.direction(there, near, far, Arc::clone(&path.there));
        let [near, far] = copies;
        path.direction(back, far, near, Arc::default());
        path
    }

    /// Returns and resets the faults applied to messages from the sender to the receiver.
    pub(crate) fn take(&self) -> Done {
        std::mem::take(&mut self.there.lock().unwrap())
    }

    /// Starts a direction: one thread receives packets and decides, another sends them when they are due.
    fn direction(&mut self, faults: Faults, from: File, to: File, done: Arc<Mutex<Done>>) {
        let (sender, receiver) = channel();
        let ended = Arc::clone(&self.ended);
        self.threads.push(thread::spawn(move || take_in(faults, from, &sender, &done, &ended)));
        self.threads.push(thread::spawn(move || let_out(to, &receiver)));
    }
}

impl Drop for FaultyPath {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panicked thread has already printed its reason.
            let _ = thread.join();
        }
    }
}

/// Creates a device in the namespace of a process, with an address of each family.
fn device(pid: u32, end: usize) -> File {
    require_tool("nsenter", "util-linux");
    let made = in_namespace(pid, || open_tun(DEVICE)).and_then(|made| made);
    let file =
        made.unwrap_or_else(|error| panic!("this test needs TUN devices (sudo modprobe tun): {error}"));
    run_ip(pid, &format!("address add {}/24 dev {DEVICE}", address(Family::Ipv4, end)));
    run_ip(pid, &format!("address add {}/64 dev {DEVICE} nodad", address(Family::Ipv6, end)));
    run_ip(pid, &format!("link set {DEVICE} mtu {MTU} up"));
    file
}

/// Runs `ip` in the namespace of a process.
fn run_ip(pid: u32, arguments: &str) {
    let mut command = Command::new("nsenter");
    command.args(["-t", &pid.to_string(), "-n", "ip"]).args(arguments.split_whitespace());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A packet and its departure time.
type Due = (Instant, Vec<u8>);

fn take_in(faults: Faults, mut from: File, out: &Sender<Due>, done: &Mutex<Done>, ended: &AtomicBool) {
    let mut buffer = vec![0; MTU as usize];
    let mut gate = Gate { faults, out, done, segments: 0, datagrams: 0, echoes: 0, held: None };
    while !ended.load(Ordering::Relaxed) {
        if wait_readable(&from, POLL_INTERVAL).unwrap() {
            let length = from.read(&mut buffer).unwrap();
            gate.pass(&buffer[..length]);
        }
    }
}

/// Applies the faults of a direction to its packets.
struct Gate<'a> {
    faults: Faults,
    out: &'a Sender<Due>,
    done: &'a Mutex<Done>,
    /// Packets so far: TCP segments with payload, datagrams, ICMP echoes and answers.
    segments: u64,
    datagrams: u64,
    echoes: u64,
    held: Option<HeldPacket>,
}

struct HeldPacket {
    packet: Vec<u8>,
    sequence: u64,
    /// How many more packets must pass it.
    passing: usize,
}

impl Gate<'_> {
    fn pass(&mut self, packet: &[u8]) {
        if self.faults.only.is_some_and(|only| family(packet) != Some(only)) {
            self.send(packet, Instant::now());
            return;
        }
        let due = Instant::now() + self.faults.delay;
        if self.faults.longest.is_some_and(|longest| packet.len() > longest) || self.drops_by_kind(packet) {
            return;
        }
        match measured_message(packet, &mut self.segments) {
            Some(sequence) => self.pass_message(packet, sequence, due),
            None => self.send(packet, due),
        }
    }

    /// Counts a datagram or an echo. Returns whether its turn to be dropped has come.
    fn drops_by_kind(&mut self, packet: &[u8]) -> bool {
        let (rule, count) = match protocol(packet) {
            Some(UDP) => (self.faults.drop_datagram, &mut self.datagrams),
            Some(_) if is_echo(packet) => (self.faults.drop_echo, &mut self.echoes),
            _ => return false,
        };
        let number = *count;
        *count += 1;
        chooses(rule, number)
    }

    fn pass_message(&mut self, packet: &[u8], sequence: u64, due: Instant) {
        let done = self.done;
        let mut done = done.lock().unwrap();
        done.came += 1;
        let faults = self.faults;
        if chooses(faults.drop, sequence) || faults.drop_from.is_some_and(|from| sequence >= from) {
            done.dropped += 1;
            return;
        }
        if let Some((n, remainder, passing)) = faults.hold
            && chooses(Some((n, remainder)), sequence)
            && self.held.is_none()
        {
            self.held = Some(HeldPacket { packet: packet.to_vec(), sequence, passing });
            return;
        }
        for _ in 0..1 + u8::from(chooses(faults.double, sequence)) {
            self.send(packet, due);
            done.let_out(sequence);
        }
        if let Some(held) = &mut self.held {
            held.passing -= 1;
        }
        if let Some(held) = self.held.take_if(|held| held.passing == 0) {
            self.send(&held.packet, due);
            done.let_out(held.sequence);
        }
    }

    fn send(&self, packet: &[u8], due: Instant) {
        self.out.send((due, packet.to_vec())).expect("the other thread waits for packets");
    }
}

/// Whether a rule, every `n`th and a remainder, applies to a number.
fn chooses(rule: Option<(u64, u64)>, number: u64) -> bool {
    rule.is_some_and(|(n, remainder)| number % n == remainder)
}

fn let_out(mut to: File, packets: &Receiver<Due>) {
    for (due, packet) in packets {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        to.write_all(&packet).unwrap();
    }
}

fn family(packet: &[u8]) -> Option<Family> {
    match packet.first()? >> 4 {
        4 => Some(Family::Ipv4),
        6 => Some(Family::Ipv6),
        _ => None,
    }
}

const UDP: u8 = 17;

fn protocol(packet: &[u8]) -> Option<u8> {
    let place = match family(packet)? {
        Family::Ipv4 => 9,
        Family::Ipv6 => 6,
    };
    packet.get(place).copied()
}

fn is_echo(packet: &[u8]) -> bool {
    match protocol(packet) {
        Some(1) => matches!(packet.get(20), Some(0 | 8)),
        Some(58) => matches!(packet.get(40), Some(128 | 129)),
        _ => false,
    }
}

/// The number of a message of the measured window. For a datagram it is the message's own sequence number (the
/// probe's header identifies the window). For a TCP segment with payload it is a running number, independent of the
/// content. `None` for all other packets.
fn measured_message(packet: &[u8], segments: &mut u64) -> Option<u64> {
    let (protocol, header) = match packet.first()? >> 4 {
        4 => (*packet.get(9)?, usize::from(packet[0] & 15) * 4),
        6 => (*packet.get(6)?, 40),
        _ => return None,
    };
    let segment = packet.get(header..)?;
    match protocol {
        6 => {
            let payload = segment.get(usize::from(segment.get(12)? >> 4) * 4..)?;
            let number = *segments;
            *segments += u64::from(!payload.is_empty());
            (!payload.is_empty()).then_some(number)
        }
        17 => {
            const MEASURED: u8 = 1;
            let message = segment.get(8..)?;
            let sequence = u64::from_be_bytes(message.get(8..16)?.try_into().ok()?);
            (message[4] == MEASURED).then_some(sequence)
        }
        _ => None,
    }
}
