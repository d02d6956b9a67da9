//! The probes of a round: each for both families, one right after the other in random order.

pub(crate) mod body;
mod boundary;
pub(crate) mod certificates;
mod choose;
pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod pace;
mod tls_errors;

use crate::metric::PathMetric;
use crate::probe::boundary::{Reply, boundary};
use crate::probe::http::HttpRequest;
use crate::probe::pace::{Interrupted, Pace};
use crate::target::Target;
use rustls::ClientConfig;
use stacklab_model::{Family, ScopedAddr};
use stacklab_traffic::host::ping::{Echo, Ping, PingOptions};
use stacklab_traffic::host::zone::route_to;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long an echo's answer is waited for.
const WAIT: Duration = Duration::from_secs(1);
const TTL: u8 = 64;
/// Octets of an ordinary echo's packet, the same in both families.
const ECHO_BYTES: u32 = 84;
/// The shortest path MTU that is looked for: hosts of IPv4 take as much (RFC 791).
const MIN_MTU: u32 = 576;
/// Ordinary echoes before a host counts as one that answers none.
const FIRST_TRIES: u32 = 5;
const TOO_LOSSY: &str = "too many ICMP echoes are lost";

/// Figures, or why there are none.
pub(crate) type RoundFigures = BTreeMap<(PathMetric, Family), Result<f64, String>>;

pub(crate) struct Prober<'a> {
    pub pace: Pace,
    pub tls: Result<Arc<ClientConfig>, String>,
    pub resolvers: &'a [IpAddr],
    pub request_bytes: u64,
}

impl Prober<'_> {
    pub(crate) fn round(&mut self, target: &Target) -> Result<RoundFigures, Interrupted> {
        let mut figures = RoundFigures::new();
        for kind in [Prober::echo, Prober::request, Prober::query] {
            for family in in_random_order() {
                kind(self, target, family, &mut figures)?;
            }
        }
        Ok(figures)
    }

    /// What is found once: path MTU and hops.
    pub(crate) fn facts(&mut self, target: &Target) -> Result<RoundFigures, Interrupted> {
        let mut figures = RoundFigures::new();
        for &family in Family::ALL {
            let mut ping = target
                .address(family)
                .map_err(|none| none.reason().to_owned())
                .and_then(|to| Ok((Ping::open(to, random()).map_err(|error| error.to_string())?, to)));
            let (mtu, hops) = match &mut ping {
                Ok((ping, to)) => (figure(self.path_mtu(ping, to))?, figure(self.hops(ping))?),
                Err(reason) => (Err(reason.clone()), Err(reason.clone())),
            };
            figures.insert((PathMetric::PathMtu, family), mtu);
            figures.insert((PathMetric::Hops, family), hops);
        }
        Ok(figures)
    }

    fn echo(
        &mut self,
        target: &Target,
        family: Family,
        figures: &mut RoundFigures,
    ) -> Result<(), Interrupted> {
        let figure = match target.address(family) {
            Err(none) => Err(none.reason().to_owned()),
            Ok(to) => {
                self.pace.probe()?;
                let options = PingOptions { packet_bytes: ECHO_BYTES, ttl: TTL, wait: WAIT };
                let ping = Ping::open(to, random()).map_err(|error| error.to_string());
                match ping.and_then(|mut ping| ping.echo(&options).map_err(|error| error.to_string())) {
                    Err(error) => Err(error),
                    Ok(Echo::Answered(ns)) => Ok(ns as f64 / 1e6),
                    Ok(Echo::Silent) => Err("no answer within 1 s".to_owned()),
                    Ok(Echo::Unreachable) => Err("the host cannot be reached".to_owned()),
                    Ok(Echo::Expired) => Err(format!("the TTL of {TTL} expired on the way")),
                    Ok(Echo::TooLong) => {
                        Err(format!("a packet of {ECHO_BYTES} bytes is too long for the path"))
                    }
                }
            }
        };
        figures.insert((PathMetric::IcmpRtt, family), figure);
        Ok(())
    }

    fn request(
        &mut self,
        target: &Target,
        family: Family,
        figures: &mut RoundFigures,
    ) -> Result<(), Interrupted> {
        let most_bytes = self.request_bytes.min(self.pace.bytes_left);
        let fetched = match target.address(family) {
            Err(none) => http::Fetched::of_failure(none.reason()),
            Ok(_) if most_bytes == 0 => http::Fetched::of_failure("no request: the byte limit is reached"),
            Ok(to) => {
                self.pace.probe()?;
                http::fetch(&HttpRequest {
                    to,
                    port: target.port,
                    host: &target.host,
                    path: &target.path,
                    tls: target.tls.then_some(&self.tls),
                    most_bytes,
                })
            }
        };
        self.pace.bytes_left = self.pace.bytes_left.saturating_sub(fetched.bytes);
        let failed = fetched.failed.clone();
        let mbits = fetched.bytes_per_second.map(|rate| rate * 8.0 / 1e6);
        let short = "the answer is too short for a rate: name a longer one, as in NAME/PATH";
        for (metric, figure, otherwise) in [
            (PathMetric::TcpConnect, to_ms(fetched.connect), ""),
            (PathMetric::TlsHandshake, to_ms(fetched.tls), "without TLS"),
            (PathMetric::FirstByte, to_ms(fetched.first_byte), ""),
            (PathMetric::Goodput, mbits, short),
        ] {
            // A transfer that broke off has no rate, and its first byte came.
            let kept = figure.filter(|_| metric != PathMetric::Goodput || failed.is_none());
            let figure = match (kept, &failed) {
                (Some(figure), _) => Ok(figure),
                (None, Some(reason)) => Err(reason.clone()),
                (None, None) => Err(otherwise.to_owned()),
            };
            figures.insert((metric, family), figure);
        }
        Ok(())
    }

    fn query(
        &mut self,
        target: &Target,
        family: Family,
        figures: &mut RoundFigures,
    ) -> Result<(), Interrupted> {
        let resolver = self.resolvers.iter().find(|resolver| Family::of(**resolver) == family);
        let figure = match resolver {
            _ if target.host.parse::<IpAddr>().is_ok() => Err("an address needs no query".to_owned()),
            None => Err(format!("no known resolver has an {family} address (--resolver)")),
            Some(resolver) => {
                self.pace.probe()?;
                let found = dns::look_up(*resolver, &target.host, Family::Ipv6);
                found.map(|found| found.took.as_secs_f64() * 1e3)
            }
        };
        figures.insert((PathMetric::Dns, family), figure);
        Ok(())
    }

    fn tell(
        &mut self,
        ping: &mut Ping,
        packet_bytes: u32,
        ttl: u8,
        refusal: Echo,
    ) -> Result<Reply, Unanswered> {
        self.pace.probe()?;
        match ping.echo(&PingOptions { packet_bytes, ttl, wait: WAIT }) {
            Ok(Echo::Answered(_)) => Ok(Reply::Yes),
            Ok(echo) if echo == refusal => Ok(Reply::No),
            Ok(_) => Ok(Reply::Nothing),
            Err(error) => Err(because(error)),
        }
    }

    fn answers(&mut self, ping: &mut Ping) -> Result<(), Unanswered> {
        for _ in 0..FIRST_TRIES {
            if self.tell(ping, ECHO_BYTES, TTL, Echo::Expired)? == Reply::Yes {
                return Ok(());
            }
        }
        Err(because("no ICMP echo is answered"))
    }

    fn path_mtu(&mut self, ping: &mut Ping, to: &ScopedAddr) -> Result<u32, Unanswered> {
        let own = route_to(to, None).map_err(because)?.mtu.min(65_535);
        self.answers(ping)?;
        if self.tell(ping, own, TTL, Echo::TooLong)? == Reply::Yes {
            return Ok(own);
        }
        // A packet of more than the own MTU is refused here.
        let found = boundary(MIN_MTU.min(own), own + 1, choose_mtu, |bytes| {
            self.tell(ping, bytes, TTL, Echo::TooLong)
        })?;
        found.ok_or_else(|| because(TOO_LOSSY))
    }

    fn hops(&mut self, ping: &mut Ping) -> Result<u32, Unanswered> {
        self.answers(ping)?;
        let found = boundary(TTL.into(), 0, halve, |ttl| {
            let ttl = u8::try_from(ttl).unwrap_or(TTL);
            self.tell(ping, ECHO_BYTES, ttl, Echo::Expired)
        })?;
        found.ok_or_else(|| because(TOO_LOSSY))
    }
}

