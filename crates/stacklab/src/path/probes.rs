//! The probes of a round: each for both families, one right after the other in random order.

use crate::path::dns;
use crate::path::http::{self, Request};
use crate::path::metric::PathMetric;
use crate::path::pace::{Interrupted, Pace};
use crate::path::target::Target;
use rustls::ClientConfig;
use stacklab_model::{Family, ScopedAddr};
use stacklab_traffic::host::ping::{Ping, PingOptions};
use stacklab_traffic::host::route::route_to;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long an echo's answer is waited for.
const WAIT: Duration = Duration::from_secs(1);
/// TTL of ordinary echoes.
const TTL: u8 = 64;
/// Octets of an ordinary echo's packet, the same in both families.
const ECHO_BYTES: u32 = 84;
/// The shortest path MTU that is looked for: hosts of IPv4 take as much (RFC 791).
const LEAST_MTU: u32 = 576;

/// Figures, or why there are none.
pub(crate) type Figures = BTreeMap<(PathMetric, Family), Result<f64, String>>;

/// What probes need.
pub(crate) struct Prober<'a> {
    /// Limits.
    pub pace: Pace,
    /// TLS.
    pub tls: Arc<ClientConfig>,
    /// Resolvers, for queries over each family.
    pub resolvers: &'a [IpAddr],
    /// Most bytes of one request.
    pub request_bytes: u64,
}

