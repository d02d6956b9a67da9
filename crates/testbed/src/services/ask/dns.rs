//! DNS over UDP (RFC 1035): queries for the server's IPv4 and IPv6 address in turn.

use crate::link::addressing::address;
use crate::services::ask::{NAME, TIMEOUT, expect};
use stacklab_model::{Family, Role};
use std::io;
use std::net::{IpAddr, UdpSocket};

const PORT: u16 = 53;
/// The flags of a query with recursion desired. An answer has the first bit set, and no error in the last four bits.
const QUERY: u16 = 0x0100;
const ANSWER: u16 = 0x8000;
const ERROR: u16 = 0x000f;
const INTERNET: u16 = 1;
const HEADER: usize = 12;

pub(crate) fn ask(family: Family, number: u32) -> io::Result<()> {
    let wanted = if number.is_multiple_of(2) { Family::Ipv4 } else { Family::Ipv6 };
    let id = number as u16;
    let socket = UdpSocket::bind((address(family, Role::Sender).0, 0))?;
    socket.connect((address(family, Role::Receiver).0, PORT))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.send(&query(id, wanted))?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    check(&answer[..length], id, wanted)
}

fn query(id: u16, wanted: Family) -> Vec<u8> {
    let counts = [1, 0, 0, 0];
    let mut bytes: Vec<u8> = [id, QUERY].into_iter().chain(counts).flat_map(u16::to_be_bytes).collect();
    for label in NAME.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes.extend([kind(wanted), INTERNET].into_iter().flat_map(u16::to_be_bytes));
    bytes
}

fn kind(family: Family) -> u16 {
    match family {
        Family::Ipv4 => 1,
        Family::Ipv6 => 28,
    }
}

/// Checks that the answer repeats the question, and that its only record is the receiver's address.
pub(crate) fn check(answer: &[u8], id: u16, wanted: Family) -> io::Result<()> {
    let word = |place: usize| Some(u16::from_be_bytes([*answer.get(place)?, *answer.get(place + 1)?]));
    expect(word(0) == Some(id), "an answer to another query")?;
    let flags = word(2).unwrap_or(0);
    expect(flags & ANSWER != 0 && flags & ERROR == 0, "the server refuses the query")?;
    expect(word(6) == Some(1), "the answer does not have exactly one address")?;
    let found = match address(wanted, Role::Receiver).0 {
        IpAddr::V4(address) => answer.ends_with(&address.octets()),
        IpAddr::V6(address) => answer.ends_with(&address.octets()),
    };
    expect(found, "another address than the server's")?;
    let query = query(id, wanted);
    let question = HEADER..query.len();
    expect(answer.get(question.clone()) == Some(&query[question]), "an answer to another question")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_as_rfc_1035_has_it() {
        let expected =
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06server\x04test\x00\x00\x1c\x00\x01";
        assert_eq!(query(0x1234, Family::Ipv6), expected);
    }

    #[test]
    fn only_the_right_answer_counts() {
        let mut answer = query(7, Family::Ipv4);
        (answer[2], answer[7]) = (0x85, 1);
        answer.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\xc6\x12\x00\x02");
        check(&answer, 7, Family::Ipv4).unwrap();
        let why = |answer: &[u8], id, wanted| check(answer, id, wanted).unwrap_err().to_string();
        assert!(why(&answer, 8, Family::Ipv4).contains("another query"));
        assert!(why(&answer, 7, Family::Ipv6).contains("another address"));
        assert!(why(&query(7, Family::Ipv4), 7, Family::Ipv4).contains("refuses"));
        assert!(why(&[], 7, Family::Ipv4).contains("another query"));
        // It ends with the address, and asks nothing.
        let bare = [&answer[..HEADER], &answer[answer.len() - 4..]].concat();
        assert!(why(&bare, 7, Family::Ipv4).contains("another question"));
        answer[3] = 3;
        assert!(why(&answer, 7, Family::Ipv4).contains("refuses"));
    }
}
