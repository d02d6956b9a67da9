//! The terminal of who enters a host.

use crate::kernel::sys::{make_raw, put_back};
use crate::shell::frames::Window;
use nix::sys::termios::Termios;
use std::io::{self, IsTerminal, Stdin, stdin, stdout};

/// The terminal that this process has at both its input and its output.
pub(super) fn terminal() -> Option<Window> {
    if !(stdin().is_terminal() && stdout().is_terminal()) {
        return None;
    }
    crate::kernel::sys::window_size(&stdin()).ok().map(|(rows, columns)| Window { rows, columns })
}

/// The terminal gives each key as it is pressed, until this is dropped.
pub(super) struct Raw {
    terminal: Stdin,
    before: Termios,
}

impl Raw {
    pub fn new() -> io::Result<Self> {
        let terminal = stdin();
        Ok(Raw { before: make_raw(&terminal)?, terminal })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone is not to be put right.
        let _ = put_back(&self.terminal, &self.before);
    }
}
