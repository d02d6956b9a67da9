//! Other programs as generators of a trial: the command lines of both ends, and the figures in what they print. Each
//! generator is one file of this folder and one line of the table ([`tool`]).
//!
//! Each program gets the size of its messages, the same in both families: by default, iperf and iperf3 send
//! other sizes over IPv6.

mod ditg;
mod iperf;
mod iperf3;
mod netperf;
mod program;

pub use program::{CommandLine, Figures, Output, Tool, Traffic};

use stacklab_model::Generator;

/// The programs of a generator; `None` for stacklab's own.
pub fn tool(generator: Generator) -> Option<&'static Tool> {
    match generator {
        Generator::Stacklab => None,
        Generator::Iperf3 => Some(&iperf3::TOOL),
        Generator::Iperf => Some(&iperf::TOOL),
        Generator::Netperf => Some(&netperf::TOOL),
        Generator::Ditg => Some(&ditg::TOOL),
    }
}

#[cfg(test)]
mod tests;
