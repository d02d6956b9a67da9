//! Wi-Fi: the shared medium, simulated radios, and a network of access point and stations.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | [`medium`] | the shared radio medium of IEEE 802.11n: who sends when, and what arrives. Pure |
//! | [`radios`] | the kernel's simulated radios on that medium, and captures of what is on air |
//! | `network` | access point, stations and their daemons, built inside a guest |
//! | [`fuzzing`] | parsers of untrusted input, for fuzz targets |

pub mod fuzzing;
pub mod medium;
mod network;
pub mod radios;

pub use network::build::WifiNetwork;
use network::control::Control;
use network::daemon::Daemon;
pub use network::daemon::{FOLDER, VERSIONS};
use network::spec::SSID;
pub use network::spec::{
    Association, BadPassphrase, CarriedFrame, MediumCheck, Passphrase, Security, WifiSpec, WifiState,
};
pub use radios::carrier::Watch;
pub use radios::nl80211::Channel;
pub use radios::report::{FrameCounts, Lateness, MediumReport};
