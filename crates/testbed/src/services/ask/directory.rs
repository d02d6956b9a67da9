//! LDAP over TCP (RFC 4511). Each query uses its own connection: an anonymous bind, a search for an entry by its
//! name, and an unbind.

use crate::addressing::address;
use crate::services::ask::{SUFFIX, TIMEOUT, entry, expect, strange};
use stacklab_model::{Family, Role};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

const PORT: u16 = 389;
/// The maximum length of a message that is read, bytes.
const MAX_LENGTH: usize = 1 << 16;

/// BER tags and LDAP tags.
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const ENUMERATED: u8 = 0x0a;
const SEQUENCE: u8 = 0x30;
const BIND: u8 = 0x60;
const BOUND: u8 = 0x61;
const UNBIND: u8 = 0x42;
const SEARCH: u8 = 0x63;
const FOUND: u8 = 0x64;
const DONE: u8 = 0x65;
/// In a bind: simple authentication. In a filter: equality match.
const SIMPLE: u8 = 0x80;
const EQUALS: u8 = 0xa3;

pub(crate) fn ask(family: Family, number: u32) -> io::Result<()> {
    let server = SocketAddr::new(address(family, Role::Receiver).0, PORT);
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(&bind())?;
    expect(is_success(&read(&mut stream)?, BOUND), "the server refuses an anonymous bind")?;
    let name = entry(number);
    stream.write_all(&search(&name))?;
    let found = read(&mut stream)?;
    expect(is_entry(&found, &name), "the entry was not found")?;
    expect(is_success(&read(&mut stream)?, DONE), "the search did not succeed")?;
    stream.write_all(&message(3, &element(UNBIND, &[])))
}

fn bind() -> Vec<u8> {
    let version = element(INTEGER, &[3]);
    message(1, &element(BIND, &[version, element(OCTETS, &[]), element(SIMPLE, &[])].concat()))
}

fn search(name: &str) -> Vec<u8> {
    let everywhere = element(ENUMERATED, &[2]);
    let aliases_as_they_are = element(ENUMERATED, &[0]);
    let unlimited = element(INTEGER, &[0]);
    let with_values = element(BOOLEAN, &[0]);
    let filter = element(EQUALS, &[element(OCTETS, b"cn"), element(OCTETS, name.as_bytes())].concat());
    let parts = [
        element(OCTETS, SUFFIX.as_bytes()),
        everywhere,
        aliases_as_they_are,
        unlimited.clone(),
        unlimited,
        with_values,
        filter,
        element(SEQUENCE, &[]),
    ];
    message(2, &element(SEARCH, &parts.concat()))
}

fn message(number: u8, operation: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[&element(INTEGER, &[number])[..], operation].concat())
}

/// A BER element of less than 128 bytes. All sent elements are this short.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 128, "longer elements are written otherwise");
    [&[tag, content.len() as u8][..], content].concat()
}

/// The next message's operation, with its tag and length.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    expect(head[0] == SEQUENCE, "this is not LDAP")?;
    let mut length = usize::from(head[1]);
    if length >= 0x80 {
        // RFC 4511 section 5.1 allows the definite form only.
        expect(length > 0x80, "a message of indefinite length")?;
        let mut bytes = vec![0; length - 0x80];
        expect(bytes.len() <= 4, "a message of more than 4 GiB")?;
        stream.read_exact(&mut bytes)?;
        length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    }
    expect(length <= MAX_LENGTH, "a message that is too long")?;
    let mut content = vec![0; length];
    stream.read_exact(&mut content)?;
    // An integer has one byte or more (X.690, section 8.3.1).
    let number = split(&content, INTEGER).filter(|(number, _)| !number.is_empty());
    let (_, rest) = number.ok_or_else(|| strange("a message without a number"))?;
    Ok(rest.to_vec())
}

/// Splits the first element off: returns its content, if it has this tag, and the remaining bytes.
fn split(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [found, first, rest @ ..] = bytes else { return None };
    let (length, rest) = match usize::from(*first) {
        short @ ..0x80 => (short, rest),
        0x80 => return None,
        long => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80).filter(|(bytes, _)| bytes.len() <= 4)?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
    };
    (*found == tag).then(|| rest.split_at_checked(length))?
}

pub(crate) fn is_success(operation: &[u8], tag: u8) -> bool {
    let code = split(operation, tag).and_then(|(content, _)| split(content, ENUMERATED));
    code.is_some_and(|(code, _)| code == [0])
}

pub(crate) fn is_entry(operation: &[u8], name: &str) -> bool {
    let found = split(operation, FOUND).and_then(|(content, _)| split(content, OCTETS));
    found.is_some_and(|(found, _)| found == format!("cn={name},{SUFFIX}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_as_rfc_4511_has_them() {
        assert_eq!(bind(), b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00");
        let search = search("user7");
        let expected = b"\x30\x30\x02\x01\x02\x63\x2b\x04\x0bcn=stacklab\x0a\x01\x02\x0a\x01\x00\x02\x01\x00\x02\x01\x00\
            \x01\x01\x00\xa3\x0b\x04\x02cn\x04\x05user7\x30\x00";
        assert_eq!(search, expected);
    }

    #[test]
    fn an_indefinite_length_is_refused() {
        assert!(read(&mut &b"\x30\x80\x02\x01\x01\x00\x00"[..]).is_err());
        assert!(read(&mut &b"\x30\x02\x02\x80"[..]).is_err());
        assert_eq!(split(b"\x02\x80", INTEGER), None);
    }

    #[test]
    fn answers_are_read_however_their_length_is_written() {
        let bound = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
        assert!(is_success(&read(&mut &bound[..]).unwrap(), BOUND));
        let long =
            b"\x30\x84\x00\x00\x00\x10\x02\x01\x01\x61\x84\x00\x00\x00\x07\x0a\x01\x31\x04\x00\x04\x00";
        let operation = read(&mut &long[..]).unwrap();
        assert!(split(&operation, BOUND).is_some() && !is_success(&operation, BOUND));
        for wrong in [
            &b"HTTP/1.1"[..],
            b"\x30\x89",
            b"\x30\x83\xff\xff\xff",
            b"\x30\x05\x02\x01",
            b"",
            b"\x30\x00",
            b"\x30\x02\x02\x00",
        ] {
            assert!(read(&mut &wrong[..]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_the_entry_that_was_asked_for_counts() {
        let dn = element(OCTETS, b"cn=user7,cn=stacklab");
        let found = element(FOUND, &[dn, element(SEQUENCE, &[])].concat());
        assert!(is_entry(&found, "user7"));
        assert!(
            !is_entry(&found, "user8")
                && !is_entry(&element(DONE, &[]), "user7")
                && !is_entry(&[0x64, 9], "user7")
        );
    }
}
