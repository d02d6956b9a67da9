//! Reading messages of connections from the sockets of a host.

use crate::engine::many_ports::{Arrived, MAX_SOCKETS};
use crate::protocol::ports::MessagesToTake;
use crate::stats::waiting::WaitingCounter;
use crate::sys::{self, Batch, Nanos, Socket};
use std::io;

/// Messages that one call reads.
const AT_ONCE: usize = 64;

/// Reads the messages of one sending, each once.
pub(super) struct Reader {
    batch: Batch,
    token: u32,
    stride: usize,
    seen: Vec<bool>,
    pub(super) waiting: WaitingCounter,
    /// By how much the kernel's stamps are ahead of the monotonic clock.
    ahead_ns: i64,
    pub(super) least_delay_ns: Nanos,
    pub(super) first_ns: Option<Nanos>,
    pub(super) last_ns: Nanos,
}

impl Reader {
    pub(super) fn new(asked: &MessagesToTake, message_bytes: usize) -> Self {
        let mut batch = Batch::new(AT_ONCE, message_bytes);
        batch.keep_addresses();
        let most = u64::from(MAX_SOCKETS) * u64::from(MAX_SOCKETS);
        let per_second = asked.per_second.max(1.0);
        let took_ns = (asked.sent.min(most) as f64 / per_second * 1e9) as Nanos;
        Reader {
            batch,
            token: asked.token,
            stride: asked.stride.max(1) as usize,
            seen: vec![false; asked.most.min(most) as usize],
            waiting: WaitingCounter::new(per_second, took_ns),
            ahead_ns: sys::realtime_offset().offset_ns,
            least_delay_ns: Nanos::MAX,
            first_ns: None,
            last_ns: 0,
        }
    }

    /// Reads what waits at a socket. `sockets` is the number of all of them.
    pub(super) fn read_socket(
        &mut self,
        place: usize,
        socket: &Socket,
        sockets: usize,
        arrived: &mut Vec<Arrived>,
    ) -> io::Result<()> {
        loop {
            let count = match self.batch.receive(socket, false) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            for slot in 0..count {
                let (Some((sequence, sent_ns)), Some(from)) =
                    (read_header(self.batch.slot(slot), self.token), self.batch.source(slot))
                else {
                    continue;
                };
                let is_at_home = sequence as usize / self.stride % sockets == place;
                let Some(seen) = self.seen.get_mut(sequence as usize).filter(|_| is_at_home) else {
                    continue;
                };
                if std::mem::replace(seen, true) {
                    continue;
                }
                self.note_arrival(slot, sent_ns);
                arrived.push(Arrived { socket: place, sequence, from });
            }
            if count < AT_ONCE {
                return Ok(());
            }
        }
    }

    fn note_arrival(&mut self, slot: usize, sent_ns: Nanos) {
        let stamp = self.batch.recv_meta(slot).software_rx_ns;
        let arrived_ns = match stamp {
            Some(stamp) => stamp.saturating_add_signed(-self.ahead_ns),
            None => sys::now_ns(),
        };
        self.waiting.record(sent_ns, arrived_ns);
        self.least_delay_ns = self.least_delay_ns.min(arrived_ns.saturating_sub(sent_ns));
        self.first_ns = Some(self.first_ns.map_or(arrived_ns, |first_ns| first_ns.min(arrived_ns)));
        self.last_ns = self.last_ns.max(arrived_ns);
    }
}

/// Sequence number and send time of a message with this token.
fn read_header(message: &[u8], token: u32) -> Option<(u32, Nanos)> {
    let (seen, rest) = message.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<4>()?;
    let sent_ns = rest.first_chunk::<8>()?;
    (u32::from_be_bytes(*seen) == token)
        .then(|| (u32::from_be_bytes(*sequence), Nanos::from_be_bytes(*sent_ns)))
}
