//! Runs the medium: creates radios, takes the frames that they send, and tells the kernel what becomes of each.

use crate::medium::{Event, Frame as OnAir, FrameId, Medium, MediumSettings, NodeId, Receiver};
use crate::radios::capture::CaptureWriter;
use crate::radios::header::{Sessions, category};
use crate::radios::netlink::{
    Address, FAMILY, FRAME, Frame, MAX_RATES, NEW_RADIO, REGISTER, TX_INFO_FRAME, TxRate, delivery,
    is_deliverable, radio, status,
};
use crate::{FrameCounts, Lateness, MediumReport};
use nix::sys::prctl::set_timerslack;
use nix::time::{ClockId, clock_gettime};
use stacklab_model::say;
use stacklab_model::wifi::{ChannelUse, FCS_BYTES, Role, WifiSettings};
use stacklab_testbed::kernel::genl::message::{GenlRequest, Message, write};
use stacklab_testbed::kernel::genl::socket::{Socket, wait};
use stacklab_testbed::kernel::sys::run_first;
use stacklab_testbed::{Attempt, Fault};
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

const MAX_KEPT: usize = 256;

pub(crate) type Radio = (String, Address, Role);

/// A running medium with its radios. Dropping it ends the medium, and the kernel removes the radios.
#[derive(Debug)]
pub(crate) struct Carrier {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    watch: Watch,
}

/// A look at a running medium.
#[derive(Debug, Clone)]
pub struct Watch {
    /// The monotonic clock at the medium's beginning, nanoseconds.
    start_ns: u64,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    medium: Medium,
    nodes: usize,
    frames: FrameCounts,
    lateness: Lateness,
    digest: DefaultHasher,
    kept: Option<Vec<Frame>>,
    ended: Option<String>,
}

impl Carrier {
    /// Creates radios in the calling thread's namespace, and carries their frames over a medium, of which a capture
    /// may be written. A node of the medium without a radio neither sends nor receives.
    pub(crate) fn start(
        radios: &[Option<Radio>],
        settings: &WifiSettings,
        capture: Option<&Path>,
    ) -> Result<Self, Fault> {
        let medium = medium(radios, settings).attempt("make a medium")?;
        let mut socket = Socket::open(FAMILY).attempt("simulate radios")?;
        for (name, address, _) in radios.iter().flatten() {
            socket.ask(NEW_RADIO, &radio(name, *address)).attempt(format!("create the radio {name}"))?;
        }
        socket.ask(REGISTER, &[]).attempt("be the medium between radios")?;
        let (stop, stopped) = UnixStream::pair().attempt("make a channel to the medium")?;
        let shared = Shared {
            medium,
            nodes: radios.len(),
            frames: FrameCounts::default(),
            lateness: Lateness::default(),
            digest: DefaultHasher::new(),
            kept: None,
            ended: None,
        };
        let watch = Watch { start_ns: monotonic_ns(), shared: Arc::new(Mutex::new(shared)) };
        let capture = capture.map(|path| begin_capture(path, settings)).transpose();
        let capture = capture.attempt("capture what is on air")?;
        let own = watch.clone();
        let addresses = radios.iter().map(|radio| radio.as_ref().map(|(_, address, _)| *address)).collect();
        let thread = thread::Builder::new().name("medium".to_owned()).spawn(move || {
            // Otherwise the kernel may wake this thread 50 us late, and others may read a clock first, which takes
            // virtual time.
            let _ = set_timerslack(1);
            let _ = run_first();
            let mut carry = Carry {
                socket,
                addresses,
                capture,
                sessions: Sessions::default(),
                frames: HashMap::new(),
                last: 0,
                exchange_ns: None,
                out: Vec::new(),
            };
            if let Err(error) = carry.run(&stopped, &own) {
                say!("stacklab: the medium between radios has ended: {error}");
                own.lock().ended = Some(error.to_string());
            }
        });
        let thread = thread.attempt("start the medium between radios")?;
        Ok(Carrier { stop: Some(stop), thread: Some(thread), watch })
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
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

type FileCapture = CaptureWriter<BufWriter<File>>;

fn begin_capture(path: &Path, settings: &WifiSettings) -> io::Result<FileCapture> {
    let radio = settings.radio().map_err(io::Error::other)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let start_ns = u64::try_from(now.as_nanos()).unwrap_or_default();
    CaptureWriter::begin(BufWriter::new(File::create(path)?), radio, settings.frequency(), start_ns)
}

fn medium(radios: &[Option<Radio>], settings: &WifiSettings) -> Result<Medium, String> {
    let of_channel = MediumSettings { snr_db: settings.snr_db, ..MediumSettings::new(settings.radio()?) };
    let mut medium = Medium::new(of_channel, settings.seed)?;
    for radio in radios {
        medium.add(radio.as_ref().map_or(Role::Station, |(_, _, role)| *role));
    }
    Ok(medium)
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every POSIX system has the monotonic clock");
    u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX)
}

impl Watch {
    /// What has been counted so far.
    pub fn report(&self) -> MediumReport {
        let shared = self.lock();
        let elapsed_ns = self.now_ns();
        let nodes = (0..shared.nodes).map(|node| shared.medium.node(NodeId(node))).collect();
        MediumReport {
            elapsed_ns,
            airtime: shared.medium.airtime(elapsed_ns),
            nodes,
            digest: shared.digest.finish(),
            frames: shared.frames,
            lateness: shared.lateness,
        }
    }

