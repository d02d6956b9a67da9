//! The wire between the two namespaces: one thread that moves packets between two TUN devices. Each family has a delay
//! and perhaps a fault. All times of a run are those at which packets enter or leave the wire.

use crate::network::answer::{Unreachable, refuse, report_unreachable};
use crate::network::packet::{Flags, Headers, Payload, family_of};
use crate::network::{Clock, lock};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde::Serialize;
use stacklab_model::Family;
use stacklab_testbed::kernel::sys::run_first;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The MTU of both devices, bytes.
pub(crate) const MTU: u32 = 1500;
/// The longest sleep without a packet.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// What the path of a family does to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// Nothing arrives, and nothing is said.
    Drop,
    /// Connections are refused with RST.
    Reset,
    /// Packets to the server are answered with an ICMP error.
    Unreachable(Unreachable),
    /// Packets of more than this many bytes are lost, and nothing is said.
    BlackHole(usize),
    /// The handshake works; segments with data are lost.
    NoData,
}

/// The path of one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PathSetting {
    /// Time from end to end, one way.
    pub delay: Duration,
    pub fault: Option<PathFault>,
}

/// The paths of both families.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    pub ipv4: PathSetting,
    pub ipv6: PathSetting,
}

impl Paths {
    pub(crate) fn of(&self, family: Family) -> PathSetting {
        match family {
            Family::Ipv4 => self.ipv4,
            Family::Ipv6 => self.ipv6,
        }
    }

    pub(crate) fn of_mut(&mut self, family: Family) -> &mut PathSetting {
        match family {
            Family::Ipv4 => &mut self.ipv4,
            Family::Ipv6 => &mut self.ipv6,
        }
    }
}

/// An end of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// A packet that has entered the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged {
    /// When it entered.
    pub at: Duration,
    /// When it left at the other end; `None` if the wire did not pass it.
    pub delivered: Option<Duration>,
    /// What the wire answered at once in the place of the network.
    pub refused: Option<RefusedBy>,
    /// Where it entered.
    pub from: End,
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub payload: Payload,
}

impl Logged {
    pub(crate) fn family(&self) -> Family {
        Family::of(self.server.ip())
    }

    /// The flags of a TCP segment from this end.
    pub(crate) fn tcp_flags(&self, from: End) -> Option<Flags> {
        match self.payload {
            Payload::Tcp { flags, .. } if self.from == from => Some(flags),
            _ => None,
        }
    }
}

/// What refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    /// A TCP segment with RST.
    Reset,
    /// An ICMP error.
    Icmp,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passed,
    Lost,
    /// Answered by the wire in the place of the network.
    Refused(RefusedBy),
}

impl Fate {
    fn pass_if(is_passed: bool) -> Self {
        if is_passed { Fate::Passed } else { Fate::Lost }
    }
}

/// The settings of the wire, and its log.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    paths: Mutex<Paths>,
    log: Mutex<Vec<Logged>>,
}

impl Wire {
    /// Starts the thread that carries packets between these devices. It ends with the process.
    pub(crate) fn start(clock: Clock, client: File, server: File) -> io::Result<Arc<Wire>> {
        let wire = Arc::new(Wire::default());
        let carrier =
            Carrier { wire: wire.clone(), clock, client, server, parcels: BTreeMap::new(), entered: 0 };
        thread::Builder::new().name("wire".to_owned()).spawn(move || carrier.carry())?;
        Ok(wire)
    }

    /// Sets both paths for the packets from now on, and forgets the log.
    pub(crate) fn set(&self, paths: Paths) {
        *lock(&self.paths) = paths;
        lock(&self.log).clear();
    }

    /// The packets since the paths were set.
    pub(crate) fn take_log(&self) -> Vec<Logged> {
        std::mem::take(&mut lock(&self.log))
    }
}

/// A packet on its way.
struct Parcel {
    to: End,
    bytes: Vec<u8>,
}

