//! The guest's side: one thread sends each message and receives it, between marks.

use crate::exact::networks::{Networks, Place, within};
use crate::exact::plan::{ExactPlan, ROUNDS};
use crate::exact::sys::{begin, end, pass, seed_random, ticks};
use serde::{Deserialize, Serialize};
use stacklab_guests::inside::is_first;
use stacklab_model::{ExactArm, ExactProbe};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The first line that a guest writes. The kernel's functions follow, as lines of /proc/kallsyms, then [`END`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuestReport {
    /// All messages were carried.
    Counted {
        /// Release of the kernel.
        kernel: String,
        /// Instructions of each phase by QEMU's counter.
        ticks: Vec<u64>,
    },
    /// A step failed.
    Failed {
        /// The step and the reason.
        reason: String,
    },
}

/// Timeout for a message that was sent.
const PATIENCE: Duration = Duration::from_secs(5);
/// The last line of a guest's report.
pub(super) const END: &str = "end";

/// Sends and receives the messages of a plan in this system, then opens a stream and reports on it. While messages are
/// counted, no device may interrupt: the machine outside would choose the moment.
///
/// # Errors
/// The report cannot be written. Other errors are in the report.
pub fn send_counted<W: Write>(plan: &str, open: impl FnOnce() -> io::Result<W>) -> io::Result<()> {
    if is_first() {
        seed_random(&[0x5a; 256])?;
    }
    let found = plan.parse().and_then(|plan: ExactPlan| Ok((carry(&plan)?, functions()?)));
    let mut stream = BufWriter::with_capacity(32 << 10, open()?);
    let (report, functions) = match found {
        Ok((ticks, functions)) => {
            let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
            (GuestReport::Counted { kernel, ticks }, functions)
        }
        Err(reason) => (GuestReport::Failed { reason }, String::new()),
    };
    serde_json::to_writer(&mut stream, &report)?;
    writeln!(stream)?;
    stream.write_all(functions.as_bytes())?;
    writeln!(stream, "{END}")?;
    stream.flush()
}

/// Carries the messages of all pairs. Returns the ticks of each phase.
fn carry(plan: &ExactPlan) -> Result<Vec<u64>, String> {
    let networks = Networks::build(plan)?;
    let mut all = Vec::with_capacity(plan.phases());
    for pair in &plan.pairs {
        let probe = pair.probe;
        let mut ends = Vec::new();
        for arm in &pair.arms {
            let place = networks.place(arm);
            let opened = Ends::open(probe, &place).map_err(|reason| {
                let (family, path) = (arm.family, arm.path);
                format!("cannot open sockets of {family} for {probe} over {path} in the guest: {reason}")
            })?;
            ends.push((opened, [vec![0x5a; arm.size as usize], vec![0; arm.size as usize]], arm));
        }
        // The first round fills caches and opens the congestion window: no phase.
        for round in 0..=ROUNDS {
            for (ends, buffers, arm) in &mut ends {
                let took = ends.exchange(pair.messages(), buffers, round > 0).map_err(|reason| {
                    let ExactArm { family, path, size, .. } = arm;
                    format!("cannot carry {probe} of {size} bytes with {family} over {path} in the guest: {reason}")
                })?;
                all.extend(took);
            }
        }
    }
    Ok(all)
}

/// The functions of /proc/kallsyms, without other symbols.
fn functions() -> Result<String, String> {
    // Without it, addresses are hidden; the file may be absent too.
    let _ = fs::write("/proc/sys/kernel/kptr_restrict", "0");
    let all = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let is_function = |line: &&str| matches!(line.split(' ').nth(1), Some("t" | "T" | "w" | "W"));
    let functions: String = all.lines().filter(is_function).flat_map(|line| [line, "\n"]).collect();
    if functions.is_empty() {
        return Err("the guest's kernel lists no functions: it needs CONFIG_KALLSYMS".to_owned());
    }
    Ok(functions)
}

/// The sockets of an arm: connected ones, between which messages pass and perhaps return; or a listener, whose
/// connections start in the namespace of a process.
enum Ends {
    Connected { sender: OwnedFd, receiver: OwnedFd, returns: bool },
    Connect { listener: TcpListener, to: SocketAddr, from: Option<u32> },
}

