//! DNS queries over one family.

use crate::probe::pace::Timed;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::Family;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PORT: u16 = 53;
/// How long an answer is waited for.
const LIMIT: Duration = Duration::from_secs(2);
/// The longest answer over UDP without EDNS is 512 octets.
const ROOM: usize = 4096;
/// Queries for an address that is needed.
const TRIES: u32 = 3;
/// Bits of the third octet.
const RESPONSE: u8 = 0x80;
const TRUNCATED: u8 = 0x02;

pub(crate) struct DnsAnswer {
    pub addresses: Vec<IpAddr>,
    pub took: Duration,
}

/// Asks a resolver for the addresses of a name in a family: over UDP, and over TCP what was truncated (RFC 7766).
pub(crate) fn look_up(resolver: IpAddr, name: &str, family: Family) -> Result<DnsAnswer, String> {
    let mut random = [0; 2];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let id = u16::from_be_bytes(random);
    let kind = if family == Family::Ipv4 { TYPE::A } else { TYPE::AAAA };
    let query = query(id, name, kind).map_err(|error| format!("`{name}` is not a host name: {error}"))?;
    let began = Instant::now();
    let mut answer = over_udp(resolver, id, &query)
        .map_err(|error| format!("the resolver {resolver} {}", describe_error(&error)))?;
    if answer[2] & TRUNCATED != 0 {
        answer = over_tcp(resolver, &query).map_err(|error| {
            format!(
                "the resolver {resolver} sent a truncated response, and over TCP {}",
                describe_error(&error)
            )
        })?;
    }
    let took = began.elapsed();
    let addresses = read(&answer, family).map_err(|reason| format!("the resolver {resolver} {reason}"))?;
    Ok(DnsAnswer { addresses, took })
}

/// As [`look_up`], for an address that is needed: an unanswered query is repeated.
pub(crate) fn insist(resolver: IpAddr, name: &str, family: Family) -> Result<DnsAnswer, String> {
    let mut found = look_up(resolver, name, family);
    for _ in 1..TRIES {
        if found.is_ok() {
            break;
        }
        found = look_up(resolver, name, family);
    }
    found
}

fn describe_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("did not answer within {} s", LIMIT.as_secs())
        }
        _ => format!("cannot be reached: {error}"),
    }
}

fn over_udp(resolver: IpAddr, id: u16, query: &[u8]) -> io::Result<Vec<u8>> {
    let to = SocketAddr::new(resolver, PORT);
    let mut socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    socket.connect(&to.into())?;
    let began = Instant::now();
    socket.send(query)?;
    let mut room = vec![0; ROOM];
    loop {
        let left = LIMIT.checked_sub(began.elapsed()).filter(|left| !left.is_zero());
        let left = left.ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut))?;
        socket.set_read_timeout(Some(left))?;
        let length = match socket.read(&mut room) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            read => read?,
        };
        // Whatever else comes is none of this query's.
        if length >= 3 && room[..2] == id.to_be_bytes() && room[2] & RESPONSE != 0 {
            return Ok(room[..length].to_vec());
        }
    }
}

fn over_tcp(resolver: IpAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect_timeout(&SocketAddr::new(resolver, PORT), LIMIT)?;
    let mut stream = Timed::new(stream, LIMIT);
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

fn query(id: u16, name: &str, kind: TYPE) -> Result<Vec<u8>, simple_dns::SimpleDnsError> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(Name::new(name)?.into_owned(), kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec()
}

/// A response code as IANA's registry and other tools call it.
fn name_code(code: RCODE) -> String {
    match code {
        RCODE::FormatError => "FORMERR".to_owned(),
        RCODE::ServerFailure => "SERVFAIL".to_owned(),
        RCODE::NotImplemented => "NOTIMP".to_owned(),
        RCODE::Reserved => "with a code that is not assigned".to_owned(),
        // The others have the registry's names here, too.
        other => format!("{other:?}").to_uppercase(),
    }
}

/// The addresses of a family in an answer; none if the name does not exist.
pub fn read(answer: &[u8], family: Family) -> Result<Vec<IpAddr>, String> {
    let packet = Packet::parse(answer).map_err(|error| format!("sent a malformed DNS response: {error}"))?;
    match packet.rcode() {
        RCODE::NoError | RCODE::NameError => {}
        other => return Err(format!("answers {}", name_code(other))),
    }
    let addresses = packet.answers.iter().filter_map(|record| match &record.rdata {
        RData::A(a) => Some(IpAddr::from(a.address.to_be_bytes())),
        RData::AAAA(aaaa) => Some(IpAddr::from(aaaa.address.to_be_bytes())),
        _ => None,
    });
    Ok(addresses.filter(|address| Family::of(*address) == family).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_codes_have_the_registrys_names() {
        for (code, name) in [(1, "FORMERR"), (2, "SERVFAIL"), (4, "NOTIMP"), (5, "REFUSED"), (9, "NOTAUTH")] {
            assert_eq!(name_code(RCODE::from(code)), name);
        }
        let mut answer = query(7, "a.test", TYPE::AAAA).unwrap();
        answer[2] |= RESPONSE;
        answer[3] |= 2;
        assert_eq!(read(&answer, Family::Ipv6).unwrap_err(), "answers SERVFAIL");
    }
}
