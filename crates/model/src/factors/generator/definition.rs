//! What a study must know of a generator before it runs: facts about its program, as data.

use crate::factors::factor::Factor;
use crate::factors::family::Probe;

/// A program that drives the traffic of a trial. Each has one file with one such definition, and one line in the table
/// ([`crate::Generator`]). Its command lines and the reading of its output are in `crates/protocols`.
#[derive(Debug)]
pub struct GeneratorDef {
    /// Name in study files, records and reports.
    pub name: &'static str,
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
