//! Runs a medium: creates radios, takes the frames that they send, and tells the kernel what becomes of each.

use super::hwsim::command::{
    Address, FAMILY, FRAME, Frame, MOST_RATES, NEW_RADIO, REGISTER, Rate, TX_INFO_FRAME, is_deliverable,
    legacy_rate, write_delivery, write_radio, write_status,
};
use super::hwsim::genl::{self, Message, Request};
use super::hwsim::socket::{Socket, wait};
use super::medium::{Event, Medium};
use crate::error::{Attempt, Fault};
use nix::sys::prctl::set_timerslack;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The signal of every reception, dBm.
const SIGNAL: i32 = -50;
/// Frames that are kept for a look, at most.
const MOST_KEPT: usize = 256;

/// A running medium with its radios. Dropping it ends the medium, and the kernel removes the radios.
#[derive(Debug)]
pub(crate) struct Carrier {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    seen: Arc<Mutex<Seen>>,
}

/// What the medium has seen.
#[derive(Debug, Default)]
struct Seen {
    counts: Counts,
    /// The frames that are kept for a look, while there is one.
    kept: Option<Vec<Frame>>,
    /// Why the medium has ended.
    ended: Option<String>,
}

/// Numbers of frames.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Frames that radios sent.
    pub sent: u64,
    /// Frames for which the medium had no room.
    pub dropped: u64,
    /// Receptions: a group's frame has several.
    pub delivered: u64,
    /// Receptions and statuses that the kernel refused: of a radio that listens elsewhere, or of a frame that it gave
    /// up.
    pub refused: u64,
    /// How often the kernel dropped frames before the medium took them.
    pub overruns: u64,
}

impl Carrier {
    /// Creates radios of these names and addresses in the calling thread's namespace, and carries their frames over
    /// the medium. The namespace's radios have no other medium.
    ///
    /// # Errors
    /// The kernel has no mac80211_hwsim, or its error.
    pub fn start(radios: &[(&str, Address)], medium: impl Medium + 'static) -> Result<Self, Fault> {
        let mut socket = Socket::open().attempt("open a netlink socket for radios")?;
        let family = socket.family(FAMILY).attempt("simulate radios")?;
        for (name, address) in radios {
            let radio = socket.ask(family, NEW_RADIO, |attributes| write_radio(attributes, name, *address));
            radio.attempt(format!("create the radio {name}"))?;
        }
        socket.ask(family, REGISTER, |_| {}).attempt("be the medium between radios")?;
        let (stop, stopped) = UnixStream::pair().attempt("make a channel to the medium")?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        let carry = move || {
            // Otherwise the kernel may wake this thread 50 us late.
            let _ = set_timerslack(1);
            let mut carry =
                Carry { socket, family, medium, frames: HashMap::new(), last: 0, out: Vec::new() };
            if let Err(error) = carry.run(&stopped, &shared) {
                eprintln!("stacklab: the medium between radios has ended: {error}");
                lock(&shared).ended = Some(error.to_string());
            }
        };
        let thread = thread::Builder::new().name("medium".to_owned()).spawn(carry);
        let thread = thread.attempt("start the medium between radios")?;
        Ok(Carrier { stop: Some(stop), thread: Some(thread), seen })
    }

    /// What has been counted so far.
    pub fn counts(&self) -> Counts {
        lock(&self.seen).counts
    }

    /// Begins to keep frames for a look.
    pub fn keep(&self) {
        lock(&self.seen).kept = Some(Vec::new());
    }

    /// The frames that radios have sent since [`Carrier::keep`], some hundred at most.
    pub fn kept(&self) -> Vec<Frame> {
        lock(&self.seen).kept.take().unwrap_or_default()
    }

