//! STAMP, the Simple Two-way Active Measurement Protocol (RFC 8762), with session identifiers and TLVs (RFC 8972).
//! TWAMP-Light reflectors (RFC 5357, appendix I) answer its unauthenticated packets.
//!
//! | time | taken by |
//! |---|---|
//! | T1 | the session-sender, when it sends |
//! | T2 | the session-reflector, when the packet arrives |
//! | T3 | the session-reflector, when it answers |
//! | T4 | the session-sender, when the answer arrives; in no packet |

mod clients;
mod figures;
mod key;
mod packet;
mod reflector;
pub mod report;
mod session;
mod sessions;
mod time;
mod tlv;

pub use key::StampKey;
pub use packet::{Codec, ReflectorPacket, SENDER_TTL, SenderPacket};
pub use reflector::{Arrived, PendingAnswer, Reflector, Reflectors, key, place};
pub use session::{PeerClock, SessionFigures, StampSession};

use session::{LossByDirection, Ways};
pub use time::{ErrorEstimate, TimeFormat};
pub use tlv::{ClassOfService, Extensions, TimestampInfo};

/// The port of a session-reflector (RFC 8762, section 4).
pub const PORT: u16 = 862;
