//! Programs that drive the traffic of a trial, in one table.

use crate::factors::factor::Factor::{
    self, CongestionControl, Dscp, Flows, Mss, Nodelay, ReceiveBuffer, SendBuffer,
};
use crate::factors::family::Probe::{self, Echo, Paced, Stream};
use crate::names::named;

/// A program that drives the traffic of a trial. Its command lines and the reading of its output are in
/// `crates/protocols`.
#[derive(Debug)]
pub struct GeneratorDef {
    /// What the generator is, in a sentence without its period. The study language's description includes it.
    pub doc: &'static str,
    /// Its programs: the sender's end, the receiver's end, and others that it needs. None: stacklab's own.
    pub programs: &'static [&'static str],
    /// How to get them.
    pub remedy: &'static str,
    /// What it can measure.
    pub probes: &'static [Probe],
    /// Nanoseconds that its time must be a multiple of; 0: any time.
    pub step_ns: u64,
    /// Whether it can end after a number of messages.
    pub counts_messages: bool,
    /// The factors of a cell's own sockets and flows that its command line has. Those of hosts and links hold for all.
    pub settings: &'static [Factor],
}

named! {
    /// The program that drives the traffic.
    pub enum Generator("generator") {
        /// stacklab's own.
        Stacklab = "stacklab",
        /// iperf3.
        Iperf3 = "iperf3",
        /// iperf 2.
        Iperf = "iperf",
        /// netperf.
        Netperf = "netperf",
        /// D-ITG.
        Ditg = "ditg",
    }
}

/// In the order of [`Generator::ALL`].
static DEFINITIONS: [GeneratorDef; Generator::ALL.len()] = [
    GeneratorDef {
        doc: "stacklab's own, the default",
        programs: &[],
        remedy: "",
        probes: Probe::ALL,
        step_ns: 0,
        counts_messages: true,
        settings: Factor::ALL,
    },
    GeneratorDef {
        doc: "iperf3, whole seconds",
        programs: &["iperf3", "iperf3"],
        remedy: "sudo apt-get install iperf3",
        probes: &[Stream, Paced],
        step_ns: 1_000_000_000,
        counts_messages: true,
        settings: &[Flows, Mss, Nodelay, CongestionControl, Dscp],
    },
    GeneratorDef {
        doc: "iperf 2",
        programs: &["iperf", "iperf"],
        remedy: "sudo apt-get install iperf",
        probes: &[Stream, Paced],
        step_ns: 10_000_000,
        counts_messages: true,
        settings: &[SendBuffer, ReceiveBuffer, Mss, Nodelay, CongestionControl, Dscp],
    },
    GeneratorDef {
        doc: "netperf, whole seconds, floods and round trips",
        programs: &["netperf", "netserver"],
        remedy: "build it from its source (https://github.com/HewlettPackard/netperf), or take Debian's package from non-free",
        probes: &[Stream, Echo],
        step_ns: 1_000_000_000,
        counts_messages: false,
        settings: &[SendBuffer, ReceiveBuffer, Nodelay],
    },
    GeneratorDef {
        doc: "D-ITG",
        programs: &["ITGSend", "ITGRecv", "ITGDec"],
        remedy: "sudo apt-get install d-itg",
        probes: &[Stream, Paced],
        step_ns: 1_000_000,
        counts_messages: true,
        settings: &[Dscp],
    },
];

impl Generator {
    /// What a study must know of it.
    pub fn definition(self) -> &'static GeneratorDef {
        &DEFINITIONS[self as usize]
    }

    /// Whether it is a program that is not part of stacklab.
    pub fn is_other(self) -> bool {
        self != Generator::Stacklab
    }
}
