//! Other programs as engines of a trial: the command lines of both ends, and the figures in what they print. Each
//! engine is one file of this folder and one line of the table ([`tool`]).
//!
//! Each program gets the size of its messages, the same in both families: by default, iperf and iperf3 send
//! other sizes over IPv6.

mod ditg;
mod iperf;
mod iperf3;
mod netperf;
mod program;

pub use program::{CommandLine, Figures, Output, Tool, Traffic};

use stacklab_model::Engine;

/// The programs of an engine; `None` for stacklab's own.
pub fn tool(engine: Engine) -> Option<&'static Tool> {
    match engine {
        Engine::Stacklab => None,
        Engine::Iperf3 => Some(&iperf3::TOOL),
        Engine::Iperf => Some(&iperf::TOOL),
        Engine::Netperf => Some(&netperf::TOOL),
        Engine::Ditg => Some(&ditg::TOOL),
    }
}

#[cfg(test)]
mod tests;
