//! Netlink messages of the kernel's Wi-Fi: frames of its simulated radios (mac80211_hwsim,
//! drivers/net/wireless/virtual/mac80211_hwsim.h), which are pure, and requests over nl80211 (linux/nl80211.h).

use serde::{Deserialize, Serialize};
use stacklab_testbed::kernel::genl::message::{attribute, attributes, find, number, text, u16_at, u32_at};
use stacklab_testbed::kernel::genl::socket::Socket;
use stacklab_testbed::{Attempt, Fault};
use std::fs;

pub(crate) const FAMILY: &str = "MAC80211_HWSIM";

pub(crate) const REGISTER: u8 = 1;
pub(crate) const FRAME: u8 = 2;
pub(crate) const TX_INFO_FRAME: u8 = 3;
pub(crate) const NEW_RADIO: u8 = 4;

const ADDR_RECEIVER: u16 = 1;
const ADDR_TRANSMITTER: u16 = 2;
const FRAME_BYTES: u16 = 3;
const FLAGS: u16 = 4;
const RX_RATE: u16 = 5;
const SIGNAL: u16 = 6;
const TX_INFO: u16 = 7;
const COOKIE: u16 = 8;
const CHANNELS: u16 = 9;
const DESTROY_RADIO_ON_CLOSE: u16 = 16;
const RADIO_NAME: u16 = 17;
const FREQ: u16 = 19;
const TX_INFO_FLAGS: u16 = 21;
const PERM_ADDR: u16 = 22;

/// Flags of a frame (`enum hwsim_tx_control_flags`): its transmitter does not wait for an acknowledgement, and it got
/// one.
const NO_ACK: u32 = 1 << 1;
const ACKNOWLEDGED: u32 = 1 << 2;

/// The rates that a transmitter tries in turn (IEEE80211_TX_MAX_RATES).
pub(crate) const MAX_RATES: usize = 4;
/// The longest frame that the kernel takes, bytes (IEEE80211_MAX_DATA_LEN), and the shortest: a header with three
/// addresses.
pub(crate) const MAX_FRAME_LENGTH: usize = 2304;
const MIN_FRAME_LENGTH: usize = 24;

pub(crate) type Address = [u8; 6];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TxRate {
    /// Its place in the table of legacy rates, or its MCS, as the flags say. Below zero: there is none.
    pub index: i8,
    pub tries: u8,
    /// `enum hwsim_tx_rate_flags`: bit 3 for an MCS of 802.11n, bit 5 for 40 MHz, bit 7 for the short guard interval.
    pub flags: u16,
}

impl TxRate {
    pub(crate) const NONE: TxRate = TxRate { index: -1, tries: 0, flags: 0 };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub transmitter: Address,
    /// From its frame control field on, without the frame check sequence. At least an acknowledgement's ten bytes.
    pub bytes: Vec<u8>,
    pub wants_ack: bool,
    /// The channel's centre frequency, MHz (the primary channel's).
    pub frequency: u32,
    pub rates: [TxRate; MAX_RATES],
    /// The number by which the kernel knows it.
    pub cookie: u64,
}

/// The least bytes of a frame: an acknowledgement has a frame control field, a duration and a receiver.
const MIN_BYTES: usize = 10;

impl Frame {
    /// Reads the attributes of a FRAME from the kernel. `None` if one is missing or malformed.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        attributes(message).all(|attribute| attribute.is_some()).then_some(())?;
        let bytes = find(message, FRAME_BYTES)?;
        if !(MIN_BYTES..=MAX_FRAME_LENGTH).contains(&bytes.len()) {
            return None;
        }
        let tries = find(message, TX_INFO).unwrap_or_default();
        let flags = find(message, TX_INFO_FLAGS).unwrap_or_default();
        Some(Frame {
            transmitter: find(message, ADDR_TRANSMITTER)?.try_into().ok()?,
            bytes: bytes.to_vec(),
            wants_ack: read_number(message, FLAGS)? & NO_ACK == 0,
            frequency: read_number(message, FREQ)?,
            rates: read_rates(tries, flags),
            cookie: u64::from_ne_bytes(find(message, COOKIE)?.try_into().ok()?),
        })
    }

    /// The address of the frame's receiver, which may be a group's.
    pub(crate) fn receiver(&self) -> Address {
        std::array::from_fn(|place| self.bytes.get(4 + place).copied().unwrap_or_default())
    }

    /// Whether the receivers are a group, which does not acknowledge.
    pub(crate) fn is_for_group(&self) -> bool {
        self.receiver()[0] & 1 == 1
    }
}

