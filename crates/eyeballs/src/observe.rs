//! A run as the wire and the resolver saw it. Times are milliseconds after the first query for the host.

use crate::network::dns::{Query, QueryType};
use crate::network::packet::Payload;
use crate::network::wire::{End, Logged};
use crate::times::in_ms;
use serde::Serialize;
use stacklab_model::Family;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The port of HTTPS, over QUIC too.
const HTTPS: u16 = 443;

/// A run of a client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The name that it connected to, which no other run has.
    pub host: String,
    /// The queries for the name, as they came.
    pub queries: Vec<LoggedQuery>,
    /// Connections that it tried to open, as they began.
    pub attempts: Vec<Attempt>,
    /// The first data that came from a server; absent if none came.
    pub first_byte: Option<FirstByte>,
    /// The first UDP datagram to port 443 of each family, which begins QUIC.
    pub quic: Vec<FirstDatagram>,
    /// How the client ended.
    pub end: RunEnd,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoggedQuery {
    /// `A`, `AAAA`, `HTTPS`, or the number of another type.
    pub record: String,
    /// When it came.
    pub at_ms: f64,
    /// When it was answered; absent if the answer was lost.
    pub answered_ms: Option<f64>,
    /// Whether it came over TCP.
    pub over_tcp: bool,
}

/// A connection that a client tried to open.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// Its family.
    pub family: Family,
    /// The server's address.
    pub address: IpAddr,
    /// The server's port.
    pub port: u16,
    /// When its first SYN entered the wire.
    pub at_ms: f64,
    /// SYNs, with repetitions.
    pub syns: usize,
    /// When the server's answer to the SYN reached the client; absent if none did.
    pub established_ms: Option<f64>,
}

/// The first data of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstByte {
    /// The family that carried it.
    pub family: Family,
    /// When it reached the client.
    pub at_ms: f64,
}

/// The first datagram of a family to port 443.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstDatagram {
    /// Its family.
    pub family: Family,
    /// When it entered the wire.
    pub at_ms: f64,
    /// All datagrams of the family from the client.
    pub datagrams: usize,
}

/// How a client ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEnd {
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if it was not ours.
    pub signal: Option<i32>,
    /// Whether it was killed at the limit.
    pub is_killed: bool,
    /// From its start to its end.
    pub took_ms: f64,
}

impl Run {
    /// The first attempt of a family.
    pub(crate) fn first_attempt(&self, family: Family) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.family == family)
    }
}

/// Reads the logs of a run.
pub(crate) fn observe(host: &str, queries: &[Query], packets: &[Logged], end: RunEnd) -> Run {
    let first = queries.iter().map(|query| query.at).min();
    let origin = first.or_else(|| packets.first().map(|packet| packet.at)).unwrap_or_default();
    let connections = list_connections(packets, origin);
    Run {
        host: host.to_owned(),
        queries: queries.iter().map(|query| describe_query(query, origin)).collect(),
        first_byte: find_first_byte(packets, &connections, origin),
        attempts: connections.into_iter().map(|connection| connection.attempt).collect(),
        quic: list_datagrams(packets, origin),
        end,
    }
}

fn after(origin: Duration, at: Duration) -> f64 {
    in_ms(at.saturating_sub(origin))
}

fn describe_query(query: &Query, origin: Duration) -> LoggedQuery {
    LoggedQuery {
        record: match query.kind {
            QueryType::Address(family) => crate::scenario::record_type(family).to_owned(),
            QueryType::Https => "HTTPS".to_owned(),
            QueryType::Other(number) => number.to_string(),
        },
        at_ms: after(origin, query.at),
        answered_ms: query.answered.map(|answered| after(origin, answered)),
        over_tcp: query.over_tcp,
    }
}

/// An attempt, and the client's end of it.
struct Connection {
    client: SocketAddr,
    attempt: Attempt,
}

impl Connection {
    fn has(&self, packet: &Logged) -> bool {
        let server = SocketAddr::new(self.attempt.address, self.attempt.port);
        self.client == packet.client && server == packet.server
    }
}

fn list_connections(packets: &[Logged], origin: Duration) -> Vec<Connection> {
    let mut found: Vec<Connection> = Vec::new();
    for packet in packets {
        let known = found.iter_mut().find(|connection| connection.has(packet));
        let is_syn = packet.tcp_flags(End::Client).is_some_and(|flags| flags.is_syn());
        match known {
            Some(known) if is_syn => known.attempt.syns += 1,
            Some(known) => {
                let is_answer = packet.tcp_flags(End::Server).is_some_and(|flags| flags.is_syn_ack());
                if is_answer && known.attempt.established_ms.is_none() {
                    known.attempt.established_ms = packet.delivered.map(|delivered| after(origin, delivered));
                }
            }
            None if is_syn => found.push(begin_connection(packet, origin)),
            None => {}
        }
    }
    found
}

fn begin_connection(syn: &Logged, origin: Duration) -> Connection {
    let attempt = Attempt {
        family: syn.family(),
        address: syn.server.ip(),
        port: syn.server.port(),
        at_ms: after(origin, syn.at),
        syns: 1,
        established_ms: None,
    };
    Connection { client: syn.client, attempt }
}

