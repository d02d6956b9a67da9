//! iperf 2.

use crate::factors::generator::definition::GeneratorDef;
use crate::factors::factor::Factor::{
    CongestionControl, Dscp, Mss, Nodelay, ReceiveBuffer, SendBuffer,
};
use crate::factors::family::Probe::{Paced, Stream};

pub(super) const DEF: GeneratorDef = GeneratorDef {
    name: "iperf",
    doc: "iperf 2",
    programs: &["iperf", "iperf"],
    remedy: "sudo apt-get install iperf",
    probes: &[Stream, Paced],
    step_ns: 10_000_000,
    counts_messages: true,
    settings: &[SendBuffer, ReceiveBuffer, Mss, Nodelay, CongestionControl, Dscp],
};
