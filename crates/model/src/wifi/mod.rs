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

mod aggregate;
mod aggregation;
mod airtime;
mod bianchi;
mod channel_use;
mod config;
mod cost;
mod edca;
mod mcs;
mod mpdu;
mod network;
mod ppdu;
mod radio;
mod rates;
mod saturation;

pub use aggregate::Aggregate;
pub use aggregation::Aggregation;
pub use airtime::{Airtime, NodeAirtime};
pub use bianchi::Bianchi;
pub use channel_use::{AirInterval, ChannelUse};
pub use config::{WifiConfig, WifiLevels};
pub use cost::AirtimeCost;
pub use edca::{AccessCategory, Edca, Role};
pub use mcs::Mcs;
pub use mpdu::{FCS_BYTES, Security, group_mpdu_bytes, mpdu_bytes};
pub use network::{Attachment, MOST_STATIONS, WifiClock, WifiSettings};
pub use ppdu::Ppdu;
pub use radio::{Exchange, Radio, RadioSettings};
pub use rates::{Band, Guard, LegacyRate, Width};
pub use saturation::Saturation;
