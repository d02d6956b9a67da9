//! Messages on their way into the kernel.

use crate::channel::Channel;
use crate::sys::Batch;
use stacklab_model::Io;
use std::io;

/// Room for the messages of one call.
pub struct Outbox<'a> {
    channel: &'a Channel,
    batch: Batch,
}

impl<'a> Outbox<'a> {
    /// Room for as many messages as the channel sends at once, each filled with the same payload.
    pub fn new(channel: &'a Channel) -> Self {
        let mut batch = Batch::new(channel.at_once, channel.message_bytes);
        for place in 0..channel.at_once {
            // Not all zeros, in case something on the path compresses.
            for (at, byte) in batch.slot(place).iter_mut().enumerate() {
                *byte = (at * 167 % 251) as u8;
            }
        }
        Outbox { channel, batch }
    }

    /// How many messages there is room for.
    pub fn count(&self) -> usize {
        self.batch.count()
    }

    /// A message's room, its payload as it was.
    pub fn slot(&mut self, place: usize) -> &mut [u8] {
        self.batch.slot(place)
    }

    /// Sends the first `count` messages whole. Gives how often the kernel had no buffer and it was tried again.
    pub fn send(&mut self, count: usize) -> io::Result<u64> {
        let Outbox { channel, batch } = self;
        // A train that would fit one packet is not cut before it is queued, and a shaper would count it as one.
        let train = channel.io == Io::Segment && count * channel.message_bytes > channel.packet_bytes;
        if train || count == 1 {
            return channel.send(batch.slots(0, count));
        }
        let (mut from, mut refused) = (0, 0);
        while from < count {
            refused += channel.until_taken(|| {
                let (taken, bytes) = batch.send(&channel.socket, from, count, channel.flags)?;
                from += taken;
                if taken > 0 && bytes < channel.message_bytes {
                    channel.send(&batch.slots(from - 1, from)[bytes..])?;
                }
                Ok(())
            })?;
        }
        Ok(refused)
    }
}
