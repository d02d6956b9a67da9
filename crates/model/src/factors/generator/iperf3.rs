//! iperf3.

use crate::factors::generator::definition::GeneratorDef;
use crate::factors::factor::Factor::{CongestionControl, Dscp, Flows, Mss, Nodelay};
use crate::factors::family::Probe::{Paced, Stream};

pub(super) const DEF: GeneratorDef = GeneratorDef {
    name: "iperf3",
    doc: "iperf3, whole seconds",
    programs: &["iperf3", "iperf3"],
    remedy: "sudo apt-get install iperf3",
    probes: &[Stream, Paced],
    step_ns: 1_000_000_000,
    counts_messages: true,
    settings: &[Flows, Mss, Nodelay, CongestionControl, Dscp],
};
