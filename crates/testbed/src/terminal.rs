//! Terminals that give each byte as it comes.

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io;
use std::os::fd::AsFd;

/// Has a terminal neither echo what it reads nor change the ends of lines. Gives what it did before, for [`put_back`].
pub(crate) fn make_raw(terminal: &impl AsFd) -> io::Result<Termios> {
    let before = tcgetattr(terminal)?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    put_back(terminal, &raw)?;
    Ok(before)
}

/// Has it do again as it did.
pub(crate) fn put_back(terminal: &impl AsFd, before: &Termios) -> io::Result<()> {
    Ok(tcsetattr(terminal, SetArg::TCSANOW, before)?)
}