fn to_ms(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64() * 1e3)
}

/// The next packet's bytes between two bounds: minima and tunnels are met most often.
fn choose_mtu(low: u32, high: u32) -> u32 {
    let usual = [1280, 1480, 1492, 1420, 1400].into_iter().find(|next| (low + 1..high).contains(next));
    usual.unwrap_or(halve(high, low))
}

fn halve(high: u32, low: u32) -> u32 {
    low + (high - low) / 2
}

/// Why a path has no figure of its echoes.
enum Unanswered {
    Interrupted,
    Because(String),
}

impl From<Interrupted> for Unanswered {
    fn from(_: Interrupted) -> Self {
        Unanswered::Interrupted
    }
}

fn because(reason: impl ToString) -> Unanswered {
    Unanswered::Because(reason.to_string())
}

fn figure(found: Result<u32, Unanswered>) -> Result<Result<f64, String>, Interrupted> {
    match found {
        Ok(found) => Ok(Ok(found.into())),
        Err(Unanswered::Because(reason)) => Ok(Err(reason)),
        Err(Unanswered::Interrupted) => Err(Interrupted),
    }
}

/// A random number; 0 if the system has none, which identifies an echo as well.
fn random() -> u16 {
    let mut bytes = [0; 2];
    let _ = getrandom::fill(&mut bytes);
    u16::from_be_bytes(bytes)
}

fn in_random_order() -> [Family; 2] {
    if random().is_multiple_of(2) { [Family::Ipv4, Family::Ipv6] } else { [Family::Ipv6, Family::Ipv4] }
}
