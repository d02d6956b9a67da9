//! The shared radio medium of IEEE 802.11n: frames and a clock in, deliveries and airtime out.
//!
//! A pure core: no I/O, no sockets, no clock. The same frames at the same times with the same seed give the
//! same events to the bit. Durations are those of [`stacklab_model::wifi`]; this module adds who sends when.
//!
//! ```text
//! submit(time, frame) -> queue -> contention -> exchange -> Exchange, Delivered, Status
//!                        (queue)  (contender)   (channel)   (event)
//! ```
//!
//! The caller keeps the time. It submits frames as they arrive, asks [`Medium::next_ns`] when something happens next,
//! and takes what has happened from [`Medium::poll`]:
//!
//! * [`Event::Exchange`] when an exchange begins: who sends which frames, until when, and what becomes of each
//! * [`Event::Delivered`] when a frame has arrived at a node
//! * [`Event::Status`] for the sender of a frame: acknowledged, or given up
//!
//! [`Medium::airtime`] says where the time went, [`Medium::used`] where that of windows went. The parts add up to the
//! time that has passed.

mod channel;
mod contender;
mod event;
mod frame;
mod log;
mod loss;
mod queue;
mod settings;

pub use channel::Medium;
pub use event::{Event, Exchange, Reception, SentFrame, Transmission};
pub use frame::{Frame, FrameId, FrameKind, NodeId, Receiver};
pub use queue::QueueFull;
pub use settings::MediumSettings;
