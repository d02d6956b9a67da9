//! What comes from guests, from servers and from the testbed's wire.

use crate::Bytes;
use stacklab_campaign::rig::read_addresses;
use stacklab_explain::fuzzing::exact_cell;
use stacklab_guests::fuzzing::{guest_messages, mux_lines, needed_modules, packages, program};
use stacklab_model::Family;
use stacklab_testbed::fuzzing::{carried_by, console_says, is_dhcp_answer, is_dns_answer, ldap_answers};
use stacklab_testbed::layers;
use stacklab_wifi::fuzzing::{radio_frames, station_says};

/// Lines of a channel that carries several streams: what is read reads back as it is written.
pub fn mux(data: &[u8]) {
    let lines = mux_lines(data);
    assert!(lines.iter().map(|(_, line)| line.len()).sum::<usize>() <= data.len());
    let mut written = Vec::new();
    for (number, line) in &lines {
        written.extend(format!("{number} ").into_bytes());
        written.extend(line);
    }
    assert_eq!(mux_lines(&written[..]), lines);
}

/// Messages between coordinator, guest and shell: what is understood reads back as it is written.
pub fn guest_message(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        for written in guest_messages(line) {
            assert!(guest_messages(written.as_bytes()).contains(&written), "{written}");
        }
    }
}

/// Answers of servers for names, addresses and directories: one that is too short for what it answers is none.
pub fn service_answer(data: &[u8]) {
    for family in Family::ALL {
        let is_name = is_dns_answer(data, 7, *family);
        assert!(!is_name || data.len() >= 29 + if *family == Family::Ipv4 { 4 } else { 16 });
        let is_address = is_dhcp_answer(data, 7, *family);
        assert!(!is_address || data.len() >= if *family == Family::Ipv4 { 241 } else { 4 });
    }
    let (messages, good) = ldap_answers(data, "user7");
    assert!(good <= messages && messages * 5 <= data.len(), "{good} of {messages}");
}

/// A frame from a testbed's wire: no more headers than it has room for, and it is carried by what has these headers.
pub fn captured_frame(data: &[u8]) {
    let layers = layers(data);
    assert!(layers.len() <= 2 + data.len() / 4, "{} headers in {} bytes", layers.len(), data.len());
    let carried = carried_by(data);
    assert!(carried.is_empty() || layers.len() >= 2, "{carried:?} by {layers:?}");
}

/// Netlink messages with frames of radios, and what a station says: a frame is no longer than its message, and a
/// reason is short and without control characters.
pub fn radio_frame(data: &[u8]) {
    let frames = radio_frames(data);
    assert!(frames.iter().all(|length| (10..=2304).contains(length)), "{frames:?}");
    assert!(frames.iter().sum::<usize>() <= data.len(), "{frames:?}");
    for reason in station_says(&String::from_utf8_lossy(data)) {
        assert!(!reason.contains(char::is_control) && reason.len() < 600, "{reason:?}");
    }
}

/// What a guest wrote to its console, and a machine's list of its addresses: an error shows few lines without control
/// characters.
pub fn console(data: &[u8]) {
    let said = console_says(data);
    assert!(said.lines().count() <= 9, "{said}");
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
    let text = String::from_utf8_lossy(data);
    assert!(read_addresses(&text).len() <= text.lines().count());
}

/// The plugin's counts and, after the first zero byte, the guest's report: each instruction is in one row, and errors
/// are short.
pub fn exact_counts(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    match exact_cell(&data[..at], data.get(at + 1..).unwrap_or_default()) {
        Ok(cell) => {
            for rows in [&cell.stages, &cell.functions] {
                let mut sums = [0_u64; 2];
                for row in rows {
                    sums[0] += row.instructions[0];
                    sums[1] += row.instructions[1];
                }
                assert_eq!(sums, cell.total);
            }
        }
        Err(reason) => assert!(!reason.is_empty() && reason.len() <= data.len() + 500, "{reason}"),
    }
}

/// Files of packages that guests boot from: a program without its symbols keeps its header and is not longer; names are
/// in order.
pub fn package_file(data: &[u8]) {
    let (bare, needs_a_loader) = program(data);
    assert!(bare.len() <= data.len() && (!needs_a_loader || data.starts_with(b"\x7fELF")));
    assert!(bare == data || bare.len() >= 64);
    let _ = needed_modules(data);
    let mut bytes = Bytes(data);
    let first = bytes.number(1) as usize;
    let one = String::from_utf8_lossy(bytes.some(first)).into_owned();
    let other = String::from_utf8_lossy(bytes.some(256));
    assert_eq!(packages(&one, &other).0, packages(&other, &one).0.reverse());
    assert!(packages(&one, &one).0.is_eq());
}
