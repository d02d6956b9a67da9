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
