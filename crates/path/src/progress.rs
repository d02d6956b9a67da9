//! What is said while hosts are measured: on a terminal a line that is written again, elsewhere one each five seconds.

use crate::findings::Rounds;
use stacklab_model::{Family, printable_text, say, say_part};
use stacklab_traffic::sign_of_life::SignOfLife;
use std::io::{IsTerminal, Write, stderr};

pub(crate) struct RoundProgress {
    is_terminal: bool,
    /// Rounds in all, and what is said while one takes long; `None` where each round is printed anyway.
    shown: Option<(u64, SignOfLife)>,
}

impl RoundProgress {
    /// Shows progress through this number of rounds, and nothing without one.
    pub(crate) fn new(rounds: Option<u64>) -> Self {
        let is_terminal = stderr().is_terminal();
        let shown = rounds.map(|rounds| {
            let sign_of_life = SignOfLife::new(move |what, seconds| match is_terminal {
                true => print_line(&format!("{what}, {seconds} s so far")),
                false => say!("stacklab: {what}, {seconds} s so far"),
            });
            (rounds, sign_of_life)
        });
        RoundProgress { is_terminal, shown }
    }

    /// Says how many rounds are done, and how the families are.
    pub(crate) fn show(&self, done: u64, looks: &[Rounds]) {
        let Some((rounds, sign_of_life)) = &self.shown else { return };
        let text = describe(done, *rounds, looks);
        if self.is_terminal {
            print_line(&text);
            sign_of_life.begin(text);
        } else {
            sign_of_life.go_on(text);
        }
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        if self.shown.take().is_some() && self.is_terminal {
            print_line("");
        }
    }
}

/// Writes the line on the terminal again.
fn print_line(text: &str) {
    say_part!("\r\x1b[K{text}");
    let _ = stderr().flush();
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
