//! The resolver on the client's loopback interface: it knows one name at a time, answers as the scenario says, over UDP
//! and TCP and on an address of each family, and logs the queries for that name.

use crate::network::{Clock, lock};
use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};
use stacklab_model::Family;
use stacklab_testbed::{Attempt, Fault};
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const PORT: u16 = 53;
/// The longest query that is read, bytes.
const MAX_QUERY: usize = 4_096;
const TTL_SECONDS: u32 = 60;

/// What becomes of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The addresses, or that there is none.
    #[default]
    Answered,
    /// No answer.
    Lost,
    /// The answer that the server failed.
    Failed,
}

/// The records of one type, and how they are answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Records {
    pub addresses: Vec<IpAddr>,
    pub delay: Duration,
    pub outcome: Outcome,
}

/// A name with its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Zone {
    pub name: String,
    pub a: Records,
    pub aaaa: Records,
}

/// The type of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryType {
    Address(Family),
    Https,
    Other(u16),
}

impl QueryType {
    fn of(kind: QTYPE) -> Self {
        match kind {
            QTYPE::TYPE(TYPE::A) => QueryType::Address(Family::Ipv4),
            QTYPE::TYPE(TYPE::AAAA) => QueryType::Address(Family::Ipv6),
            QTYPE::TYPE(TYPE::HTTPS) => QueryType::Https,
            other => QueryType::Other(other.into()),
        }
    }
}

impl Zone {
    /// The records of a query's type; none of another type than an address.
    fn records(&self, kind: QueryType) -> Records {
        match kind {
            QueryType::Address(Family::Ipv4) => self.a.clone(),
            QueryType::Address(Family::Ipv6) => self.aaaa.clone(),
            QueryType::Https | QueryType::Other(_) => Records::default(),
        }
    }
}

/// A query for the name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    pub at: Duration,
    /// When it was answered, or will be; `None` if it is lost.
    pub answered: Option<Duration>,
    pub kind: QueryType,
    pub over_tcp: bool,
}

/// The resolver's name, and its log.
#[derive(Debug)]
pub(crate) struct Dns {
    clock: Clock,
    zone: Mutex<Zone>,
    log: Mutex<Vec<Query>>,
}

/// A reply, and how long it waits.
struct Reply {
    bytes: Vec<u8>,
    delay: Duration,
}

impl Dns {
    /// Starts the resolver in the calling thread's namespace. It ends with the process.
    pub(crate) fn start(clock: Clock) -> Result<Arc<Dns>, Fault> {
        let dns = Arc::new(Dns { clock, zone: Mutex::default(), log: Mutex::default() });
        for family in Family::ALL {
            let address = (family.loopback(), PORT);
            let step = format!("answer DNS queries on {}", address.0);
            let socket = UdpSocket::bind(address).attempt(&*step)?;
            let listener = TcpListener::bind(address).attempt(&*step)?;
            let over_udp = dns.clone();
            spawn(move || over_udp.serve_udp(&Arc::new(socket))).attempt(&*step)?;
            let over_tcp = dns.clone();
            spawn(move || over_tcp.serve_tcp(&listener)).attempt(step)?;
        }
        Ok(dns)
    }

    /// Sets the name that the resolver knows, and forgets the log.
    pub(crate) fn set(&self, zone: Zone) {
        *lock(&self.zone) = zone;
        lock(&self.log).clear();
    }

    /// The queries since the name was set.
    pub(crate) fn take_log(&self) -> Vec<Query> {
        std::mem::take(&mut lock(&self.log))
    }

    fn serve_udp(&self, socket: &Arc<UdpSocket>) {
        let mut room = [0; MAX_QUERY];
        loop {
            // A client that has gone may be reported here.
            let Ok((length, client)) = socket.recv_from(&mut room) else { continue };
            let Some(reply) = self.reply(&room[..length], false) else { continue };
            if reply.delay.is_zero() {
                let _ = socket.send_to(&reply.bytes, client);
                continue;
            }
            let socket = socket.clone();
            let _ = spawn(move || {
                thread::sleep(reply.delay);
                let _ = socket.send_to(&reply.bytes, client);
            });
        }
    }

    fn serve_tcp(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let dns = self.clone();
            let _ = spawn(move || dns.serve_stream(stream));
        }
    }

    /// Answers the queries of a connection one after the other (RFC 7766).
    fn serve_stream(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut query = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut query)?;
            let Some(reply) = self.reply(&query, true) else { continue };
            thread::sleep(reply.delay);
            let length = u16::try_from(reply.bytes.len()).map_err(io::Error::other)?;
            stream.write_all(&[&length.to_be_bytes(), reply.bytes.as_slice()].concat())?;
        }
    }

    /// The reply to a query, which is logged if it is for the name; `None` if there is none.
    fn reply(&self, query: &[u8], over_tcp: bool) -> Option<Reply> {
        let at = self.clock.now();
        let packet = Packet::parse(query).ok()?;
        let question = packet.questions.first()?;
        let kind = QueryType::of(question.qtype);
        let zone = lock(&self.zone);
        if !question.qname.to_string().eq_ignore_ascii_case(&zone.name) {
            let bytes = encode(&packet, RCODE::NameError, &[])?;
            return Some(Reply { bytes, delay: Duration::ZERO });
        }
        let records = zone.records(kind);
        let answered = (records.outcome != Outcome::Lost).then_some(at + records.delay);
        lock(&self.log).push(Query { at, answered, kind, over_tcp });
        let bytes = match records.outcome {
            Outcome::Lost => return None,
            Outcome::Failed => encode(&packet, RCODE::ServerFailure, &[])?,
            Outcome::Answered => encode(&packet, RCODE::NoError, &records.addresses)?,
        };
        Some(Reply { bytes, delay: records.delay })
    }
}

