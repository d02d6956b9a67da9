//! A run as the wire and the resolver saw it. Times are milliseconds after the first query for the host.

pub(crate) mod observe;

pub use crate::network::wire::RefusedBy;

use serde::Serialize;
use stacklab_model::Family;
use std::net::IpAddr;

/// A run of a client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The name that it connected to, which no other run has.
    pub host: String,
    /// The queries for the name, as they came.
    pub queries: Vec<LoggedQuery>,
    /// Connections that it tried to open, as they began.
    pub attempts: Vec<ConnectionAttempt>,
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
pub struct ConnectionAttempt {
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
    /// When the repetitions entered the wire.
    pub repeated_ms: Vec<f64>,
    /// When the server's answer to the SYN reached the client; absent if none did.
    pub established_ms: Option<f64>,
    /// The refusal of the first SYN that was refused; absent if none was.
    pub refused: Option<Refusal>,
}

/// How a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Refusal {
    /// What says so.
    pub by: RefusedBy,
    /// When it reached the client.
    pub at_ms: f64,
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
    /// Its end on the clock of the run: after the first query.
    pub at_ms: f64,
}

impl Run {
    /// The first attempt of a family.
    pub(crate) fn first_attempt(&self, family: Family) -> Option<&ConnectionAttempt> {
        self.attempts.iter().find(|attempt| attempt.family == family)
    }
}

/// The time between the first attempts of both families, ms; `None` if there were not both.
pub(crate) fn attempt_delay_ms(run: &Run) -> Option<f64> {
    let six = run.first_attempt(Family::Ipv6)?.at_ms;
    let four = run.first_attempt(Family::Ipv4)?.at_ms;
    Some(((four - six).abs() * 1e3).round() / 1e3)
}

/// Runs for tests.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// A run that ended well, with attempts at these times and data over this family.
    pub(crate) fn run(attempts: &[(Family, f64)], data: Option<Family>) -> Run {
        let mut listed = Vec::new();
        for (family, at_ms) in attempts {
            let address = family.loopback();
            listed.push(ConnectionAttempt {
                family: *family,
                address,
                port: 80,
                at_ms: *at_ms,
                syns: 1,
                repeated_ms: Vec::new(),
                established_ms: None,
                refused: None,
            });
        }
        Run {
            host: "r1.eyeballs.test".to_owned(),
            queries: Vec::new(),
            attempts: listed,
            first_byte: data.map(|family| FirstByte { family, at_ms: 300.0 }),
            quic: Vec::new(),
            end: RunEnd { exit_code: Some(0), signal: None, is_killed: false, took_ms: 310.0, at_ms: 305.0 },
        }
    }

    pub(crate) fn query(record: &str, at_ms: f64, answered_ms: f64) -> LoggedQuery {
        LoggedQuery { record: record.to_owned(), at_ms, answered_ms: Some(answered_ms), over_tcp: false }
    }
}
