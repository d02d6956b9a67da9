//! The guest's side: one thread sends each message over loopback and receives it, between marks.

use crate::exact::plan::{ExactFlow, ExactPlan, MESSAGES, ROUNDS};
use crate::exact::sys::{begin, end, ticks};
use serde::{Deserialize, Serialize};
use stacklab_model::Transport;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

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

/// The last line of a guest's report.
pub(super) const END: &str = "end";

/// Sends and receives the messages of a plan in this system, then opens a stream and reports on it. While messages are
/// counted, no device may interrupt: the machine outside would choose the moment.
///
/// # Errors
/// The report cannot be written. Other errors are in the report.
pub fn send_counted<W: Write>(plan: &str, open: impl FnOnce() -> io::Result<W>) -> io::Result<()> {
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

/// Carries all flows. Returns the ticks of each phase.
fn carry(plan: &ExactPlan) -> Result<Vec<u64>, String> {
    let mut all = Vec::with_capacity(plan.phases());
    for flow in &plan.flows {
        let mut ends = Vec::new();
        for host in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
            let opened = Ends::open(flow.transport, host);
            ends.push(opened.map_err(|reason| {
                format!("cannot open {} sockets on {} in the guest: {reason}", flow.transport, host.ip())
            })?);
        }
        let mut buffers = [vec![0x5a; flow.size as usize], vec![0; flow.size as usize]];
        // The first round fills caches and opens the congestion window: no phase.
        for round in 0..=ROUNDS {
            for ends in &ends {
                let took = ends.exchange(&mut buffers, round > 0);
                let took = took.map_err(|reason| {
                    let ExactFlow { transport, size } = flow;
                    format!("cannot carry {transport} messages of {size} bytes in the guest: {reason}")
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

/// Connected sockets: a sender and a receiver.
enum Ends {
    Udp(UdpSocket, UdpSocket),
    Tcp(TcpStream, TcpStream),
}

impl Ends {
    fn open(transport: Transport, host: SocketAddr) -> io::Result<Self> {
        match transport {
            Transport::Udp => {
                let (sender, receiver) = (UdpSocket::bind(host)?, UdpSocket::bind(host)?);
                sender.connect(receiver.local_addr()?)?;
                receiver.connect(sender.local_addr()?)?;
                Ok(Ends::Udp(sender, receiver))
            }
            Transport::Tcp => {
                let listener = TcpListener::bind(host)?;
                let sender = TcpStream::connect(listener.local_addr()?)?;
                let (receiver, _) = listener.accept()?;
                sender.set_nodelay(true)?;
                receiver.set_nodelay(true)?;
                Ok(Ends::Tcp(sender, receiver))
            }
        }
    }

    /// Sends and receives the messages of a round, and returns the ticks if they are counted.
    fn exchange(&self, [message, received]: &mut [Vec<u8>; 2], is_counted: bool) -> io::Result<Option<u64>> {
        if is_counted {
            begin();
        }
        let from = ticks();
        for _ in 0..MESSAGES {
            match self {
                Ends::Udp(sender, receiver) => {
                    sender.send(message)?;
                    if receiver.recv(received)? != message.len() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Ends::Tcp(sender, receiver) => {
                    (&*sender).write_all(message)?;
                    (&*receiver).read_exact(received)?;
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
    fn carries_both_transports_and_reports_each_phase() {
        let mut out = Vec::new();
        send_counted("udp/64,tcp/1000", || Ok(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = text.lines().next().unwrap();
        let GuestReport::Counted { ticks, .. } = serde_json::from_str(first).unwrap() else {
            panic!("{first}")
        };
        assert_eq!(ticks.len(), 2 * 2 * ROUNDS);
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