/// The reply of a resolver whose name is the one that a query asks for.
pub(crate) fn answer_any(query: &[u8]) -> Option<Vec<u8>> {
    let packet = Packet::parse(query).ok()?;
    let addresses = vec![IpAddr::V4(crate::network::SERVER_IPV4)];
    let name = packet.questions.first()?.qname.to_string();
    let zone = Zone { name, a: Records { addresses, ..Records::default() }, aaaa: Records::default() };
    let dns = Dns { clock: Clock::start(), zone: Mutex::new(zone), log: Mutex::default() };
    dns.reply(query, false).map(|reply| reply.bytes)
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("dns".to_owned()).spawn(work).map(drop)
}

fn encode(query: &Packet<'_>, code: RCODE, addresses: &[IpAddr]) -> Option<Vec<u8>> {
    let mut reply = Packet::new_reply(query.id());
    reply.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::RECURSION_DESIRED);
    *reply.rcode_mut() = code;
    let question = query.questions.first()?;
    reply.questions.push(question.clone());
    for address in addresses {
        let data = match address {
            IpAddr::V4(address) => RData::A(A { address: address.to_bits() }),
            IpAddr::V6(address) => RData::AAAA(AAAA { address: address.to_bits() }),
        };
        reply.answers.push(ResourceRecord::new(question.qname.clone(), CLASS::IN, TTL_SECONDS, data));
    }
    reply.build_bytes_vec_compressed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::{Name, Question};

    const NAME: &str = "r1.eyeballs.test";

    fn dns(aaaa: Records) -> Dns {
        let dns = Dns { clock: Clock::start(), zone: Mutex::default(), log: Mutex::default() };
        let a = Records { addresses: vec!["198.51.100.1".parse().unwrap()], ..Records::default() };
        dns.set(Zone { name: NAME.to_owned(), a, aaaa });
        dns
    }

    fn query(name: &str, kind: TYPE) -> Vec<u8> {
        let mut packet = Packet::new_query(7);
        packet.questions.push(Question::new(Name::new(name).unwrap(), kind.into(), CLASS::IN.into(), false));
        packet.build_bytes_vec().unwrap()
    }

    fn ask(dns: &Dns, name: &str, kind: TYPE) -> Option<(RCODE, usize)> {
        let reply = dns.reply(&query(name, kind), false)?;
        let packet = Packet::parse(&reply.bytes).unwrap();
        assert_eq!(packet.id(), 7);
        Some((packet.rcode(), packet.answers.len()))
    }

    #[test]
    fn answers_the_name_as_the_scenario_says() {
        let dns = dns(Records::default());
        assert_eq!(ask(&dns, "R1.eyeballs.test", TYPE::A), Some((RCODE::NoError, 1)));
        assert_eq!(ask(&dns, NAME, TYPE::AAAA), Some((RCODE::NoError, 0)));
        assert_eq!(ask(&dns, NAME, TYPE::HTTPS), Some((RCODE::NoError, 0)));
        assert_eq!(ask(&dns, "r2.eyeballs.test", TYPE::A), Some((RCODE::NameError, 0)));
        let kinds: Vec<QueryType> = dns.take_log().iter().map(|query| query.kind).collect();
        let [four, six] = [Family::Ipv4, Family::Ipv6].map(QueryType::Address);
        assert_eq!(kinds, [four, six, QueryType::Https]);
    }

    #[test]
    fn loses_fails_and_delays_one_type_alone() {
        let lost = dns(Records { outcome: Outcome::Lost, ..Records::default() });
        assert_eq!(ask(&lost, NAME, TYPE::AAAA), None);
        assert_eq!(ask(&lost, NAME, TYPE::A), Some((RCODE::NoError, 1)));
        assert_eq!(lost.take_log()[0].answered, None);
        let failed = dns(Records { outcome: Outcome::Failed, ..Records::default() });
        assert_eq!(ask(&failed, NAME, TYPE::AAAA), Some((RCODE::ServerFailure, 0)));
        let second = Duration::from_secs(1);
        let late = dns(Records { delay: second, ..Records::default() });
        assert_eq!(late.reply(&query(NAME, TYPE::AAAA), false).unwrap().delay, second);
        let logged = late.take_log()[0];
        assert_eq!(logged.answered, Some(logged.at + second));
    }
}
