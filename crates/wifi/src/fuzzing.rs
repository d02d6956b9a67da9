//! Parsers of messages of radios and answers of stations: untrusted input. Public for the fuzz targets (`fuzz/`) only.

use crate::network::station;
use crate::radios::netlink::{self, Frame};
use crate::{Passphrase, Security};
use stacklab_testbed::kernel::genl::message::{Message, messages};

/// The lengths of the frames in a datagram of simulated radios. Also reads each message as a channel.
pub fn radio_frames(datagram: &[u8]) -> Vec<usize> {
    let commands = messages(datagram).flatten().filter_map(|message| match message {
        Message::Command { attributes, .. } => Some(attributes),
        _ => None,
    });
    commands
        .filter_map(|attributes| {
            let _ = netlink::read_channel(attributes);
            Some(Frame::read(attributes)?.bytes.len())
        })
        .collect()
}

/// Why a station is not associated, by what it says: an event, or a list of networks.
pub fn station_says(text: &str) -> Vec<String> {
    let events: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut securities = vec![Security::Open];
    if let Ok(passphrase) = Passphrase::try_from("sixteen bytes ok".to_owned()) {
        securities.push(Security::Wpa2(passphrase.clone()));
        securities.push(Security::Wpa3(passphrase));
    }
    let unfound = securities.iter().filter_map(|security| station::unfound(text, security));
    station::refusal(&events).into_iter().chain(unfound).collect()
}
