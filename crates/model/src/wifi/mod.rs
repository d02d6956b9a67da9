//! The airtime model of IEEE 802.11n: what a frame costs on a radio channel.
//!
//! It is to Wi-Fi what the header model is to a wire. Times are nanoseconds. Sections are those of IEEE 802.11-2016
//! unless said otherwise.
//!
//! * [`Radio`]: checked settings of a channel, and the time of each exchange on it
//! * [`WifiSettings`]: the settings of a network, which has such a channel
//! * [`WifiConfig`]: these settings and the security of a study's cells
//! * [`mpdu_bytes`]: the frame that carries an IP packet
//! * [`Radio::saturation`]: the closed formula of one saturated sender
//! * [`AirtimeCost`]: what a cell's messages take from station to station
//! * [`Bianchi`]: several saturated senders
//! * [`ChannelUse`]: where the time of a channel went in a trial

mod access;
mod aggregate;
mod airtime;
mod config;
mod cost;
pub(crate) mod network;
mod radio;
mod rates;

pub use access::{AccessCategory, Bianchi, Edca, Role};
pub use aggregate::{Aggregate, Aggregation, FCS_BYTES, Security, group_mpdu_bytes, mpdu_bytes};
pub use airtime::{AirInterval, Airtime, ChannelUse, NodeAirtime};
pub use config::WifiConfig;
pub use cost::{AirtimeCost, Saturation};
pub use network::{Attachment, WifiClock, WifiLevels, WifiSettings};
pub use radio::{FrameExchange, Ppdu, Radio, RadioSettings};
pub use rates::{Band, Guard, LegacyRate, Mcs, Width};
