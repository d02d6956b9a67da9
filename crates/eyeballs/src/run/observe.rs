//! Reads a run from the logs of wire and resolver.

use crate::network::dns::Query;
use crate::network::packet::{Flags, Payload};
use crate::network::wire::{End, Logged};
use crate::network::zone::QueryType;
use crate::run::{ConnectionAttempt, FirstByte, FirstDatagram, LoggedQuery, Refusal, RefusedBy, Run, RunEnd};
use crate::times::in_ms;
use stacklab_model::Family;
use std::net::SocketAddr;
use std::time::Duration;

/// The port of HTTPS, over QUIC too.
const HTTPS: u16 = 443;

/// What a run left in the logs.
pub(crate) struct Logs<'a> {
    pub queries: &'a [Query],
    pub packets: &'a [Logged],
    /// When the client was started.
    pub began: Duration,
}

/// How a client ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exit {
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if it was not ours.
    pub signal: Option<i32>,
    /// Whether it was killed at the limit.
    pub is_killed: bool,
    /// From its start to its end.
    pub took: Duration,
}

/// Reads the logs of a client's run.
pub(crate) fn observe(host: &str, logs: &Logs<'_>, ended: &Exit) -> Run {
    let Logs { queries, packets, began } = *logs;
    let first = queries.iter().map(|query| query.at).min();
    let origin = first.or_else(|| packets.first().map(|packet| packet.at)).unwrap_or(began);
    let connections = list_connections(packets, origin);
    Run {
        host: host.to_owned(),
        queries: queries.iter().map(|query| describe_query(query, origin)).collect(),
        first_byte: find_first_byte(packets, &connections, origin),
        attempts: connections.into_iter().map(|connection| connection.attempt).collect(),
        quic: list_datagrams(packets, origin),
        end: describe_end(ended, began, origin),
    }
}

