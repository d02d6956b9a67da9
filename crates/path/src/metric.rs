//! What is measured of a path.

use stacklab_model::{Better, Scale};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathMetric {
    IcmpRtt,
    TcpConnect,
    /// Time of a TLS handshake on it.
    TlsHandshake,
    /// Time from a request to the first byte of its answer.
    FirstByte,
    /// Content per second after it.
    Goodput,
    /// Time of a DNS query to a resolver of the family.
    Dns,
    /// The longest IP packet that gets there.
    PathMtu,
    /// Routers on the way there, and the host.
    Hops,
}

use PathMetric::*;

impl PathMetric {
    /// In the order of reports.
    pub(crate) const ALL: [PathMetric; 8] =
        [IcmpRtt, TcpConnect, TlsHandshake, FirstByte, Goodput, Dns, PathMtu, Hops];

    /// Name in output for programs, label for people, unit, and transport protocol.
    fn words(self) -> [&'static str; 4] {
        match self {
            IcmpRtt => ["icmp_rtt", "ping RTT", "ms", "icmp"],
            TcpConnect => ["tcp_connect", "TCP connect", "ms", "tcp"],
            TlsHandshake => ["tls_handshake", "TLS handshake", "ms", "tcp"],
            FirstByte => ["http_first_byte", "HTTP first byte", "ms", "tcp"],
            Goodput => ["http_goodput", "HTTP goodput", "Mbit/s", "tcp"],
            Dns => ["dns", "DNS lookup", "ms", "udp"],
            PathMtu => ["path_mtu", "path MTU", "B", "icmp"],
            Hops => ["hops", "hops", "hops", "icmp"],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.words()[0]
    }

    pub(crate) fn label(self) -> &'static str {
        self.words()[1]
    }

    pub(crate) fn unit(self) -> &'static str {
        self.words()[2]
    }

    pub(crate) fn transport(self) -> &'static str {
        self.words()[3]
    }

    /// The unit that fits some figures, with the factor for figures in the metric's unit.
    pub(crate) fn choose_unit(self, figures: impl Iterator<Item = f64>) -> (&'static str, f64) {
        let (low, high) =
            figures.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
        match self.unit() {
            "ms" if high < 1.0 => ("us", 1000.0),
            "Mbit/s" if low >= 1000.0 => ("Gbit/s", 0.001),
            "hops" => ("", 1.0),
            unit => (unit, 1.0),
        }
    }

    pub(crate) fn better(self) -> Better {
        if matches!(self, Goodput | PathMtu) { Better::Higher } else { Better::Lower }
    }

    /// Whether it is found once, and compared as it is.
    pub(crate) fn is_fact(self) -> bool {
        matches!(self, PathMtu | Hops)
    }

    pub(crate) fn scale(self) -> Scale {
        if self.is_fact() { Scale::Difference } else { Scale::Ratio }
    }
}