fn read_number(message: &[u8], kind: u16) -> Option<u32> {
    u32_at(find(message, kind)?, 0)
}

/// `struct hwsim_tx_rate` (index, tries) and `struct hwsim_tx_rate_flag` (index, flags), both packed.
fn read_rates(tries: &[u8], flags: &[u8]) -> [TxRate; MAX_RATES] {
    std::array::from_fn(|place| {
        let Some([index, tries]) = tries.get(2 * place..2 * place + 2) else { return TxRate::NONE };
        let flags = u16_at(flags, 3 * place + 1).unwrap_or_default();
        TxRate { index: index.cast_signed(), tries: *tries, flags }
    })
}

/// The attributes of NEW_RADIO: a radio that vanishes with the socket that made it. It has one channel at a time: the
/// kernel takes no medium beside radios with more.
pub(crate) fn radio(name: &str, address: Address) -> Vec<u8> {
    let attributes = [
        number(CHANNELS, 1),
        text(RADIO_NAME, name),
        attribute(PERM_ADDR, &address),
        attribute(DESTROY_RADIO_ON_CLOSE, &[]),
    ];
    attributes.concat()
}

/// The index in the table of legacy rates for a reception: generic netlink carries no MCS.
fn legacy_rate(rate: &TxRate) -> u32 {
    const MCS: u16 = 1 << 3;
    if rate.flags & MCS == 0 { u32::try_from(rate.index).unwrap_or_default() } else { 0 }
}

const SIGNAL_DBM: i32 = -50;

/// The attributes of a FRAME to the kernel: a radio receives a frame.
pub(crate) fn delivery(receiver: Address, frame: &Frame) -> Vec<u8> {
    let attributes = [
        attribute(ADDR_RECEIVER, &receiver),
        attribute(FRAME_BYTES, &frame.bytes),
        number(RX_RATE, legacy_rate(&frame.rates[0])),
        number(SIGNAL, SIGNAL_DBM.cast_unsigned()),
        number(FREQ, frame.frequency),
    ];
    attributes.concat()
}

/// Whether the kernel lets a radio receive this frame: acknowledgements and the like are too short.
pub(crate) fn is_deliverable(frame: &Frame) -> bool {
    (MIN_FRAME_LENGTH..=MAX_FRAME_LENGTH).contains(&frame.bytes.len())
}

