//! What is measured of a path.

use stacklab_model::{Better, Scale};

/// A figure of a path, of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathMetric {
    /// Round trip of an ICMP echo.
    IcmpRtt,
    /// Time to open a TCP connection.
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
    /// All, in the order of reports.
    pub(crate) const ALL: [PathMetric; 8] =
        [IcmpRtt, TcpConnect, TlsHandshake, FirstByte, Goodput, Dns, PathMtu, Hops];

    /// Its name in output for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IcmpRtt => "icmp_rtt",
            TcpConnect => "tcp_connect",
            TlsHandshake => "tls_handshake",
            FirstByte => "http_first_byte",
            Goodput => "http_goodput",
            Dns => "dns",
            PathMtu => "path_mtu",
            Hops => "hops",
        }
    }

    /// What people read.
    pub(crate) fn label(self) -> &'static str {
        match self {
            IcmpRtt => "ping RTT",
            TcpConnect => "TCP connect",
            TlsHandshake => "TLS handshake",
            FirstByte => "HTTP first byte",
            Goodput => "HTTP goodput",
            Dns => "DNS lookup",
            PathMtu => "path MTU",
            Hops => "hops",
        }
    }

    /// The unit that fits some figures, with the factor for figures in the metric's unit.
    pub(crate) fn shown(self, figures: impl Iterator<Item = f64>) -> (&'static str, f64) {
        let (low, high) =
            figures.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
        match self.unit() {
            "ms" if high < 1.0 => ("us", 1000.0),
            "Mbit/s" if low >= 1000.0 => ("Gbit/s", 0.001),
            "hops" => ("", 1.0),
            unit => (unit, 1.0),
        }
    }

    /// Its unit.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Goodput => "Mbit/s",
            PathMtu => "B",
            Hops => "hops",
            _ => "ms",
        }
    }

    /// Which direction is better.
    pub(crate) fn better(self) -> Better {
        if matches!(self, Goodput | PathMtu) { Better::Higher } else { Better::Lower }
    }

    /// Whether it is found once, and compared as it is.
    pub(crate) fn is_fact(self) -> bool {
        matches!(self, PathMtu | Hops)
    }

    /// How both families are compared.
    pub(crate) fn scale(self) -> Scale {
        if self.is_fact() { Scale::Difference } else { Scale::Ratio }
    }
}
