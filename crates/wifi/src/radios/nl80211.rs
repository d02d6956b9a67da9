//! Requests to the kernel's Wi-Fi over nl80211 (linux/nl80211.h).

use serde::{Deserialize, Serialize};
use stacklab_testbed::kernel::genl::message::{attributes, find, number, u32_at};
use stacklab_testbed::kernel::genl::socket::Socket;
use stacklab_testbed::{Attempt, Fault};
use std::fs;

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

/// Sends a request in the calling thread's namespace. Returns the attributes of each answer.
fn ask(attempted: &str, command: u8, attributes: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Fault> {
    let asked = Socket::open("nl80211").and_then(|mut socket| socket.ask(command, &attributes.concat()));
    asked.attempt(attempted)
}

/// Moves a radio and its interface from the calling thread's network namespace into that of a process.
pub(crate) fn move_radio(name: &str, pid: u32) -> Result<(), Fault> {
    let path = format!("/sys/class/ieee80211/{name}/index");
    let index = fs::read_to_string(&path).attempt(format!("read {path}"))?;
    let index = index.trim().parse().attempt(format!("read {path}"))?;
    let attempted = format!("move the radio {name} into its host's namespace");
    ask(&attempted, SET_WIPHY_NETNS, &[number(WIPHY, index), number(PID, pid)]).map(drop)
}

pub(crate) fn channel(index: u32) -> Result<Channel, Fault> {
    const ATTEMPTED: &str = "read the channel";
    let answers = ask(ATTEMPTED, GET_INTERFACE, &[number(IFINDEX, index)])?;
    let channel = answers.iter().find_map(|message| read_channel(message));
    channel.ok_or("the interface is on no channel").attempt(ATTEMPTED)
}

/// Lets a station sleep while it is idle, given its interface's index.
pub(crate) fn let_sleep(index: u32) -> Result<(), Fault> {
    let on = [number(IFINDEX, index), number(PS_STATE, 1)];
    ask("let the station sleep while it is idle", SET_POWER_SAVE, &on).map(drop)
}

/// Whether a station sleeps while it is idle (`enum nl80211_ps_state`), given its interface's index.
pub(crate) fn sleeps(index: u32) -> Result<bool, Fault> {
    const ATTEMPTED: &str = "read whether the station sleeps while it is idle";
    let answers = ask(ATTEMPTED, GET_POWER_SAVE, &[number(IFINDEX, index)])?;
    let state = answers.iter().find_map(|message| u32_at(find(message, PS_STATE)?, 0));
    Ok(state.ok_or("the kernel does not say").attempt(ATTEMPTED)? == 1)
}

/// Reads the attributes of an interface. `None` without a channel, or if they are malformed.
pub(crate) fn read_channel(message: &[u8]) -> Option<Channel> {
    attributes(message).all(|attribute| attribute.is_some()).then_some(())?;
    let of = |kind| u32_at(find(message, kind)?, 0);
    let width = *WIDTHS.get(of(CHANNEL_WIDTH)? as usize)?;
    Some(Channel { frequency: of(WIPHY_FREQ)?, width, center: of(CENTER_FREQ1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(width: u32, with_channel: bool) -> Vec<u8> {
        let channel = [number(WIPHY_FREQ, 2412), number(CHANNEL_WIDTH, width), number(CENTER_FREQ1, 2422)];
        [number(IFINDEX, 3), if with_channel { channel.concat() } else { Vec::new() }].concat()
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
