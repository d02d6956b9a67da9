//! What reads others' bytes: answers of servers, lines of guests, captured frames, files of packages. The program calls
//! the same where it needs it; this module is for the fuzz targets (`fuzz/`), which give it any bytes.

use crate::guest::protocol::{Greeting, GuestRole};
use crate::host::{console, ticks};
use crate::image::{apt, elf, modules};
use crate::mechanism::layers::{are_of, layers};
use crate::services::ask::{dhcp, directory, dns};
use crate::shell::frames::{Ask, ClientFrame, GuestFrame};
use crate::testbed::mux;
use crate::wifi::hwsim::command::Frame;
use crate::wifi::hwsim::genl;
use crate::wifi::spec::{Passphrase, Security};
use crate::wifi::{nl80211, station};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stacklab_model::{Family, Mechanism};
use std::cmp::Ordering;
use std::io::Read;

/// Whether a DNS server's answer to the query of this id is the receiver's address of a family.
pub fn is_dns_answer(answer: &[u8], id: u16, wanted: Family) -> bool {
    dns::check(answer, id, wanted).is_ok()
}

/// Whether a DHCP server's answer over a family acknowledges the query of this number.
pub fn is_dhcp_answer(answer: &[u8], number: u32, family: Family) -> bool {
    match family {
        Family::Ipv4 => dhcp::check_inform(answer, number).is_ok(),
        Family::Ipv6 => dhcp::check_information(answer, number).is_ok(),
    }
}

/// How many LDAP messages a directory server's stream begins with, and how many of them tell success (of a bind or a
/// search) or are the entry of this name.
pub fn ldap_answers(mut stream: &[u8], name: &str) -> (usize, usize) {
    /// The tags of a bind's and a search's end.
    const ENDS: [u8; 2] = [0x61, 0x65];
    let (mut messages, mut good) = (0, 0);
    while let Ok(operation) = directory::read(&mut stream) {
        messages += 1;
        let succeeded = ENDS.iter().any(|tag| directory::succeeded(&operation, *tag));
        good += usize::from(succeeded || directory::is_entry(&operation, name));
    }
    (messages, good)
}

/// The lines of a channel with the numbers of their streams.
pub fn mux_lines(channel: impl Read) -> Vec<(usize, Vec<u8>)> {
    let mut lines = Vec::new();
    // Reading ends at an error as at the channel's end.
    let _ = mux::each_line(channel, |number, line| {
        lines.push((number, line.to_vec()));
        Ok(())
    });
    lines
}

/// The line as each message between a coordinator, a guest and its shell, written again: those that it is.
pub fn guest_messages(line: &[u8]) -> Vec<String> {
    fn as_one<T: DeserializeOwned + Serialize>(line: &[u8]) -> Option<String> {
        serde_json::to_string(&serde_json::from_slice::<T>(line).ok()?).ok()
    }
    let messages = [
        as_one::<GuestRole>(line),
        as_one::<Greeting>(line),
        as_one::<ClientFrame>(line),
        as_one::<GuestFrame>(line),
        as_one::<Ask>(line),
    ];
    messages.into_iter().flatten().collect()
}

/// The mechanisms and families whose packets have the headers of this captured frame.
pub fn carried_by(frame: &[u8]) -> Vec<(Mechanism, Family)> {
    let layers = layers(frame);
    let all =
        Mechanism::ALL.iter().flat_map(|mechanism| Family::ALL.iter().map(|family| (*mechanism, *family)));
    all.filter(|(mechanism, family)| are_of(*mechanism, *family, &layers)).collect()
}

/// The lengths of the frames in a datagram of simulated radios. Also reads each message as a channel.
pub fn radio_frames(datagram: &[u8]) -> Vec<usize> {
    let commands = genl::messages(datagram).flatten().filter_map(|message| match message {
        genl::Message::Command { attributes, .. } => Some(attributes),
        _ => None,
    });
    commands
        .filter_map(|attributes| {
            let _ = nl80211::read_channel(attributes);
            Some(Frame::read(attributes)?.bytes.len())
        })
        .collect()
}

/// Why a station is not associated, by what it says: an event, or a list of networks.
pub fn station_says(text: &str) -> Vec<String> {
    let events: Vec<String> = text.lines().map(str::to_owned).collect();
    let passphrase = Passphrase::try_from("sixteen bytes ok".to_owned()).ok();
    let with = |of: fn(Passphrase) -> Security| passphrase.clone().map(of);
    let securities = [Some(Security::Open), with(Security::Wpa2), with(Security::Wpa3)];
    let unfound = securities.iter().flatten().filter_map(|security| station::unfound(text, security));
    station::refusal(&events).into_iter().chain(unfound).collect()
}

/// Whether this is a line of /proc/PID/stat, of which the processor time is read.
pub fn is_process(stat: &str) -> bool {
    ticks::parse(stat).is_some()
}

/// What an error says of a guest's console.
pub fn console_says(console: &[u8]) -> String {
    console::last_lines(console)
}

/// A program without its symbols, and whether it names a loader.
pub fn program(file: &[u8]) -> (Vec<u8>, bool) {
    (elf::without_symbols(file.to_vec()), elf::needs_a_loader(file))
}

/// The modules that a kernel module needs.
pub fn needed_modules(module: &[u8]) -> Vec<String> {
    modules::depends(module)
}

/// The order of two package names by their numbers, and the mirror among apt's addresses.
pub fn packages(one: &str, other: &str) -> (Ordering, Option<String>) {
    (apt::by_numbers(one, other), apt::mirror_among(one))
}