fn describe_end(ended: &Exit, began: Duration, origin: Duration) -> RunEnd {
    let Exit { exit_code, signal, is_killed, took } = *ended;
    RunEnd { exit_code, signal, is_killed, took_ms: in_ms(took), at_ms: after(origin, began + took) }
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
struct ObservedConnection {
    client: SocketAddr,
    attempt: ConnectionAttempt,
}

impl ObservedConnection {
    fn has(&self, packet: &Logged) -> bool {
        let server = SocketAddr::new(self.attempt.address, self.attempt.port);
        self.client == packet.client && server == packet.server
    }
}

fn list_connections(packets: &[Logged], origin: Duration) -> Vec<ObservedConnection> {
    let mut found: Vec<ObservedConnection> = Vec::new();
    for packet in packets {
        let known = found.iter_mut().find(|connection| connection.has(packet));
        let is_syn = packet.tcp_flags(End::Client).is_some_and(Flags::is_syn);
        match known {
            Some(known) => known.attempt.add(packet, is_syn, origin),
            None if is_syn => found.push(begin_connection(packet, origin)),
            None => {}
        }
    }
    found
}

fn begin_connection(syn: &Logged, origin: Duration) -> ObservedConnection {
    let attempt = ConnectionAttempt {
        family: syn.family(),
        address: syn.server.ip(),
        port: syn.server.port(),
        at_ms: after(origin, syn.at),
        syns: 1,
        repeated_ms: Vec::new(),
        established_ms: None,
        refused: find_refusal(syn, origin),
    };
    ObservedConnection { client: syn.client, attempt }
}

impl ConnectionAttempt {
    /// Adds a packet that follows the first SYN.
    fn add(&mut self, packet: &Logged, is_syn: bool, origin: Duration) {
        if is_syn {
            self.syns += 1;
            self.repeated_ms.push(after(origin, packet.at));
        }
        if self.established_ms.is_none() {
            self.refused = self.refused.or(find_refusal(packet, origin));
        }
        let is_answer = packet.tcp_flags(End::Server).is_some_and(Flags::is_syn_ack);
        if is_answer && self.established_ms.is_none() {
            self.established_ms = packet.delivered.map(|delivered| after(origin, delivered));
        }
    }
}

/// The refusal that answers a packet of the client, or that a packet of the server is.
fn find_refusal(packet: &Logged, origin: Duration) -> Option<Refusal> {
    if let Some(by) = packet.refused {
        return Some(Refusal { by, at_ms: after(origin, packet.at) });
    }
    let is_reset = packet.tcp_flags(End::Server).is_some_and(Flags::is_reset);
    let delivered = packet.delivered.filter(|_| is_reset)?;
    Some(Refusal { by: RefusedBy::Reset, at_ms: after(origin, delivered) })
}

/// The first data of a server in one of the run's connections. A server may repeat data of an earlier run, whose client
/// is gone.
fn find_first_byte(
    packets: &[Logged],
    connections: &[ObservedConnection],
    origin: Duration,
) -> Option<FirstByte> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::packet::{Headers, sample_syn};
    use crate::run::attempt_delay_ms;

    fn make_exit() -> Exit {
        Exit { exit_code: Some(0), signal: None, is_killed: false, took: Duration::from_millis(330) }
    }

    fn read(queries: &[Query], packets: &[Logged]) -> Run {
        observe("a", &Logs { queries, packets, began: Duration::from_millis(995) }, &make_exit())
    }

    fn syn(at_ms: u64, client: &str, server: &str) -> Logged {
        let packet = sample_syn(client.parse().unwrap(), server.parse().unwrap());
        let payload = Headers::parse(&packet).unwrap().payload;
        let at = Duration::from_millis(at_ms);
        let client = client.parse().unwrap();
        let server = server.parse().unwrap();
        Logged { at, delivered: None, refused: None, from: End::Client, client, server, payload }
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
        let run = read(&[query], &packets);
        assert_eq!(run.attempts.len(), 2);
        assert_eq!(
            (run.attempts[0].family, run.attempts[0].at_ms, run.attempts[0].syns),
            (Family::Ipv6, 10.0, 2)
        );
        assert_eq!(run.attempts[0].repeated_ms, [1_010.0]);
        assert_eq!((run.attempts[1].family, run.attempts[1].at_ms), (Family::Ipv4, 260.0));
        assert_eq!((run.end.took_ms, run.end.at_ms), (330.0, 325.0));
        // When it leaves the wire; data of another run's connection are not its first byte.
        assert_eq!(run.first_byte, Some(FirstByte { family: Family::Ipv4, at_ms: 320.0 }));
        assert_eq!(attempt_delay_ms(&run), Some(250.0));
    }

    #[test]
    fn an_attempt_has_the_refusal_of_its_syn() {
        let refused = syn(1_000, "[2001:db8:1::1]:40000", "[2001:db8:2::1]:80");
        let refused = Logged { refused: Some(RefusedBy::Icmp), ..refused };
        let closed = syn(1_002, "192.0.2.1:40001", "198.51.100.1:81");
        let Payload::Tcp { sequence, .. } = closed.payload else { panic!("{closed:?}") };
        let payload = Payload::Tcp { flags: Flags::make_refusal(), sequence, bytes: 0 };
        let delivered = Some(closed.at + Duration::from_millis(3));
        let reset = Logged { delivered, from: End::Server, payload, ..closed };
        let run = read(&[], &[refused, closed, reset]);
        assert_eq!(run.attempts[0].refused, Some(Refusal { by: RefusedBy::Icmp, at_ms: 0.0 }));
        assert_eq!(run.attempts[1].refused, Some(Refusal { by: RefusedBy::Reset, at_ms: 5.0 }));
        assert_eq!(run.attempts[1].established_ms, None);
    }

    #[test]
    fn a_silent_client_has_its_end_after_its_start() {
        let run = read(&[], &[]);
        assert_eq!((run.end.took_ms, run.end.at_ms), (330.0, 330.0));
    }
}
