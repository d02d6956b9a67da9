//! The stack itself: its interface, its sockets, and the packets that it takes from the link's end and gives to it.

use crate::sys::now_ns;
use crate::sys::stack::StackConfig;
use crate::sys::stack::device::LinkEnd;
use crate::sys::stack::neighbours::announce_neighbours;
use crate::sys::stack::slot::{Slot, SlotState};
use crate::sys::stack::waiter::{Leader, Waiter};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Frames that are taken from the device before what they brought is looked at: a flood must not keep its reader
/// waiting.
const MAX_FRAMES_AT_ONCE: usize = 64;
/// Sockets that wait for connections, beside those that have one.
const SPARE_LISTENERS: usize = 4;
/// How long a connection that nobody holds may take to close.
const CLOSE_LIMIT_NS: u64 = 15_000_000_000;
/// Ports for sockets that choose none (RFC 6335, section 6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// A stack on a link's end.
pub(crate) struct Stack {
    pub config: StackConfig,
    state: Mutex<StackState>,
    /// A socket is ready, or nobody leads.
    pub woken: Condvar,
    /// Bytes of memory for frames that wait for the stack.
    pub waiting_room: usize,
    /// The link's end, for whoever sleeps at it.
    pub link: RawFd,
}

pub(super) struct StackState {
    pub interface: Interface,
    pub sockets: SocketSet<'static>,
    pub end: LinkEnd,
    pub slots: Vec<Option<Slot>>,
    /// Connections that nobody holds any more, and until when they may take to close.
    closing: Vec<(SocketHandle, u64)>,
    next_port: u16,
    /// The threads that wait, and the one of them that sleeps at the end of the link.
    pub waiters: Vec<Waiter>,
    pub leader: Option<Leader>,
    pub last_waiter: u64,
    /// Whether frames were taken, or the link has room again, since it was looked whose sockets are ready.
    pub has_news: bool,
}

pub(super) fn now() -> Instant {
    Instant::from_micros((now_ns() / 1000) as i64)
}

