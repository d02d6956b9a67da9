//! Parsers of a peer's lines, messages of a trial and files of /proc (which an emulated kernel writes too): untrusted
//! input. Public for the fuzz targets (`fuzz/`) only.

pub use crate::engine::header::{Header, Phase};
pub use crate::protocol::{Lines, MAX_ANSWER_LENGTH, MAX_REQUEST_LENGTH};
pub use crate::stats::flow::{Arrival, SequenceWindow};

use crate::engine::count::{ArrivalCounter, SharedState};
use crate::engine::receive_loop::{deliver, header_of};
use stacklab_model::{Received, TrialSpec};
use std::sync::atomic::AtomicBool;

/// Counts messages with their arrival times, nanoseconds, as the receiver of a trial does, without sockets.
pub fn count(spec: &TrialSpec, messages: impl IntoIterator<Item = (Vec<u8>, u64)>) -> Received {
    let ended = AtomicBool::new(true);
    let shared = SharedState::new(&ended);
    let mut counter = ArrivalCounter::new(spec, &shared, spec.flows as usize);
    for (mut message, arrived_ns) in messages {
        let size = spec.message_bytes as usize;
        let header = header_of(&message, size, spec.token);
        match deliver(header, &mut message, arrived_ns, &mut counter) {
            Ok(go_on) if go_on.is_continue() => {}
            Ok(_) | Err(_) => break,
        }
    }
    counter.finish().received
}

/// Reads a text as each file of /proc that the agent reads; gives how many figures were found.
#[cfg(target_os = "linux")]
pub fn proc_files(text: &str) -> usize {
    use crate::sys::linux::{cpu, host};
    let mut found = Default::default();
    host::parse_dev(text, "st0", &mut found);
    host::parse_snmp(text, &mut found);
    host::parse_snmp6(text, &mut found);
    let times = [&[][..], &[0, 1]].into_iter().filter_map(|processors| cpu::times(text, processors));
    found.len() + times.count() + host::pages(text).iter().count() + cpu::run_delay(text).iter().count()
}
