//! The client's terminal.

use crate::shell::frames::Window;
use nix::sys::termios::Termios;
use stacklab_testbed::kernel::sys::{make_raw, put_back};
use std::io::{self, IsTerminal, Stdin, stdin, stdout};

/// The size of this process's terminal, if both its input and its output are a terminal.
pub(super) fn terminal() -> Option<Window> {
    if !(stdin().is_terminal() && stdout().is_terminal()) {
        return None;
    }
    stacklab_testbed::kernel::sys::window_size(&stdin()).ok().map(|(rows, columns)| Window { rows, columns })
}

/// Raw mode of the terminal, until this is dropped: each key is delivered at once.
pub(super) struct Raw {
    terminal: Stdin,
    before: Termios,
}

impl Raw {
    pub(super) fn new() -> io::Result<Self> {
        let terminal = stdin();
        Ok(Raw { before: make_raw(&terminal)?, terminal })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = put_back(&self.terminal, &self.before);
    }
}