impl Stack {
    pub(super) fn new(config: &StackConfig) -> io::Result<Arc<Self>> {
        let mut end = LinkEnd::open(config)?;
        let mut settings = Config::new(EthernetAddress(config.hardware).into());
        settings.random_seed = now_ns();
        let mut interface = Interface::new(settings, &mut end, now());
        let mut has_room = true;
        interface.update_ip_addrs(|addresses| {
            for (address, prefix) in &config.addresses {
                has_room &= addresses.push(IpCidr::new((*address).into(), *prefix)).is_ok();
            }
        });
        if !has_room {
            let text = format!("{} addresses are more than smoltcp was built for", config.addresses.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        end.announced = announce_neighbours(config);
        let range = u64::from(u16::MAX - FIRST_DYNAMIC_PORT);
        Ok(Arc::new(Stack {
            config: config.clone(),
            waiting_room: end.socket.recv_buffer_size()?,
            link: end.socket.as_raw_fd(),
            state: Mutex::new(StackState {
                interface,
                sockets: SocketSet::new(Vec::new()),
                end,
                slots: Vec::new(),
                closing: Vec::new(),
                next_port: FIRST_DYNAMIC_PORT + (now_ns() % range) as u16,
                waiters: Vec::new(),
                leader: None,
                last_waiter: 0,
                has_news: false,
            }),
            woken: Condvar::new(),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, StackState> {
        // What a thread that panicked left is a stack between two packets.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if nobody else has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, StackState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        self.config.addresses.iter().any(|(own, _)| *own == address)
    }

    /// The counters of the stack and of its end of the link, by the names that Linux has for them; `kernel` are those
    /// of the namespace.
    pub(crate) fn counters(&self, mut kernel: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        kernel.retain(|name, _| name.starts_with("interface.") || name.starts_with("cgroup."));
        let mut state = self.lock();
        state.end.count_drops();
        state.end.counters.write(&mut kernel);
        kernel
    }
}

impl StackState {
    /// Takes what has arrived, and sends what is due.
    pub(super) fn move_packets(&mut self) {
        for _ in 0..MAX_FRAMES_AT_ONCE {
            let Self { interface, end, sockets, .. } = self;
            if interface.poll_ingress_single(now(), end, sockets) == PollIngressSingleResult::None {
                break;
            }
            self.has_news = true;
            // A second connection may be opened before this one is answered.
            self.refill_listeners(1);
        }
        self.send_packets();
        self.refill_listeners(SPARE_LISTENERS);
    }

    /// Sends what is due.
    pub(super) fn send_packets(&mut self) {
        self.make_room();
        let Self { interface, end, sockets, .. } = self;
        while interface.poll_egress(now(), end, sockets) == PollResult::SocketStateChanged {}
    }

    /// Tries to be rid of frames that wait. Returns whether the link has room.
    pub(super) fn make_room(&mut self) -> bool {
        let was_full = self.end.is_full();
        let has_room = self.end.make_room();
        self.has_news |= was_full && has_room;
        has_room
    }

    /// When a timer of a connection is due; `None` if none is set, or if the device has no room for what it would send.
    pub(super) fn until_due(&mut self) -> Option<Duration> {
        if self.end.is_full() {
            return None;
        }
        let due = self.interface.poll_delay(now(), &self.sockets)?;
        Some(Duration::from_micros(due.total_micros()))
    }

    /// A port that no socket of the stack has.
    pub(super) fn choose_port(&mut self) -> io::Result<u16> {
        for _ in FIRST_DYNAMIC_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { FIRST_DYNAMIC_PORT } else { port + 1 };
            let held = self.slots.iter().flatten().any(|slot| slot.has_port(port));
            let closing = self.closing.iter().any(|(handle, _)| {
                let local = self.sockets.get::<tcp::Socket>(*handle).local_endpoint();
                local.is_some_and(|local| local.port == port)
            });
            if !held && !closing {
                return Ok(port);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    pub(super) fn add_slot(&mut self, slot: Slot) -> usize {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(slot);
        free
    }

    /// The slot of a socket, which is there until the socket is dropped.
    pub(super) fn slot(&mut self, key: usize) -> &mut Slot {
        self.slots[key].as_mut().expect("a socket's slot lasts as long as the socket")
    }

    pub(super) fn remove_slot(&mut self, key: usize) {
        let Some(slot) = self.slots[key].take() else { return };
        match slot.state {
            SlotState::Opened => {}
            SlotState::Datagrams { handle, .. } => {
                self.send_packets();
                self.sockets.remove(handle);
                if let Some(local) = slot.local {
                    self.end.counters.close_port(slot.family, local.port());
                }
            }
            SlotState::Listening { handles, .. } => {
                self.end.counters.stop_listening(slot.local);
                for handle in handles {
                    self.sockets.get_mut::<tcp::Socket>(handle).abort();
                    self.closing.push((handle, now_ns() + CLOSE_LIMIT_NS));
                }
            }
            SlotState::Connection { handle, .. } => {
                if let Some(key) = slot.local.zip(slot.peer) {
                    self.end.counters.close_connection(key);
                }
                let socket = self.sockets.get_mut::<tcp::Socket>(handle);
                // A kernel resets a connection with data that nobody will read.
                if slot.settings.resets_on_close || socket.can_recv() {
                    socket.abort();
                } else {
                    socket.close();
                }
                self.closing.push((handle, now_ns() + CLOSE_LIMIT_NS));
            }
        }
        self.send_packets();
        self.end_connections();
    }

    /// Removes connections that nobody holds and that are closed, or that take too long.
    pub(super) fn end_connections(&mut self) {
        let now = now_ns();
        let Self { closing, sockets, end, .. } = self;
        closing.retain(|(handle, until)| {
            let socket = sockets.get_mut::<tcp::Socket>(*handle);
            let is_closed = match socket.state() {
                // Before its reset has left, it still has a peer.
                tcp::State::Closed => socket.remote_endpoint().is_none(),
                tcp::State::TimeWait => !end.is_full(),
                _ => false,
            };
            if !is_closed && now < *until {
                return true;
            }
            sockets.remove(*handle);
            false
        });
    }
}
