//! Who sends when, and what becomes of it.

use crate::medium::contender::Contender;
use crate::medium::log::AirtimeLog;
use crate::medium::loss::frame_error;
use crate::medium::queue::{QueueFull, Waiting};
use crate::medium::{
    Event, Exchange, Frame, MediumSettings, NodeId, Receiver, Reception, SentFrame, Transmission,
};
use stacklab_model::SplitMix64;
use stacklab_model::wifi::{self, AccessCategory, Airtime, ChannelUse, NodeAirtime, Role};
use std::collections::VecDeque;

/// A channel on which all nodes hear each other. Times are nanoseconds from zero, when the channel is idle.
pub(crate) struct Medium {
    settings: MediumSettings,
    seed: u64,
    /// For each node one of each access category, by rising priority.
    contenders: Vec<Contender>,
    /// When the last exchange has ended, or will.
    busy_until_ns: u64,
    exchanges: u64,
    events: VecDeque<Event>,
    /// Until `busy_until_ns`.
    airtime: Airtime,
    nodes: Vec<NodeAirtime>,
    log: AirtimeLog,
}

/// The random numbers of a contender. Seed and number are mixed, because the streams of neighbouring seeds would else
/// resemble each other.
fn random(seed: u64, contender: usize) -> SplitMix64 {
    SplitMix64(SplitMix64::mix(SplitMix64::mix(seed) ^ contender as u64))
}

struct Beginning {
    contender: usize,
    frames: Vec<Waiting>,
    exchange: wifi::FrameExchange,
    receiver: Receiver,
}

impl Medium {
    pub(crate) fn new(settings: MediumSettings, seed: u64) -> Result<Self, String> {
        settings.check()?;
        Ok(Medium {
            settings,
            seed,
            contenders: Vec::new(),
            busy_until_ns: 0,
            exchanges: 0,
            events: VecDeque::new(),
            airtime: Airtime::default(),
            nodes: Vec::new(),
            log: AirtimeLog::new(0, Vec::new()),
        })
    }

    pub(crate) fn add(&mut self, role: Role) -> NodeId {
        let node = NodeId(self.nodes.len());
        let band = self.settings.radio.settings().band;
        for edca in self.settings.edca(role) {
            let random = random(self.seed, self.contenders.len());
            self.contenders.push(Contender::new(node, *edca, band, random));
        }
        self.nodes.push(NodeAirtime::default());
        node
    }

