//! The resolver on the client's loopback interface: it knows one name at a time, answers as the scenario says, over UDP
//! and TCP and on an address of each family, and logs the queries for that name.

use crate::network::zone::{QueryOutcome, QueryType, Records, Zone, ZoneAnswer};
use crate::network::{Clock, lock};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Packet, PacketFlag, RCODE, ResourceRecord};
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
struct DelayedReply {
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
    fn reply(&self, query: &[u8], over_tcp: bool) -> Option<DelayedReply> {
        let at = self.clock.now();
        let packet = Packet::parse(query).ok()?;
        let question = packet.questions.first()?;
        let kind = QueryType::of(question.qtype);
        let zone = lock(&self.zone);
        if !question.qname.to_string().eq_ignore_ascii_case(&zone.name) {
            let bytes = encode(&packet, RCODE::NameError, Vec::new())?;
            return Some(DelayedReply { bytes, delay: Duration::ZERO });
        }
        let ZoneAnswer { outcome, delay, data } = zone.answer(kind);
        let answered = if outcome == QueryOutcome::Lost { None } else { Some(at + delay) };
        lock(&self.log).push(Query { at, answered, kind, over_tcp });
        let bytes = match outcome {
            QueryOutcome::Lost => return None,
            QueryOutcome::Failed => encode(&packet, RCODE::ServerFailure, Vec::new())?,
            QueryOutcome::Answered => encode(&packet, RCODE::NoError, data)?,
        };
        Some(DelayedReply { bytes, delay })
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

fn encode(query: &Packet<'_>, code: RCODE, data: Vec<RData<'static>>) -> Option<Vec<u8>> {
    let mut reply = Packet::new_reply(query.id());
    reply.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::RECURSION_DESIRED);
    *reply.rcode_mut() = code;
    let question = query.questions.first()?;
    reply.questions.push(question.clone());
    for data in data {
        reply.answers.push(ResourceRecord::new(question.qname.clone(), CLASS::IN, TTL_SECONDS, data));
    }
    reply.build_bytes_vec_compressed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::rdata::SVCParam;
    use simple_dns::{Name, Question, TYPE};

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
        assert_eq!(ask(&dns, NAME, TYPE::HTTPS), Some((RCODE::NoError, 1)));
        assert_eq!(ask(&dns, NAME, TYPE::MX), Some((RCODE::NoError, 0)));
        assert_eq!(ask(&dns, "r2.eyeballs.test", TYPE::A), Some((RCODE::NameError, 0)));
        let kinds: Vec<QueryType> = dns.take_log().iter().map(|query| query.kind).collect();
        let [four, six] = [Family::Ipv4, Family::Ipv6].map(QueryType::Address);
        assert_eq!(kinds, [four, six, QueryType::Https, QueryType::Other(15)]);
    }

    #[test]
    fn loses_fails_and_delays_one_type_alone() {
        let lost = dns(Records { outcome: QueryOutcome::Lost, ..Records::default() });
        assert_eq!(ask(&lost, NAME, TYPE::AAAA), None);
        assert_eq!(ask(&lost, NAME, TYPE::A), Some((RCODE::NoError, 1)));
        assert_eq!(lost.take_log()[0].answered, None);
        let failed = dns(Records { outcome: QueryOutcome::Failed, ..Records::default() });
        assert_eq!(ask(&failed, NAME, TYPE::AAAA), Some((RCODE::ServerFailure, 0)));
        let second = Duration::from_secs(1);
        let late = dns(Records { delay: second, ..Records::default() });
        assert_eq!(late.reply(&query(NAME, TYPE::AAAA), false).unwrap().delay, second);
        let logged = late.take_log()[0];
        assert_eq!(logged.answered, Some(logged.at + second));
    }

    /// Two addresses of IPv6, as a client reads them from a record.
    const IPV6: [&str; 2] = ["2001:db8:2::66", "2001:db8:2::1"];

    fn make_ipv6() -> Records {
        Records { addresses: IPV6.map(|text| text.parse().unwrap()).to_vec(), ..Records::default() }
    }

    /// The parameters of the HTTPS record, by their keys; `None` without a record.
    fn read_parameters(dns: &Dns) -> Option<Vec<SVCParam<'static>>> {
        let reply = dns.reply(&query(NAME, TYPE::HTTPS), false).unwrap();
        let packet = Packet::parse(&reply.bytes).unwrap();
        assert_eq!((packet.rcode(), reply.delay), (RCODE::NoError, Duration::ZERO));
        let RData::HTTPS(binding) = &packet.answers.first()?.rdata else { panic!("{packet:?}") };
        assert_eq!((binding.priority, binding.target.to_string()), (1, String::new()));
        Some(binding.iter_params().map(|parameter| parameter.clone().into_owned()).collect())
    }

    #[test]
    fn an_https_record_has_protocols_and_hints() {
        let alpn = SVCParam::Alpn(vec!["http/1.1".try_into().unwrap()]);
        let ipv4 = SVCParam::Ipv4Hint(vec![0xc633_6401]);
        let addresses = [0x2001_0db8_0002 << 80 | 0x66, 0x2001_0db8_0002 << 80 | 1];
        let ipv6 = SVCParam::Ipv6Hint(addresses.to_vec());
        assert_eq!(read_parameters(&dns(make_ipv6())), Some(vec![alpn.clone(), ipv4.clone(), ipv6]));
        assert_eq!(read_parameters(&dns(Records::default())), Some(vec![alpn, ipv4]));
    }

    #[test]
    fn no_hint_has_an_address_that_is_kept_back() {
        let late = dns(Records { delay: Duration::from_secs(1), ..make_ipv6() });
        let keys: Vec<u16> = read_parameters(&late).unwrap().iter().map(SVCParam::key_code).collect();
        assert_eq!(keys, [1, 4]);
        for outcome in [QueryOutcome::Lost, QueryOutcome::Failed] {
            assert_eq!(read_parameters(&dns(Records { outcome, ..make_ipv6() })), None);
        }
    }
}
