//! Parsers of answers of servers, captured frames and consoles: untrusted input. Public for the fuzz targets (`fuzz/`)
//! only.

use crate::host::workdir::last_lines;
use crate::kernel::processes;
use crate::layers;
use crate::mechanism::layers::are_of;
use crate::services::ask::{check_dns, check_inform, check_information, directory};
use stacklab_model::{Family, Mechanism};

/// Whether a DNS server's answer to the query of this id is the receiver's address of a family.
pub fn is_dns_answer(answer: &[u8], id: u16, wanted: Family) -> bool {
    check_dns(answer, id, wanted).is_ok()
}

/// Whether a DHCP server's answer over a family acknowledges the query of this number.
pub fn is_dhcp_answer(answer: &[u8], number: u32, family: Family) -> bool {
    match family {
        Family::Ipv4 => check_inform(answer, number).is_ok(),
        Family::Ipv6 => check_information(answer, number).is_ok(),
    }
}

/// How many LDAP messages a directory server's stream begins with, and how many of them tell success (of a bind or a
/// search) or are the entry of this name.
pub fn ldap_answers(mut stream: &[u8], name: &str) -> (usize, usize) {
    /// The tags of a bind's and a search's end.
    const ENDS: [u8; 2] = [0x61, 0x65];
    let mut messages = 0;
    let mut good = 0;
    while let Ok(operation) = directory::read(&mut stream) {
        messages += 1;
        let succeeded = ENDS.iter().any(|tag| directory::is_success(&operation, *tag));
        good += usize::from(succeeded || directory::is_entry(&operation, name));
    }
    (messages, good)
}

/// The mechanisms and families whose packets have the headers of this captured frame.
pub fn carried_by(frame: &[u8]) -> Vec<(Mechanism, Family)> {
    let layers = layers(frame);
    let all =
        Mechanism::ALL.iter().flat_map(|mechanism| Family::ALL.iter().map(|family| (*mechanism, *family)));
    all.filter(|(mechanism, family)| are_of(*mechanism, *family, &layers)).collect()
}

/// Whether this is a line of /proc/PID/stat, of which the processor time is read.
pub fn is_process(stat: &str) -> bool {
    processes::parse(stat).is_some()
}

/// What an error says of a guest's console.
pub fn console_says(console: &[u8]) -> String {
    last_lines(console)
}