impl Prober<'_> {
    /// One round.
    ///
    /// # Errors
    /// When the user interrupts.
    pub(crate) fn round(&mut self, target: &Target) -> Result<Figures, Interrupted> {
        let mut figures = Figures::new();
        for kind in [Prober::echo, Prober::request, Prober::query] {
            for family in in_random_order() {
                kind(self, target, family, &mut figures)?;
            }
        }
        Ok(figures)
    }

    /// What is found once: path MTU and hops.
    ///
    /// # Errors
    /// When the user interrupts.
    pub(crate) fn facts(&mut self, target: &Target) -> Result<Figures, Interrupted> {
        let mut figures = Figures::new();
        for &family in Family::ALL {
            let mut ping = target
                .address(family)
                .and_then(|to| Ok((Ping::open(to, random()).map_err(|error| error.to_string())?, to)));
            let (mtu, hops) = match &mut ping {
                Ok((ping, to)) => (self.path_mtu(ping, to)?, self.hops(ping)?),
                Err(reason) => (Err(reason.clone()), Err(reason.clone())),
            };
            figures.insert((PathMetric::PathMtu, family), mtu);
            figures.insert((PathMetric::Hops, family), hops);
        }
        Ok(figures)
    }

    fn echo(&mut self, target: &Target, family: Family, figures: &mut Figures) -> Result<(), Interrupted> {
        let figure = match target.address(family) {
            Err(reason) => Err(reason),
            Ok(to) => {
                self.pace.probe()?;
                let options = PingOptions { packet_bytes: ECHO_BYTES, ttl: TTL, wait: WAIT };
                let echo = Ping::open(to, random()).map_err(|error| error.to_string());
                let echo = echo.and_then(|mut ping| ping.echo(&options).map_err(|error| error.to_string()));
                echo.and_then(|ns| {
                    ns.map(|ns| ns as f64 / 1e6).ok_or_else(|| "no answer within 1 s".to_owned())
                })
            }
        };
        figures.insert((PathMetric::IcmpRtt, family), figure);
        Ok(())
    }

    fn request(&mut self, target: &Target, family: Family, figures: &mut Figures) -> Result<(), Interrupted> {
        let most_bytes = self.request_bytes.min(self.pace.bytes_left());
        let fetched = match target.address(family) {
            Err(reason) => http::Fetched { failed: Some(reason), ..http::Fetched::default() },
            Ok(_) if most_bytes == 0 => {
                let reason = "no request was made: the limit of bytes is reached".to_owned();
                http::Fetched { failed: Some(reason), ..http::Fetched::default() }
            }
            Ok(to) => {
                self.pace.probe()?;
                http::fetch(&Request {
                    to,
                    port: target.port,
                    host: &target.host,
                    path: &target.path,
                    tls: target.tls.then_some(&self.tls),
                    most_bytes,
                })
            }
        };
        self.pace.take(fetched.bytes);
        let failed = fetched.failed.clone();
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        let mbits = fetched.bytes_per_second.map(|rate| rate * 8.0 / 1e6);
        for (metric, figure, otherwise) in [
            (PathMetric::TcpConnect, ms(fetched.connect), ""),
            (PathMetric::TlsHandshake, ms(fetched.tls), "without TLS"),
            (PathMetric::FirstByte, ms(fetched.first_byte), ""),
            (
                PathMetric::Goodput,
                mbits,
                "the answer is too short for a rate: name a longer one, as in NAME/PATH",
            ),
        ] {
            let missing = || failed.clone().unwrap_or_else(|| otherwise.to_owned());
            // A transfer that broke off has no rate, and its first byte came.
            let kept = figure.filter(|_| metric != PathMetric::Goodput || failed.is_none());
            figures.insert((metric, family), kept.ok_or_else(missing));
        }
        Ok(())
    }

    fn query(&mut self, target: &Target, family: Family, figures: &mut Figures) -> Result<(), Interrupted> {
        let resolver = self.resolvers.iter().find(|resolver| Family::of(**resolver) == family);
        let figure = match resolver {
            None => Err(format!("no resolver has an {family} address that is known (--resolver)")),
            Some(resolver) => {
                self.pace.probe()?;
                let found = dns::look_up(*resolver, &target.host, Family::Ipv6);
                found.map(|found| found.took.as_secs_f64() * 1e3)
            }
        };
        figures.insert((PathMetric::Dns, family), figure);
        Ok(())
    }

    /// Whether an echo of this size and TTL is answered; asked twice, for one may be lost.
    fn passes(
        &mut self,
        ping: &mut Ping,
        packet_bytes: u32,
        ttl: u8,
    ) -> Result<Result<bool, String>, Interrupted> {
        for _ in 0..2 {
            self.pace.probe()?;
            match ping.echo(&PingOptions { packet_bytes, ttl, wait: WAIT }) {
                Ok(Some(_)) => return Ok(Ok(true)),
                Ok(None) => {}
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        Ok(Ok(false))
    }

    fn path_mtu(&mut self, ping: &mut Ping, to: &ScopedAddr) -> Result<Result<f64, String>, Interrupted> {
        let own = match route_to(to, None) {
            Ok(route) => route.mtu.min(65_535),
            Err(error) => return Ok(Err(error.to_string())),
        };
        match self.passes(ping, own, TTL)? {
            Ok(true) => return Ok(Ok(own.into())),
            Ok(false) => {}
            Err(reason) => return Ok(Err(reason)),
        }
        match self.passes(ping, LEAST_MTU, TTL)? {
            Ok(true) => {}
            Ok(false) => return Ok(Err("no ICMP echo is answered".to_owned())),
            Err(reason) => return Ok(Err(reason)),
        }
        // The longest one that passes is at least `low` and below `high`.
        let (mut low, mut high) = (LEAST_MTU, own);
        // Minima and tunnels are met most often.
        let mut usual = [1280, 1480, 1492, 1420, 1400].into_iter();
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let next = usual.find(|next| *next > low && *next < high).unwrap_or(middle);
            // One more tells whether a usual one is it.
            let next = if next == low { next + 1 } else { next };
            match self.passes(ping, next, TTL)? {
                Ok(true) => low = next,
                Ok(false) => high = next,
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Ok(low.into()))
    }

    fn hops(&mut self, ping: &mut Ping) -> Result<Result<f64, String>, Interrupted> {
        match self.passes(ping, ECHO_BYTES, TTL)? {
            Ok(true) => {}
            Ok(false) => return Ok(Err("no ICMP echo is answered".to_owned())),
            Err(reason) => return Ok(Err(reason)),
        }
        let (mut low, mut high) = (0, TTL);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.passes(ping, ECHO_BYTES, middle)? {
                Ok(true) => high = middle,
                Ok(false) => low = middle,
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Ok(high.into()))
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
