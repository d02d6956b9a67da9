//! What is said while hosts are measured: on a terminal a line that is written again, elsewhere one each five seconds.

use crate::findings::Rounds;
use stacklab_model::{Family, printable_text, say, say_part};
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const LINE_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Progress {
    /// Rounds in all; `None` where each round is printed anyway.
    rounds: Option<u64>,
    is_terminal: bool,
    next: Instant,
}

impl Progress {
    /// Shows progress through this number of rounds, and nothing without one.
    pub(crate) fn new(rounds: Option<u64>) -> Self {
        Progress { rounds, is_terminal: stderr().is_terminal(), next: Instant::now() + LINE_INTERVAL }
    }

    /// Says how many rounds are done, and how the families are.
    pub(crate) fn show(&mut self, done: u64, looks: &[Rounds]) {
        let Some(rounds) = self.rounds else { return };
        let text = describe(done, rounds, looks);
        if self.is_terminal {
            say_part!("\r\x1b[K{text}");
            let _ = stderr().flush();
        } else if Instant::now() >= self.next {
            say!("stacklab: {text}");
            self.next = Instant::now() + LINE_INTERVAL;
        }
    }

    /// Clears the line.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.rounds.is_some() {
            say_part!("\r\x1b[K");
        }
    }
}

fn describe(done: u64, rounds: u64, looks: &[Rounds]) -> String {
    if done == 0 {
        return "looking for path MTU and hops".to_owned();
    }
    let mut text = format!("round {done} of {rounds}");
    match looks {
        [look] => {
            for family in Family::ALL {
                text.push_str(&format!("; {family} {}", look.state(*family).name()));
            }
        }
        looks => {
            let mut works = 0;
            for look in looks {
                works += usize::from(Family::ALL.iter().all(|family| look.state(*family).works()));
            }
            text.push_str(&format!("; both families work to {works} of {} hosts", looks.len()));
        }
    }
    printable_text(&text)
}