struct Carrier {
    wire: Arc<Wire>,
    clock: Clock,
    client: File,
    server: File,
    /// By the time at which they are due, and the order in which they entered.
    parcels: BTreeMap<(Duration, u64), Parcel>,
    entered: u64,
}

impl Carrier {
    fn carry(mut self) {
        // It dates packets when it sees them. An ordinary user may not have the priority, and gets later dates on a
        // busy machine.
        let _ = run_first();
        let mut room = vec![0; 65_536];
        loop {
            self.deliver();
            if self.wait().is_err() {
                return;
            }
            for end in [End::Client, End::Server] {
                while let Ok(length @ 1..) = self.device(end).read(&mut room) {
                    self.accept(end, &room[..length]);
                }
            }
        }
    }

    fn device(&mut self, end: End) -> &mut File {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    /// Delivers the packets that are due.
    fn deliver(&mut self) {
        let now = self.clock.now();
        while let Some(first) = self.parcels.first_entry() {
            if first.key().0 > now {
                return;
            }
            let parcel = first.remove();
            // A device that is gone has no reader.
            let _ = self.device(parcel.to).write(&parcel.bytes);
        }
    }

    /// Waits for a packet, or until one is due.
    fn wait(&self) -> nix::Result<()> {
        let due = self.parcels.first_key_value().map(|((due, _), _)| *due);
        let sleep = due.map_or(MAX_SLEEP, |due| due.saturating_sub(self.clock.now()));
        let mut devices = [
            PollFd::new(self.client.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.server.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut devices, Some(TimeSpec::from_duration(sleep.min(MAX_SLEEP))), None) {
            Err(nix::errno::Errno::EINTR) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Decides what becomes of a packet, and logs it.
    fn accept(&mut self, from: End, packet: &[u8]) {
        let at = self.clock.now();
        let Some(family) = family_of(packet) else { return };
        let path = lock(&self.wire.paths).of(family);
        let headers = Headers::parse(packet);
        let fate = match path.fault {
            None => Fate::Passed,
            Some(fault) => self.meet(fault, from, packet, headers.as_ref()),
        };
        let is_passed = fate == Fate::Passed;
        let due = at + path.delay;
        if let Some(headers) = headers {
            let (client, server) = match from {
                End::Client => (headers.source, headers.destination),
                End::Server => (headers.destination, headers.source),
            };
            lock(&self.wire.log).push(Logged {
                at,
                delivered: if is_passed { Some(due) } else { None },
                refused: if let Fate::Refused(by) = fate { Some(by) } else { None },
                from,
                client,
                server,
                payload: headers.payload,
            });
        }
        if is_passed {
            self.entered += 1;
            let to = if from == End::Client { End::Server } else { End::Client };
            self.parcels.insert((due, self.entered), Parcel { to, bytes: packet.to_vec() });
            self.deliver();
        }
    }

    /// Does to a packet what a fault does.
    fn meet(&mut self, fault: PathFault, from: End, packet: &[u8], headers: Option<&Headers>) -> Fate {
        match fault {
            PathFault::Drop => Fate::Lost,
            PathFault::BlackHole(most) => Fate::pass_if(packet.len() <= most),
            PathFault::NoData => match headers.map(|headers| headers.payload) {
                Some(Payload::Tcp { bytes, .. }) => Fate::pass_if(bytes == 0),
                _ => Fate::Passed,
            },
            PathFault::Reset | PathFault::Unreachable(_) if from == End::Server => Fate::Passed,
            PathFault::Reset => match headers.and_then(refuse) {
                Some(refusal) => {
                    let _ = self.client.write(&refusal);
                    Fate::Refused(RefusedBy::Reset)
                }
                None => Fate::Passed,
            },
            PathFault::Unreachable(reason) => match headers {
                Some(headers) => {
                    let _ = self.client.write(&report_unreachable(packet, headers, reason));
                    Fate::Refused(RefusedBy::Icmp)
                }
                None => Fate::Lost,
            },
        }
    }
}