    /// Draws from another seed from now on. Backoffs that are already drawn stay. Its use is known from now on.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        self.log = AirtimeLog::new(self.busy_until_ns, self.nodes.clone());
        for (number, contender) in self.contenders.iter_mut().enumerate() {
            contender.reseed(random(seed, number));
        }
    }

    /// Takes a frame that arrives now, of a node of this medium. Frames arrive in the order of their times. What has
    /// begun is not changed by one that comes late: it waits until the channel is idle again.
    pub(crate) fn submit(&mut self, now_ns: u64, frame: Frame) -> Result<(), QueueFull> {
        // What begins at this very time does so with the frame.
        while self.access_ns().is_some_and(|at_ns| at_ns < now_ns) {
            self.begin();
        }
        let of_node = frame.transmitter.0 * AccessCategory::ALL.len();
        let contender = &mut self.contenders[of_node + frame.category as usize];
        if contender.count_frames(now_ns) >= self.settings.queue_frames {
            self.nodes[frame.transmitter.0].queue_drops += 1;
            return Err(QueueFull);
        }
        contender.arrives(now_ns, self.busy_until_ns);
        contender.queue.push(frame);
        Ok(())
    }

    /// When the next event happens, if no other frame arrives before; `None` if nothing is left to send.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.events.front().map(Event::at_ns).or_else(|| self.access_ns())
    }

    /// The next event that has happened by now.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Event> {
        if self.events.is_empty() && self.access_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.begin();
        }
        self.events.pop_front_if(|event| event.at_ns() <= now_ns)
    }

    /// Where the time went until now. An exchange that has begun counts in full. After it the channel is idle, or in
    /// contention while a frame waits. Events until then have been polled.
    pub(crate) fn airtime(&self, now_ns: u64) -> Airtime {
        let until_ns = now_ns.max(self.busy_until_ns);
        let waits_since = self.waits_since_ns().unwrap_or(until_ns).clamp(self.busy_until_ns, until_ns);
        let mut airtime = self.airtime;
        airtime.idle_ns += waits_since - self.busy_until_ns;
        airtime.contention_ns += until_ns - waits_since;
        airtime
    }

    /// The use of the channel in windows, each from and until a time, since it began or was seeded last. Events until
    /// their ends have been polled.
    pub(crate) fn find_use(&self, windows: &[[u64; 2]]) -> ChannelUse {
        self.log.find_use(windows, self.waits_since_ns())
    }

    fn waits_since_ns(&self) -> Option<u64> {
        self.contenders.iter().filter_map(Contender::waits_since_ns).min()
    }

    /// What a node had of it, and what became of its frames.
    pub(crate) fn node(&self, node: NodeId) -> NodeAirtime {
        self.nodes[node.0]
    }

    fn access_ns(&self) -> Option<u64> {
        self.contenders.iter().filter_map(|contender| contender.access_ns(self.busy_until_ns)).min()
    }

    fn begin(&mut self) {
        let Some(begin_ns) = self.access_ns() else { return };
        let before = self.airtime;
        self.airtime = self.airtime(begin_ns);
        let contention_ns = self.airtime.contention_ns - before.contention_ns;

        let beginning = self.beginning(begin_ns);
        let collides = beginning.len() > 1;
        let mut transmissions = Vec::new();
        let mut end_ns = begin_ns;
        let mut lost = Vec::new();
        for begun in &beginning {
            let is_lost = self.lost_frames(begun, collides);
            let answered = is_lost.contains(&false);
            let taken = if answered { begun.exchange.total_ns() } else { begun.exchange.failed_ns() };
            end_ns = end_ns.max(begin_ns + taken);
            lost.push(is_lost);
        }
        for (begun, lost) in beginning.into_iter().zip(lost) {
            transmissions.push(self.transmit(begun, &lost, collides, end_ns));
        }
        let mut taken = Airtime::default();
        if collides {
            taken.collision_ns = end_ns - begin_ns;
        } else {
            let ppdu = transmissions[0].ppdu;
            taken.preamble_ns = ppdu.preamble_ns;
            taken.data_ns = ppdu.data_ns;
            taken.control_ns = end_ns - begin_ns - ppdu.total_ns();
        }
        self.airtime += taken;
        self.log.note([begin_ns, end_ns], contention_ns, taken, &self.nodes);
        self.busy_until_ns = end_ns;
        let number = self.exchanges;
        self.exchanges += 1;
        self.tell(Exchange { number, begin_ns, end_ns, transmissions });
    }

    /// The PPDUs that begin at this time. All other backoffs are counted down to it.
    fn beginning(&mut self, begin_ns: u64) -> Vec<Beginning> {
        let idle_ns = self.busy_until_ns;
        let attempts = self.settings.attempts;
        let mut beginning = Vec::new();
        // From the highest category of a node, which goes before the others (internal collision).
        let mut sends = None;
        for (index, contender) in self.contenders.iter_mut().enumerate().rev() {
            if contender.access_ns(idle_ns) != Some(begin_ns) {
                contender.count_down(idle_ns, begin_ns);
            } else if sends == Some(contender.node) {
                contender.fails(attempts);
            } else if let Some((frames, exchange)) = contender.queue.take(&self.settings.radio) {
                sends = Some(contender.node);
                let receiver = frames[0].frame.receiver;
                beginning.push(Beginning { contender: index, frames, exchange, receiver });
            }
        }
        beginning.reverse();
        beginning
    }

    fn lost_frames(&mut self, begun: &Beginning, collides: bool) -> Vec<bool> {
        let contender = &mut self.contenders[begun.contender];
        let frames = begun.frames.iter().map(|waiting| waiting.frame);
        let absent = matches!(begun.receiver, Receiver::Node(node) if node.0 >= self.nodes.len());
        match self.settings.snr_db {
            _ if collides || absent => vec![true; begun.frames.len()],
            None => vec![false; begun.frames.len()],
            Some(snr_db) => frames
                .map(|Frame { receiver, kind, bytes, .. }| {
                    contender.happens(frame_error(&self.settings.radio, receiver, kind, bytes, snr_db))
                })
                .collect(),
        }
    }

    fn transmit(&mut self, begun: Beginning, lost: &[bool], collides: bool, end_ns: u64) -> Transmission {
        let Beginning { contender, frames, exchange, receiver } = begun;
        let contender = &mut self.contenders[contender];
        let node = &mut self.nodes[contender.node.0];
        let group = receiver == Receiver::Group;
        let attempts = self.settings.attempts;
        let mut again = Vec::new();
        let mut sent = Vec::new();
        for (waiting, lost) in frames.into_iter().zip(lost) {
            let attempt = waiting.attempts + 1;
            let outcome = match lost {
                false => Reception::Received,
                true if group || attempt >= attempts => Reception::GivenUp,
                true => Reception::Retried,
            };
            match outcome {
                Reception::Received => node.frames_received += 1,
                Reception::GivenUp => node.given_up += 1,
                Reception::Retried => {
                    node.retries += 1;
                    again.push(waiting.add_attempt());
                }
            }
            sent.push(SentFrame { id: waiting.frame.id, bytes: waiting.frame.bytes, attempt, outcome });
        }
        // Nobody tells the sender that a frame to a group is lost.
        let answered = lost.contains(&false);
        if answered || group {
            contender.succeeds()
        } else {
            contender.fails(attempts)
        }
        contender.sends(sent.len() - again.len(), end_ns);
        contender.queue.put_back(again);

        let ppdu = exchange.ppdu;
        let response_ns = if answered { exchange.response_ns } else { 0 };
        node.transmissions += 1;
        node.frames_sent += sent.len() as u64;
        if collides {
            node.collisions += 1;
            node.collision_ns += ppdu.total_ns();
        } else {
            let taken = if answered { exchange.total_ns() } else { exchange.failed_ns() };
            node.preamble_ns += ppdu.preamble_ns;
            node.data_ns += ppdu.data_ns;
            node.control_ns += taken - ppdu.total_ns();
            node.group_ns += if group { taken } else { 0 };
        }
        Transmission { transmitter: contender.node, receiver, ppdu, response_ns, frames: sent }
    }

    fn tell(&mut self, exchange: Exchange) {
        let mut statuses = Vec::new();
        let mut delivered = Vec::new();
        for Transmission { transmitter, receiver, ppdu, frames, .. } in &exchange.transmissions {
            let at_ns = exchange.begin_ns + ppdu.total_ns();
            for SentFrame { id, attempt, outcome, .. } in frames {
                let received = *outcome == Reception::Received;
                for to in (0..self.nodes.len()).map(NodeId) {
                    let is_receiver = match receiver {
                        Receiver::Node(node) => to == *node,
                        Receiver::Group => to != *transmitter,
                    };
                    if received && is_receiver {
                        delivered.push(Event::Delivered { at_ns, frame: *id, from: *transmitter, to });
                    }
                }
                if *outcome != Reception::Retried {
                    statuses.push(Event::Status {
                        at_ns: exchange.end_ns,
                        frame: *id,
                        transmitter: *transmitter,
                        acknowledged: received && *receiver != Receiver::Group,
                        attempts: *attempt,
                    });
                }
            }
        }
        self.events.push_back(Event::Exchange(exchange));
        self.events.extend(delivered);
        self.events.extend(statuses);
    }
}
