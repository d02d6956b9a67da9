//! Terminals.

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::setsid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Opens a pseudoterminal of this size. Returns the user's end and the commands' end.
pub fn open_terminal(rows: u16, columns: u16) -> io::Result<(File, File)> {
    let pair = openpty(Some(&size(rows, columns)), None)?;
    Ok((File::from(pair.master), File::from(pair.slave)))
}

/// Makes the command the leader of a new session, like a shell. Its standard input is the controlling terminal.
pub fn lead_terminal(command: &mut Command) {
    let lead = || {
        setsid()?;
        // SAFETY: the request takes a number and changes no memory.
        let answer = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: both are system calls, and the closure owns nothing.
    unsafe { command.pre_exec(lead) };
}

/// Puts a terminal into raw mode. Returns the previous mode for [`put_back`].
pub fn make_raw(terminal: &impl AsFd) -> io::Result<Termios> {
    let before = tcgetattr(terminal)?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    put_back(terminal, &raw)?;
    Ok(before)
}

/// Restores the terminal's previous mode.
pub fn put_back(terminal: &impl AsFd, before: &Termios) -> io::Result<()> {
    Ok(tcsetattr(terminal, SetArg::TCSANOW, before)?)
}

/// A terminal's rows and columns.
pub fn window_size(terminal: &impl AsFd) -> io::Result<(u16, u16)> {
    let mut size = size(0, 0);
    window(terminal.as_fd(), libc::TIOCGWINSZ, &mut size)?;
    Ok((size.ws_row, size.ws_col))
}

/// Sets a terminal's rows and columns.
pub fn resize_terminal(terminal: &impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
    window(terminal.as_fd(), libc::TIOCSWINSZ, &mut size(rows, columns))
}

fn window(terminal: BorrowedFd<'_>, request: libc::Ioctl, size: &mut Winsize) -> io::Result<()> {
    // SAFETY: both requests take a pointer to a winsize, which outlives the call.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), request, std::ptr::from_mut(size)) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_command_leads_its_terminal_and_knows_its_size() {
        let (mut own, its) = open_terminal(7, 33).unwrap();
        assert_eq!(window_size(&its).unwrap(), (7, 33));
        resize_terminal(&own, 8, 34).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "read word; echo \"$word $(stty size < /dev/tty)\""]);
        command.stdin(its.try_clone().unwrap()).stdout(its.try_clone().unwrap()).stderr(its);
        lead_terminal(&mut command);
        let mut child = command.spawn().unwrap();
        drop(command);
        own.write_all(b"hello\n").unwrap();
        let mut said = Vec::new();
        let mut room = [0; 256];
        while let Ok(count @ 1..) = own.read(&mut room) {
            said.extend(&room[..count]);
        }
        assert!(child.wait().unwrap().success());
        let said = String::from_utf8(said).unwrap();
        assert!(said.ends_with("hello 8 34\r\n"), "{said:?}");
    }
}
