//! What the resolver says of a name: its addresses, and the HTTPS record that has them as hints (RFC 9460).

use simple_dns::rdata::{A, AAAA, HTTPS, RData, SVCB};
use simple_dns::{CharacterString, Name, QTYPE, TYPE};
use stacklab_model::Family;
use std::net::IpAddr;
use std::time::Duration;

/// The protocols that the HTTPS record names.
const PROTOCOLS: [&str; 1] = ["http/1.1"];

/// What becomes of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum QueryOutcome {
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
    pub outcome: QueryOutcome,
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
    pub(super) fn of(kind: QTYPE) -> Self {
        match kind {
            QTYPE::TYPE(TYPE::A) => QueryType::Address(Family::Ipv4),
            QTYPE::TYPE(TYPE::AAAA) => QueryType::Address(Family::Ipv6),
            QTYPE::TYPE(TYPE::HTTPS) => QueryType::Https,
            other => QueryType::Other(other.into()),
        }
    }
}

/// What a query gets, and when.
#[derive(Debug, Default)]
pub(super) struct ZoneAnswer {
    pub outcome: QueryOutcome,
    pub delay: Duration,
    /// None says that the name has no record of the type.
    pub data: Vec<RData<'static>>,
}

impl Zone {
    /// The answer to a query of this type.
    pub(super) fn answer(&self, kind: QueryType) -> ZoneAnswer {
        match kind {
            QueryType::Address(Family::Ipv4) => self.a.answer(),
            QueryType::Address(Family::Ipv6) => self.aaaa.answer(),
            QueryType::Https => ZoneAnswer { data: self.bind_service(), ..ZoneAnswer::default() },
            QueryType::Other(_) => ZoneAnswer::default(),
        }
    }

    /// The HTTPS record: the name itself is the server. It has no address that the scenario keeps back: none whose own
    /// answer is late. Where an answer is lost or fails, the record is missing.
    fn bind_service(&self) -> Vec<RData<'static>> {
        if [&self.a, &self.aaaa].iter().any(|records| records.outcome != QueryOutcome::Answered) {
            return Vec::new();
        }
        let mut ipv4 = Vec::new();
        let mut ipv6 = Vec::new();
        for address in self.a.list_hints().iter().chain(self.aaaa.list_hints()) {
            match address {
                IpAddr::V4(address) => ipv4.push(address.to_bits()),
                IpAddr::V6(address) => ipv6.push(address.to_bits()),
            }
        }
        // The target "." is the root's name, which has no label.
        let mut binding = SVCB::new(1, Name::new_unchecked(""));
        let protocols = PROTOCOLS.map(|name| CharacterString::new(name.as_bytes()).expect("it is short"));
        binding.set_alpn(&protocols);
        binding.set_ipv4hint(&ipv4);
        binding.set_ipv6hint(&ipv6);
        vec![RData::HTTPS(HTTPS(binding))]
    }
}

impl Records {
    fn answer(&self) -> ZoneAnswer {
        let mut data = Vec::new();
        for address in &self.addresses {
            data.push(match address {
                IpAddr::V4(address) => RData::A(A { address: address.to_bits() }),
                IpAddr::V6(address) => RData::AAAA(AAAA { address: address.to_bits() }),
            });
        }
        ZoneAnswer { outcome: self.outcome, delay: self.delay, data }
    }

    fn list_hints(&self) -> &[IpAddr] {
        if self.delay.is_zero() { &self.addresses } else { &[] }
    }
}