    /// The use of the channel in windows, nanoseconds of the monotonic clock.
    pub fn find_use(&self, windows: &[[u64; 2]]) -> ChannelUse {
        let mut of_medium = Vec::new();
        for ends in windows {
            of_medium.push(ends.map(|ns| ns.saturating_sub(self.start_ns)));
        }
        self.lock().medium.find_use(&of_medium)
    }

    pub(crate) fn reseed(&self, seed: u64) {
        self.lock().medium.reseed(seed);
    }

    pub(crate) fn keep(&self) {
        self.lock().kept = Some(Vec::new());
    }

    /// The frames that radios have sent since [`Watch::keep`], some hundred at most.
    pub(crate) fn take_kept_frames(&self) -> Vec<Frame> {
        self.lock().kept.take().unwrap_or_default()
    }

    pub(crate) fn find_end_reason(&self) -> Option<String> {
        self.lock().ended.clone()
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl Shared {
    fn keep(&mut self, frames: &[Frame]) {
        if let Some(kept) = &mut self.kept {
            let room = MAX_KEPT.saturating_sub(kept.len());
            kept.extend(frames.iter().take(room).cloned());
        }
    }
}

struct Carry {
    socket: Socket,
    /// The nodes' addresses; `None` of one without a radio.
    addresses: Vec<Option<Address>>,
    capture: Option<FileCapture>,
    sessions: Sessions,
    frames: HashMap<FrameId, Frame>,
    last: u64,
    /// The length of the exchange in progress, until one of its frames was received.
    exchange_ns: Option<u64>,
    out: Vec<u8>,
}

impl Carry {
    /// Carries frames until the other end of `stopped` is closed.
    fn run(&mut self, stopped: &UnixStream, watch: &Watch) -> io::Result<()> {
        loop {
            let next_ns = watch.lock().medium.next_ns();
            let left = next_ns.map(|next| Duration::from_nanos(next.saturating_sub(watch.now_ns())));
            let [readable, stop] = wait(&[self.socket.as_fd(), stopped.as_fd()], left)?;
            if stop {
                return Ok(());
            }
            let mut refused = 0;
            let mut taken = Vec::new();
            if readable {
                self.socket.receive(|message| match message {
                    // A frame that is malformed never gets a status, and the kernel drops it.
                    Message::Command { command: FRAME, attributes, .. } => {
                        taken.extend(Frame::read(attributes));
                    }
                    Message::Answer { code: ..0, .. } => refused += 1,
                    _ => {}
                })?;
            }
            let mut shared = watch.lock();
            shared.keep(&taken);
            let counts = &mut shared.frames;
            counts.sent += taken.len() as u64;
            counts.refused += refused;
            counts.overruns = self.socket.overruns;
            // One reading for all: each takes virtual time, and what is due would be late.
            let now_ns = watch.now_ns();
            for frame in taken {
                self.submit(now_ns, frame, &mut shared);
            }
            self.tell(watch.now_ns(), &mut shared)?;
            drop(shared);
            if let Some(capture) = &mut self.capture {
                capture.flush()?;
            }
            self.socket.send(&self.out)?;
            self.out.clear();
        }
    }

    fn submit(&mut self, now_ns: u64, mut frame: Frame, shared: &mut Shared) {
        let nodes = self.addresses.len();
        let place = |address| self.addresses.iter().position(|own| *own == Some(address)).unwrap_or(nodes);
        let transmitter = place(frame.transmitter);
        let receiver = match frame.is_for_group() {
            true => Receiver::Group,
            // One that is not there does not answer.
            false => Receiver::Node(NodeId(place(frame.receiver()))),
        };
        let id = FrameId(self.last);
        let submitted = (transmitter < nodes).then(|| {
            let kind = self.sessions.kind(&frame);
            let bytes = frame.bytes.len() as u32 + FCS_BYTES;
            let category = category(&frame);
            let transmitter = NodeId(transmitter);
            shared.medium.submit(now_ns, OnAir { id, transmitter, receiver, bytes, kind, category })
        });
        match submitted {
            Some(Ok(())) => {
                self.last += 1;
                self.sessions.number(&mut frame);
                self.frames.insert(id, frame);
            }
            _ => {
                shared.frames.dropped += 1;
                self.sessions.note_dropped_frame(&frame);
                self.write_status(&frame, false, 0);
            }
        }
    }

    fn tell(&mut self, now_ns: u64, shared: &mut Shared) -> io::Result<()> {
        while let Some(event) = shared.medium.poll(now_ns) {
            event.hash(&mut shared.digest);
            match event {
                Event::Exchange(exchange) => {
                    if let Some(capture) = &mut self.capture {
                        capture.write(&exchange, &self.frames)?;
                    }
                    self.exchange_ns = Some(exchange.end_ns - exchange.begin_ns);
                }
                Event::Delivered { at_ns, frame, to, .. } => {
                    let Some(to) = self.addresses[to.0] else { continue };
                    let Some(frame) = self.frames.get(&frame).filter(|frame| is_deliverable(frame)) else {
                        continue;
                    };
                    if let Some(exchange_ns) = self.exchange_ns.take() {
                        shared.lateness.note(exchange_ns, now_ns - at_ns);
                    }
                    shared.digest.write(&frame.bytes);
                    shared.frames.delivered += 1;
                    self.sessions.note(frame);
                    write(&mut self.out, request(self.socket.family, FRAME), &delivery(to, frame));
                }
                Event::Status { frame, acknowledged, attempts, .. } => {
                    if let Some(frame) = self.frames.remove(&frame) {
                        self.write_status(&frame, acknowledged, u8::try_from(attempts).unwrap_or(u8::MAX));
                    }
                }
            }
        }
        Ok(())
    }

    fn write_status(&mut self, frame: &Frame, acknowledged: bool, attempts: u8) {
        let mut rates = [TxRate::NONE; MAX_RATES];
        rates[0] = TxRate { tries: attempts, ..frame.rates[0] };
        let request = request(self.socket.family, TX_INFO_FRAME);
        write(&mut self.out, request, &status(frame, acknowledged, &rates));
    }
}

fn request(family: u16, command: u8) -> GenlRequest {
    GenlRequest { family, command, sequence: 0, acknowledge: false }
}