impl Ends {
    fn open(probe: ExactProbe, place: &Place) -> io::Result<Self> {
        let Place { sender: from, receiver: at, ends } = place;
        if matches!(probe, ExactProbe::Udp | ExactProbe::Echo) {
            let receiver = within(*at, || UdpSocket::bind((ends.receiver, 0)))?;
            let to = SocketAddr::new(ends.destination, receiver.local_addr()?.port());
            let sender = within(*from, || UdpSocket::bind((ends.sender, 0)))?;
            for socket in [&sender, &receiver] {
                socket.set_read_timeout(Some(PATIENCE))?;
            }
            sender.connect(to)?;
            // A translator may have changed the source.
            sender.send(&[0])?;
            receiver.connect(receiver.recv_from(&mut [0])?.1)?;
            let returns = probe == ExactProbe::Echo;
            return Ok(Ends::Connected { sender: sender.into(), receiver: receiver.into(), returns });
        }
        let listener = within(*at, || TcpListener::bind((ends.receiver, 0)))?;
        let to = SocketAddr::new(ends.destination, listener.local_addr()?.port());
        if probe == ExactProbe::Connect {
            return Ok(Ends::Connect { listener, to, from: *from });
        }
        let sender = within(*from, || TcpStream::connect_timeout(&to, PATIENCE))?;
        let (receiver, _) = listener.accept()?;
        for socket in [&sender, &receiver] {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(PATIENCE))?;
        }
        Ok(Ends::Connected { sender: sender.into(), receiver: receiver.into(), returns: false })
    }

    /// Sends and receives the messages of a round, and returns the ticks if they are counted.
    fn exchange(
        &self,
        messages: u64,
        buffers: &mut [Vec<u8>; 2],
        is_counted: bool,
    ) -> io::Result<Option<u64>> {
        match self {
            Ends::Connect { from, .. } => within(*from, || self.exchange_here(messages, buffers, is_counted)),
            _ => self.exchange_here(messages, buffers, is_counted),
        }
    }

    fn exchange_here(
        &self,
        messages: u64,
        [message, received]: &mut [Vec<u8>; 2],
        is_counted: bool,
    ) -> io::Result<Option<u64>> {
        if is_counted {
            begin();
        }
        let from = ticks();
        for _ in 0..messages {
            match self {
                Ends::Connected { sender, receiver, returns } => {
                    pass(sender, receiver, message, received)?;
                    if *returns {
                        pass(receiver, sender, message, received)?;
                    }
                }
                Ends::Connect { listener, to, .. } => {
                    let sender = TcpStream::connect(to)?;
                    let receiver = listener.accept()?;
                    drop(sender);
                    drop(receiver);
                }
            }
        }
        let took = ticks().wrapping_sub(from);
        if is_counted {
            end();
        }
        Ok(is_counted.then_some(took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_all_probes_and_reports_each_phase() {
        let mut out = Vec::new();
        let arms = |size| format!("ipv4@loopback/{size}*0+ipv6@loopback/{size}*0");
        let plan = format!("udp:{},tcp:{},echo:{},connect:{}", arms(64), arms(1000), arms(64), arms(0));
        send_counted(&plan, || Ok(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = text.lines().next().unwrap();
        let GuestReport::Counted { ticks, .. } = serde_json::from_str(first).unwrap() else {
            panic!("{first}")
        };
        assert_eq!(ticks.len(), 4 * 2 * ROUNDS);
        assert!(ticks.iter().all(|ticks| *ticks > 0));
        assert_eq!(text.lines().last(), Some(END));
        assert!(text.lines().count() > 1000, "it lists the kernel's functions");
    }

    #[test]
    fn wrong_plan_is_reported() {
        let mut out = Vec::new();
        send_counted("udp", || Ok(&mut out)).unwrap();
        assert!(String::from_utf8(out).unwrap().starts_with("{\"failed\":{\"reason\":\"`udp` is not a plan"));
    }
}