/// The first data of a server in one of the run's connections. A server may repeat data of an earlier run, whose client
/// is gone.
fn find_first_byte(packets: &[Logged], connections: &[Connection], origin: Duration) -> Option<FirstByte> {
    let mut first: Option<(Duration, Family)> = None;
    for packet in packets {
        let Payload::Tcp { bytes: 1.., .. } = packet.payload else { continue };
        let Some(delivered) = packet.delivered.filter(|_| packet.from == End::Server) else { continue };
        let is_of_run = connections.iter().any(|connection| connection.has(packet));
        if is_of_run && first.is_none_or(|(earliest, _)| delivered < earliest) {
            first = Some((delivered, packet.family()));
        }
    }
    first.map(|(at, family)| FirstByte { family, at_ms: after(origin, at) })
}

fn list_datagrams(packets: &[Logged], origin: Duration) -> Vec<FirstDatagram> {
    let mut found: Vec<FirstDatagram> = Vec::new();
    for packet in packets {
        let is_quic = matches!(packet.payload, Payload::Udp { .. }) && packet.server.port() == HTTPS;
        if !is_quic || packet.from != End::Client {
            continue;
        }
        match found.iter_mut().find(|datagram| datagram.family == packet.family()) {
            Some(known) => known.datagrams += 1,
            None => {
                let at_ms = after(origin, packet.at);
                found.push(FirstDatagram { family: packet.family(), at_ms, datagrams: 1 });
            }
        }
    }
    found
}

/// Runs for tests.
/// The time between the first attempts of both families, ms; `None` if there were not both.
pub(crate) fn attempt_delay_ms(run: &Run) -> Option<f64> {
    let six = run.first_attempt(Family::Ipv6)?.at_ms;
    let four = run.first_attempt(Family::Ipv4)?.at_ms;
    Some(((four - six).abs() * 1e3).round() / 1e3)
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// A run that ended well, with attempts at these times and data over this family.
    pub(crate) fn run(attempts: &[(Family, f64)], data: Option<Family>) -> Run {
        let mut listed = Vec::new();
        for (family, at_ms) in attempts {
            let address = family.loopback();
            listed.push(Attempt {
                family: *family,
                address,
                port: 80,
                at_ms: *at_ms,
                syns: 1,
                established_ms: None,
            });
        }
        Run {
            host: "r1.eyeballs.test".to_owned(),
            queries: Vec::new(),
            attempts: listed,
            first_byte: data.map(|family| FirstByte { family, at_ms: 300.0 }),
            quic: Vec::new(),
            end: RunEnd { exit_code: Some(0), signal: None, is_killed: false, took_ms: 300.0 },
        }
    }

    pub(crate) fn query(record: &str, at_ms: f64, answered_ms: f64) -> LoggedQuery {
        LoggedQuery { record: record.to_owned(), at_ms, answered_ms: Some(answered_ms), over_tcp: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::packet::{Headers, sample_syn};

    fn end() -> RunEnd {
        RunEnd { exit_code: Some(0), signal: None, is_killed: false, took_ms: 1.0 }
    }

    fn syn(at_ms: u64, client: &str, server: &str) -> Logged {
        let packet = sample_syn(client.parse().unwrap(), server.parse().unwrap());
        let payload = Headers::parse(&packet).unwrap().payload;
        let at = Duration::from_millis(at_ms);
        let client = client.parse().unwrap();
        let server = server.parse().unwrap();
        Logged { at, delivered: None, from: End::Client, client, server, payload }
    }

    fn data(at_ms: u64, of: &Logged) -> Logged {
        let Payload::Tcp { flags, sequence, .. } = of.payload else { panic!("{of:?}") };
        let at = Duration::from_millis(at_ms);
        let payload = Payload::Tcp { flags, sequence, bytes: 100 };
        Logged { at, delivered: Some(at + Duration::from_millis(50)), from: End::Server, payload, ..*of }
    }

    #[test]
    fn repeated_syns_are_one_attempt() {
        let query = Query {
            at: Duration::from_millis(1_000),
            answered: None,
            kind: QueryType::Address(Family::Ipv6),
            over_tcp: false,
        };
        let six = syn(1_010, "[2001:db8:1::1]:40000", "[2001:db8:2::1]:80");
        let again = syn(2_010, "[2001:db8:1::1]:40000", "[2001:db8:2::1]:80");
        let four = syn(1_260, "192.0.2.1:40001", "198.51.100.1:80");
        let stale = syn(900, "192.0.2.1:39999", "198.51.100.1:80");
        let packets = [data(1_005, &stale), six, four, data(1_270, &four), again];
        let run = observe("a", &[query], &packets, end());
        assert_eq!(run.attempts.len(), 2);
        assert_eq!(
            (run.attempts[0].family, run.attempts[0].at_ms, run.attempts[0].syns),
            (Family::Ipv6, 10.0, 2)
        );
        assert_eq!((run.attempts[1].family, run.attempts[1].at_ms), (Family::Ipv4, 260.0));
        // When it leaves the wire; data of another run's connection are not its first byte.
        assert_eq!(run.first_byte, Some(FirstByte { family: Family::Ipv4, at_ms: 320.0 }));
        assert_eq!(attempt_delay_ms(&run), Some(250.0));
    }
}