    /// Why the medium has ended, if it has.
    pub fn ended(&self) -> Option<String> {
        lock(&self.seen).ended.clone()
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of a medium.
struct Carry<M> {
    socket: Socket,
    family: u16,
    medium: M,
    /// The frames on the medium, by the number that it knows them by.
    frames: HashMap<u64, Frame>,
    last: u64,
    /// Requests to the kernel that are sent together.
    out: Vec<u8>,
}

impl<M: Medium> Carry<M> {
    /// Carries frames until the other end of `stopped` is closed.
    fn run(&mut self, stopped: &UnixStream, seen: &Mutex<Seen>) -> io::Result<()> {
        let start = Instant::now();
        let now_ns = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        loop {
            let left = self.medium.next_ns().map(|next| Duration::from_nanos(next.saturating_sub(now_ns())));
            let [readable, stop] = wait(&[self.socket.as_fd(), stopped.as_fd()], left)?;
            if stop {
                return Ok(());
            }
            let (mut counts, mut taken) = (Counts::default(), Vec::new());
            if readable {
                self.socket.receive(|message| match message {
                    // A frame that is malformed never gets a status, and the kernel drops it.
                    Message::Command { command: FRAME, attributes, .. } => {
                        taken.extend(Frame::read(attributes));
                    }
                    Message::Answer { code: ..0, .. } => counts.refused += 1,
                    _ => {}
                })?;
            }
            counts.sent = taken.len() as u64;
            // Before anybody can have received them.
            lock(seen).keep(&taken);
            for frame in taken {
                counts.dropped += u64::from(!self.submit(now_ns(), frame));
            }
            counts.delivered = self.tell(now_ns());
            lock(seen).add(counts, self.socket.overruns);
            self.socket.send(&self.out)?;
            self.out.clear();
        }
    }

    /// Hands a frame to the medium. `false` if it has no room.
    fn submit(&mut self, now_ns: u64, frame: Frame) -> bool {
        self.last += 1;
        let accepted = self.medium.submit(now_ns, self.last, &frame);
        if accepted {
            self.frames.insert(self.last, frame);
        } else {
            self.write_status(&frame, false, 0);
        }
        accepted
    }

    /// Writes what has happened on the medium. Returns the number of receptions.
    fn tell(&mut self, now_ns: u64) -> u64 {
        let mut delivered = 0;
        while let Some(event) = self.medium.poll(now_ns) {
            match event {
                Event::Delivered { id, to } => {
                    let frame = self.frames.get(&id).filter(|frame| is_deliverable(frame));
                    let Some(frame) = frame else { continue };
                    let rate = legacy_rate(&frame.rates[0]);
                    genl::write(&mut self.out, request(self.family, FRAME), |attributes| {
                        write_delivery(attributes, to, frame, rate, SIGNAL);
                    });
                    delivered += 1;
                }
                Event::Status { id, acknowledged, attempts } => {
                    if let Some(frame) = self.frames.remove(&id) {
                        self.write_status(&frame, acknowledged, attempts);
                    }
                }
            }
        }
        delivered
    }

    fn write_status(&mut self, frame: &Frame, acknowledged: bool, attempts: u8) {
        let mut rates = [Rate::NONE; MOST_RATES];
        rates[0] = Rate { tries: attempts, ..frame.rates[0] };
        genl::write(&mut self.out, request(self.family, TX_INFO_FRAME), |attributes| {
            write_status(attributes, frame, acknowledged, &rates, SIGNAL);
        });
    }
}

fn request(family: u16, command: u8) -> Request {
    Request { family, command, sequence: 0, acknowledge: false }
}

impl Seen {
    fn add(&mut self, more: Counts, overruns: u64) {
        let Counts { sent, dropped, delivered, refused, .. } = &mut self.counts;
        *sent += more.sent;
        *dropped += more.dropped;
        *delivered += more.delivered;
        *refused += more.refused;
        self.counts.overruns = overruns;
    }

    /// Keeps frames, if there is a look.
    fn keep(&mut self, frames: &[Frame]) {
        if let Some(kept) = &mut self.kept {
            let room = MOST_KEPT.saturating_sub(kept.len());
            kept.extend(frames.iter().take(room).cloned());
        }
    }
}
