//! D-ITG.

use crate::factors::generator::definition::GeneratorDef;
use crate::factors::factor::Factor::Dscp;
use crate::factors::family::Probe::{Paced, Stream};

pub(super) const DEF: GeneratorDef = GeneratorDef {
    name: "ditg",
    doc: "D-ITG",
    programs: &["ITGSend", "ITGRecv", "ITGDec"],
    remedy: "sudo apt-get install d-itg",
    probes: &[Stream, Paced],
    step_ns: 1_000_000,
    counts_messages: true,
    settings: &[Dscp],
};
