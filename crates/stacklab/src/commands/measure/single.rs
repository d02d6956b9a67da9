//! `stacklab measure` without --against: a study of one cell, measured once, whose figures are kept if it is
//! interrupted.

use crate::commands::measure::options::CommonOptions;
use crate::commands::measure::peers::{PeerProgram, connect_to_first};
use crate::commands::measure::print;
use crate::failure::Failure;
use stacklab_agent::client::Target;
use stacklab_campaign::single::{MeasureRequest, study_of_one, trial_of};
use stacklab_model::{Direction, HostFacts, Length, ProbeSpec, count, print_duration, say, say_part};
use stacklab_study::Plan;
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use stacklab_traffic::sign_of_life::SignOfLife;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::AtomicBool;

/// A token that other measurements between the same hosts do not have: it marks the messages as this one's.
fn new_token() -> u32 {
    (now_unix_ns() / 1000) as u32 ^ std::process::id().rotate_left(16)
}

pub(super) fn measure_once(
    common: &CommonOptions,
    request: &MeasureRequest,
    target: &Target<'_>,
    peer: &PeerProgram,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    let (mut connected, family) = connect_to_first(target, peer, interrupted)?;
    let way_word = if common.reverse { "from" } else { "to" };
    let title = format!("{} {} {way_word} {}", request.transport, request.probe, common.host);
    let study = study_of_one(request, title, family)?;
    let facts: Vec<HostFacts> = connected.hosts.hosts()?.into_iter().map(|host| host.facts).collect();
    let plan = Plan::new(&study, new_token().into());
    let trial = trial_of(&study);
    let waiting = WaitingLine::show(&study.probes[0]);
    let single = connected.hosts.run_once(&study, &plan, &trial, request.poll_ns)?;
    drop(waiting);
    // The sender of the data is the first.
    let mut facts: Vec<&HostFacts> = facts.iter().collect();
    if request.direction == Direction::Reverse {
        facts.reverse();
    }
    let printed = print(common, request, &single.run, &facts);
    if let Some(ns) = single.interrupted_after_ns {
        say!("stacklab: the figures are of {}, until the interruption", print_duration(ns));
        return Err(AgentError::Interrupted.into());
    }
    printed
}

/// On a terminal a line with the expected duration, which is erased afterwards. It changes, and elsewhere a line is
/// printed, every five seconds only: packets are counted meanwhile.
struct WaitingLine {
    is_erased: bool,
    _sign_of_life: SignOfLife,
}

impl WaitingLine {
    fn show(probe: &ProbeSpec) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let what = match probe.length {
            Length::Time(ns) => format!("measuring for {}", print_duration(probe.warmup_ns + ns)),
            Length::Packets(packets) => format!("measuring {}", count(packets, "message")),
        };
        if is_terminal {
            say_part!("{what} ...");
            let _ = io::stderr().flush();
        }
        let sign_of_life = SignOfLife::new(move |what, seconds| match is_terminal {
            true => say_part!("\r\x1b[K{what} ... {seconds} s so far"),
            false => say!("stacklab: {what}: {seconds} s so far"),
        });
        sign_of_life.begin(what);
        WaitingLine { is_erased: is_terminal, _sign_of_life: sign_of_life }
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        if self.is_erased {
            // Return to the start of the line and clear it.
            say_part!("\r\x1b[K");
        }
    }
}
