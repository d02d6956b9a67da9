//! netperf.

use crate::factors::generator::definition::GeneratorDef;
use crate::factors::factor::Factor::{Nodelay, ReceiveBuffer, SendBuffer};
use crate::factors::family::Probe::{Echo, Stream};

pub(super) const DEF: GeneratorDef = GeneratorDef {
    name: "netperf",
    doc: "netperf, whole seconds, floods and round trips",
    programs: &["netperf", "netserver"],
    remedy: "build it from its source (https://github.com/HewlettPackard/netperf), or take Debian's package from non-free",
    probes: &[Stream, Echo],
    step_ns: 1_000_000_000,
    counts_messages: false,
    settings: &[SendBuffer, ReceiveBuffer, Nodelay],
};
