//! Requests to the kernel's Wi-Fi over nl80211 (linux/nl80211.h).

use crate::radios::hwsim::genl;
use crate::radios::hwsim::socket::Socket;
use serde::{Deserialize, Serialize};
use stacklab_testbed::error::{Attempt, Fault};
use std::fs;
use std::io;

const FAMILY: &str = "nl80211";

const GET_INTERFACE: u8 = 5;
const SET_WIPHY_NETNS: u8 = 49;
const SET_POWER_SAVE: u8 = 61;
const GET_POWER_SAVE: u8 = 62;

const WIPHY: u16 = 1;
const IFINDEX: u16 = 3;
const WIPHY_FREQ: u16 = 38;
const PID: u16 = 82;
const PS_STATE: u16 = 93;
const CHANNEL_WIDTH: u16 = 159;
const CENTER_FREQ1: u16 = 160;

/// `enum nl80211_chan_width`, in its order: MHz.
const WIDTHS: [u32; 6] = [20, 20, 40, 80, 160, 160];

/// The channel of an interface, as the kernel has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The primary channel's centre frequency, MHz.
    pub frequency: u32,
    /// The channel's width, MHz.
    pub width: u32,
    /// The whole channel's centre frequency, MHz.
    pub center: u32,
}

/// Moves a radio and its interface into the network namespace of a process. The radio is in the calling thread's.
///
/// # Errors
/// There is no such radio, or the kernel's error.
pub(crate) fn move_radio(name: &str, pid: u32) -> Result<(), Fault> {
    let attempted = || format!("move the radio {name} into its host's namespace");
    let path = format!("/sys/class/ieee80211/{name}/index");
    let index = fs::read_to_string(&path).attempt(format!("read {path}"))?;
    let index: u32 = index.trim().parse().map_err(io::Error::other).attempt(format!("read {path}"))?;
    let mut socket = Socket::open().attempt(attempted())?;
    let family = socket.family(FAMILY).attempt(attempted())?;
    let moved = socket.ask(family, SET_WIPHY_NETNS, |attributes| {
        attributes.number(WIPHY, index);
        attributes.number(PID, pid);
    });
    moved.map(drop).attempt(attempted())
}

/// The channel of an interface of the calling thread's namespace, given its index.
///
/// # Errors
/// The kernel's error, or it has no channel.
pub(crate) fn channel(index: u32) -> Result<Channel, Fault> {
    const ATTEMPTED: &str = "read the channel";
    let mut socket = Socket::open().attempt(ATTEMPTED)?;
    let family = socket.family(FAMILY).attempt(ATTEMPTED)?;
    let answer = socket.ask(family, GET_INTERFACE, |attributes| attributes.number(IFINDEX, index));
    let answer = answer.attempt(ATTEMPTED)?;
    let channel = answer.messages.iter().find_map(|message| read_channel(message));
    channel.ok_or_else(|| io::Error::other("the interface is on no channel")).attempt(ATTEMPTED)
}

/// Lets an interface of the calling thread's namespace sleep while it is idle, given its index.
///
/// # Errors
/// The kernel's error: it is not a station, or cannot sleep.
pub(crate) fn let_sleep(index: u32) -> Result<(), Fault> {
    const ATTEMPTED: &str = "let the station sleep while it is idle";
    let mut socket = Socket::open().attempt(ATTEMPTED)?;
    let family = socket.family(FAMILY).attempt(ATTEMPTED)?;
    let set = socket.ask(family, SET_POWER_SAVE, |attributes| {
        attributes.number(IFINDEX, index);
        attributes.number(PS_STATE, 1);
    });
    set.map(drop).attempt(ATTEMPTED)
}

/// Whether an interface of the calling thread's namespace sleeps while it is idle, given its index.
///
/// # Errors
/// The kernel's error, or it does not say.
pub(crate) fn sleeps(index: u32) -> Result<bool, Fault> {
    const ATTEMPTED: &str = "read whether the station sleeps while it is idle";
    let mut socket = Socket::open().attempt(ATTEMPTED)?;
    let family = socket.family(FAMILY).attempt(ATTEMPTED)?;
    let answer = socket.ask(family, GET_POWER_SAVE, |attributes| attributes.number(IFINDEX, index));
    let answer = answer.attempt(ATTEMPTED)?;
    let state = answer.messages.iter().find_map(|message| read_power_save(message));
    state.ok_or_else(|| io::Error::other("the kernel does not say")).attempt(ATTEMPTED)
}

/// Reads the state of power save (`enum nl80211_ps_state`). `None` if it is absent or malformed.
fn read_power_save(attributes: &[u8]) -> Option<bool> {
    let mut all = genl::attributes(attributes).map_while(Result::ok);
    all.find(|(kind, _)| *kind == PS_STATE).and_then(|(_, value)| Some(genl::number(value, 0)? == 1))
}

/// Reads the attributes of an interface. `None` without a channel, or if they are malformed.
pub(crate) fn read_channel(attributes: &[u8]) -> Option<Channel> {
    let (mut frequency, mut width, mut center) = (None, None, None);
    for attribute in genl::attributes(attributes) {
        let (kind, value) = attribute.ok()?;
        match kind {
            WIPHY_FREQ => frequency = Some(genl::number(value, 0)?),
            CHANNEL_WIDTH => width = WIDTHS.get(genl::number(value, 0)? as usize).copied(),
            CENTER_FREQ1 => center = Some(genl::number(value, 0)?),
            _ => {}
        }
    }
    Some(Channel { frequency: frequency?, width: width?, center: center? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radios::hwsim::genl::{Message, Request, messages, write};

    fn interface(width: u32, with_channel: bool) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, Request { family: 30, command: 7, sequence: 1, acknowledge: false }, |attributes| {
            attributes.number(IFINDEX, 3);
            if with_channel {
                attributes.number(WIPHY_FREQ, 2412);
                attributes.number(CHANNEL_WIDTH, width);
                attributes.number(CENTER_FREQ1, 2422);
            }
        });
        let Some(Ok(Message::Command { attributes, .. })) = messages(&out).next() else { panic!("{out:?}") };
        attributes.to_vec()
    }

    #[test]
    fn a_channel_is_read_with_its_width() {
        let channel = Channel { frequency: 2412, width: 40, center: 2422 };
        assert_eq!(read_channel(&interface(2, true)), Some(channel));
        assert_eq!(read_channel(&interface(0, true)).unwrap().width, 20);
        assert_eq!(read_channel(&interface(99, true)), None, "a width that is not known");
        assert_eq!(read_channel(&interface(2, false)), None);
        let whole = interface(2, true);
        for end in 0..whole.len() {
            let _ = read_channel(&whole[..end]);
        }
    }
}
