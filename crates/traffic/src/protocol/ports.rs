//! What a coordinator asks of hosts between which many connections are made: sockets of the sender, each with another
//! port, and sockets of the receiver.

use serde::{Deserialize, Serialize};
use stacklab_model::{Length, ScopedAddr, SenderPriority};
use std::net::IpAddr;

/// UDP sockets to open, which the host keeps until it is asked to close them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsToOpen {
    /// The host's own address.
    pub address: ScopedAddr,
    /// The number of sockets.
    pub count: u32,
    /// Messages for which each must have room, and their bytes.
    pub messages: u32,
    /// Bytes of a message.
    pub message_bytes: u32,
}

/// Messages to send, one on each pair of an own socket and a port of the receiver: message `n` leaves from socket
/// `n` modulo their number, and the ports take turns more slowly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessagesToPorts {
    /// Id of the request that opened the sockets.
    pub opened: u64,
    /// Distinguishes these messages from others.
    pub token: u32,
    /// The receiver's address, and its ports.
    pub to: IpAddr,
    /// See `to`.
    pub ports: Vec<u16>,
    /// Messages per second.
    pub per_second: f64,
    /// When it ends.
    pub length: Length,
    /// The priority of the sending thread.
    pub priority: SenderPriority,
}

/// What has been sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentToPorts {
    /// Messages.
    pub messages: u64,
    /// When the first one was sent, nanoseconds of the host's monotonic clock.
    pub first_ns: u64,
    /// When the last one had been sent.
    pub last_ns: u64,
    /// For how long the thread waited for a processor, if the kernel counts that.
    pub waited_ns: Option<u64>,
    /// Whether it had the realtime priority.
    pub at_realtime_priority: bool,
}

/// Messages that wait at the sockets, to be read until no more come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MessagesToTake {
    /// Id of the request that opened the sockets.
    pub opened: u64,
    /// That of the messages.
    pub token: u32,
    /// How many have been sent, how many per second, and when the last one was.
    pub sent: u64,
    /// More than the highest number of a message: answers have the numbers of what they answer.
    pub most: u64,
    /// See `sent`.
    pub per_second: f64,
    /// See `sent`.
    pub sent_until_ns: u64,
    /// Message `n` belongs to socket `(n / stride) % sockets`. It is 1 at the host that sent the first messages, and
    /// the number of that host's sockets at the other one.
    pub stride: u32,
}

/// What has been read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenFromPorts {
    /// First copies of messages, at the socket of each.
    pub messages: u64,
    /// Those of them that arrived after the last one was sent and the least delay.
    pub waiting: u64,
    /// When the first one and the last one arrived.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
    /// Messages that the sockets had no room for.
    pub drops: u64,
}

/// Answers to send: one to the source of each message that was last read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AnswersToSend {
    /// Id of the request that opened the sockets.
    pub opened: u64,
    /// That of the answers.
    pub token: u32,
    /// Answers per second.
    pub per_second: f64,
}