/// The attributes of a TX_INFO_FRAME: what became of a frame. `rates` are those that were tried.
pub(crate) fn status(frame: &Frame, acknowledged: bool, rates: &[TxRate; MAX_RATES]) -> Vec<u8> {
    let flags = match (frame.wants_ack, acknowledged) {
        (false, _) => NO_ACK,
        (true, true) => ACKNOWLEDGED,
        (true, false) => 0,
    };
    let attributes = [
        attribute(ADDR_TRANSMITTER, &frame.transmitter),
        number(FLAGS, flags),
        number(SIGNAL, SIGNAL_DBM.cast_unsigned()),
        attribute(TX_INFO, &rates.map(|rate| [rate.index.cast_unsigned(), rate.tries]).concat()),
        attribute(COOKIE, &frame.cookie.to_ne_bytes()),
    ];
    attributes.concat()
}

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
    let width = *WIDTHS.get(read_number(message, CHANNEL_WIDTH)? as usize)?;
    let frequency = read_number(message, WIPHY_FREQ)?;
    let center = read_number(message, CENTER_FREQ1)?;
    Some(Channel { frequency, width, center })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: Address = [2, 0, 0, 0, 0, 1];
    const ACCESS_POINT: Address = [2, 0, 0, 0, 0, 3];
    const MCS_15: TxRate = TxRate { index: 15, tries: 3, flags: 1 << 3 | 1 << 5 | 1 << 7 };

    /// As the kernel writes a frame of a station to its access point.
    fn from_the_kernel(bytes: &[u8], flags: u32) -> Vec<u8> {
        let all = [
            attribute(ADDR_TRANSMITTER, &STATION),
            attribute(FRAME_BYTES, bytes),
            number(FLAGS, flags),
            number(FREQ, 2412),
            attribute(TX_INFO, &[15, 3, 0xff, 0, 0xff, 0, 0xff, 0]),
            attribute(TX_INFO_FLAGS, &[15, 0xa8, 0, 0xff, 0, 0, 0xff, 0, 0, 0xff, 0, 0]),
            // The kernel aligns the cookie with an attribute for padding.
            attribute(20, &[]),
            attribute(COOKIE, &7_u64.to_ne_bytes()),
        ];
        all.concat()
    }

    fn data_frame() -> Vec<u8> {
        [&[0x88, 0x41, 0, 0][..], &ACCESS_POINT, &STATION, &[2, 0, 0, 0, 0, 2], &[0; 4], b"payload"].concat()
    }

    #[test]
    fn a_frame_of_the_kernel_is_read() {
        let frame = Frame::read(&from_the_kernel(&data_frame(), 1)).unwrap();
        let expected = Frame {
            transmitter: STATION,
            bytes: data_frame(),
            wants_ack: true,
            frequency: 2412,
            rates: [MCS_15, TxRate::NONE, TxRate::NONE, TxRate::NONE],
            cookie: 7,
        };
        assert_eq!(frame, expected);
        assert_eq!(frame.receiver(), ACCESS_POINT);
        assert!(!frame.is_for_group() && is_deliverable(&frame));
        assert!(!Frame::read(&from_the_kernel(&data_frame(), NO_ACK)).unwrap().wants_ack);
        let to_all = Frame { bytes: [&[8, 0, 0, 0][..], &[0xff; 6]].concat(), ..expected };
        assert!(to_all.is_for_group() && !is_deliverable(&to_all));
    }

    #[test]
    fn a_status_says_what_became_of_the_frame() {
        let mut frame = Frame::read(&from_the_kernel(&data_frame(), 1)).unwrap();
        for (acknowledged, wants_ack, flags) in
            [(true, false, NO_ACK), (false, true, 0), (true, true, ACKNOWLEDGED)]
        {
            frame.wants_ack = wants_ack;
            let status = status(&frame, acknowledged, &frame.rates);
            assert_eq!(find(&status, FLAGS).unwrap(), flags.to_ne_bytes());
        }
        let status = status(&frame, true, &frame.rates);
        assert_eq!(find(&status, ADDR_TRANSMITTER).unwrap(), STATION);
        assert_eq!(find(&status, TX_INFO).unwrap(), [15, 3, 0xff, 0, 0xff, 0, 0xff, 0]);
        assert_eq!(find(&status, COOKIE).unwrap(), 7_u64.to_ne_bytes());
        assert_eq!(find(&status, SIGNAL).unwrap(), (-50_i32).to_ne_bytes());
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let good = from_the_kernel(&data_frame(), 1);
        for end in 0..good.len() {
            // Rates may be missing, which are before the cookie, and nothing else.
            assert_eq!(Frame::read(&good[..end]), None, "cut at {end}");
        }
        assert_eq!(Frame::read(&from_the_kernel(&[0; MIN_BYTES - 1], 1)), None, "too short for a receiver");
        assert_eq!(Frame::read(&from_the_kernel(&[0; MAX_FRAME_LENGTH + 1], 1)), None);
        for at in 0..good.len() {
            let mut wrong = good.clone();
            wrong[at] ^= 0xff;
            let _ = Frame::read(&wrong);
        }
        let short_address = [attribute(ADDR_TRANSMITTER, &[2; 5]), good[12..].to_vec()].concat();
        assert_eq!(Frame::read(&short_address), None);
    }

    fn channel_of(width: u32, with_channel: bool) -> Vec<u8> {
        let channel = [number(WIPHY_FREQ, 2412), number(CHANNEL_WIDTH, width), number(CENTER_FREQ1, 2422)];
        [number(IFINDEX, 3), if with_channel { channel.concat() } else { Vec::new() }].concat()
    }

    #[test]
    fn a_channel_is_read_with_its_width() {
        let channel = Channel { frequency: 2412, width: 40, center: 2422 };
        assert_eq!(read_channel(&channel_of(2, true)), Some(channel));
        assert_eq!(read_channel(&channel_of(0, true)).unwrap().width, 20);
        assert_eq!(read_channel(&channel_of(99, true)), None, "a width that is not known");
        assert_eq!(read_channel(&channel_of(2, false)), None);
        let whole = channel_of(2, true);
        for end in 0..whole.len() {
            let _ = read_channel(&whole[..end]);
        }
    }
}
