//! DNS queries over one family.

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::Family;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The port of resolvers.
const PORT: u16 = 53;
/// How long an answer is waited for.
const LIMIT: Duration = Duration::from_secs(2);
/// The longest answer over UDP without EDNS is 512 octets.
const ROOM: usize = 4096;

/// An answer.
pub(crate) struct Found {
    /// Addresses of the asked family.
    pub addresses: Vec<IpAddr>,
    /// How long it took.
    pub took: Duration,
}

/// Asks a resolver for the addresses of a name in a family.
///
/// # Errors
/// The reason, in a sentence.
pub(crate) fn look_up(resolver: IpAddr, name: &str, family: Family) -> Result<Found, String> {
    let mut random = [0; 2];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let id = u16::from_be_bytes(random);
    let kind = if family == Family::Ipv4 { TYPE::A } else { TYPE::AAAA };
    let query = query(id, name, kind).map_err(|error| format!("`{name}` is no name: {error}"))?;
    let asked = || -> io::Result<(Vec<u8>, Duration)> {
        let to = SocketAddr::new(resolver, PORT);
        let mut socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        socket.connect(&to.into())?;
        let began = Instant::now();
        socket.send(&query)?;
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
            if length >= 3 && room[..2] == id.to_be_bytes() && room[2] & 0x80 != 0 {
                return Ok((room[..length].to_vec(), began.elapsed()));
            }
        }
    };
    let (answer, took) = asked().map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            format!("the resolver {resolver} did not answer within {} s", LIMIT.as_secs())
        }
        _ => format!("the resolver {resolver}: {error}"),
    })?;
    Ok(Found { addresses: read(&answer, family)?, took })
}

fn query(id: u16, name: &str, kind: TYPE) -> Result<Vec<u8>, simple_dns::SimpleDnsError> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(Name::new(name)?.into_owned(), kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec()
}

/// The addresses of a family in an answer; none if the name does not exist.
///
/// # Errors
/// When it is no answer of DNS, or the resolver failed.
pub fn read(answer: &[u8], family: Family) -> Result<Vec<IpAddr>, String> {
    let packet = Packet::parse(answer).map_err(|error| format!("the resolver's answer is none: {error}"))?;
    match packet.rcode() {
        RCODE::NoError | RCODE::NameError => {}
        other => return Err(format!("the resolver says {other:?}")),
    }
    let addresses = packet.answers.iter().filter_map(|record| match &record.rdata {
        RData::A(a) => Some(IpAddr::from(a.address.to_be_bytes())),
        RData::AAAA(aaaa) => Some(IpAddr::from(aaaa.address.to_be_bytes())),
        _ => None,
    });
    Ok(addresses.filter(|address| Family::of(*address) == family).collect())
}
