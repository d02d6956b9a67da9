//! Settings of a radio channel that IEEE 802.11n does not have.

use crate::wifi::rates::LegacyRate;
use std::fmt;

/// A setting, or a combination of settings, that is not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WifiError {
    /// There is no such MCS with one or two streams.
    UnknownMcs(u8),
    /// MCS 32 is a duplicate of 6 Mbit/s in both halves of 40 MHz. It is not supported, and does not exist in 20 MHz.
    DuplicateMcs,
    /// The rate belongs to IEEE 802.11b, which the 5 GHz band lacks.
    DsssOn5Ghz(LegacyRate),
    /// There is no basic rate.
    NoBasicRate,
    /// An A-MPDU has at least 1 and at most 64 frames (the window of a compressed BlockAck).
    AggregateFrames(u32),
    /// An A-MPDU has at most 65,535 bytes (the length field of HT-SIG).
    AggregateBytes(u32),
    /// A PPDU takes at most 5484 us (aPPDUMaxTime, section 19.4.4), and more than nothing.
    AggregateTime(u64),
    /// The start of frames is at most 16 us apart (minimum MPDU start spacing, section 9.4.2.56.3).
    Density(u64),
    /// A contention window is a power of two less one, at most 32,767, and the least is not above the largest.
    ContentionWindow {
        /// CWmin.
        least: u32,
        /// CWmax.
        largest: u32,
    },
    /// AIFSN is 1 (access points only) to 15.
    Aifsn(u32),
    /// The channel is not one of the 2.4 GHz band that every country has.
    Channel(u8),
    /// A DTIM period has at least one beacon.
    NoDtim,
    /// The MTU is below IPv6's, or the frame is longer than any.
    Mtu(u32),
    /// A network has at most eight other stations.
    Stations(u8),
    /// The signal to noise ratio is not a number.
    Snr,
    /// A queue holds at least one frame.
    EmptyQueue,
    /// A frame is sent at least once.
    NoAttempt,
}

impl fmt::Display for WifiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WifiError::UnknownMcs(mcs) => write!(f, "there is no MCS {mcs}: expected 0 to 15"),
            WifiError::DuplicateMcs => {
                write!(f, "MCS 32 exists at 40 MHz only and is not supported: expected 0 to 15")
            }
            WifiError::DsssOn5Ghz(rate) => {
                write!(f, "{rate} is a rate of 802.11b, which 5 GHz lacks: expected 6 Mbit/s or more")
            }
            WifiError::NoBasicRate => write!(f, "there is no basic rate: expected at least one"),
            WifiError::AggregateFrames(frames) => {
                write!(f, "an A-MPDU of {frames} frames is not possible: expected 1 to 64")
            }
            WifiError::AggregateBytes(bytes) => {
                write!(f, "an A-MPDU of {bytes} bytes is not possible: expected 1 to 65535")
            }
            WifiError::AggregateTime(ns) => {
                write!(f, "an A-MPDU of {} us is not possible: expected up to 5484 us", *ns as f64 / 1e3)
            }
            WifiError::Density(ns) => {
                write!(f, "frames {} us apart are not possible: expected up to 16 us", *ns as f64 / 1e3)
            }
            WifiError::ContentionWindow { least, largest } => write!(
                f,
                "contention windows from {least} to {largest} are not possible: expected powers of two less one"
            ),
            WifiError::Aifsn(aifsn) => {
                write!(f, "an AIFSN of {aifsn} is not possible: expected 2 to 15, or 1 at an access point")
            }
            WifiError::Channel(channel) => {
                write!(f, "there is no channel {channel} in 2.4 GHz everywhere: expected 1 to 11")
            }
            WifiError::NoDtim => write!(f, "a DTIM period of 0 is not possible: expected 1 to 255"),
            WifiError::Mtu(mtu) => {
                write!(f, "an MTU of {mtu} bytes is not possible: expected 1280 to 2254")
            }
            WifiError::Stations(stations) => {
                write!(f, "{stations} other stations are not possible: expected up to 8")
            }
            WifiError::Snr => write!(f, "the signal to noise ratio is not a finite number of dB"),
            WifiError::EmptyQueue => write!(f, "a queue of 0 frames is not possible: expected at least 1"),
            WifiError::NoAttempt => {
                write!(f, "0 transmissions of a frame are not possible: expected at least 1")
            }
        }
    }
}

impl std::error::Error for WifiError {}
