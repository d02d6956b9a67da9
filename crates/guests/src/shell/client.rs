//! The client that enters a host: sends the user's input to the command, and prints its output.

use crate::shell::frames::{Ask, Bytes, GuestFrame, Order, Window};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::termios::Termios;
use nix::unistd::geteuid;
use stacklab_testbed::kernel::sys::{make_raw, put_back, window_size};
use stacklab_testbed::write_message;
use std::env;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Stdin, Write, stderr, stdin, stdout};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(250);

/// Runs a command on a host of the testbed, over the socket of the testbed's holder. Host 0 is the sender, host 3 the
/// receiver. The command gets this process's input, output, terminal, folder and environment, and one more variable.
/// Returns its exit code.
pub fn enter_guest(socket: &Path, host: usize, command: Vec<String>, more: (&str, &str)) -> io::Result<i32> {
    let holder = UnixStream::connect(socket)?;
    expect_own(&holder)?;
    let environment = environment().chain([(more.0.to_owned(), more.1.to_owned())]).collect();
    let folder = env::current_dir().unwrap_or_else(|_| "/".into());
    let shown = terminal();
    let raw = shown.map(|_| Raw::new()).transpose()?;
    let out = Arc::new(Mutex::new(holder.try_clone()?));
    say(&out, &Ask::Run(Order { host, command, folder, environment, terminal: shown }))?;
    let typed = Arc::clone(&out);
    thread::spawn(move || pass_on_input(&typed));
    if let Some(mut shown) = shown {
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                match terminal() {
                    Some(now) if now != shown => {
                        shown = now;
                        if say(&out, &Ask::Resized(now)).is_err() {
                            return;
                        }
                    }
                    _ => {}
                }
            }
        });
    }
    let print = |bytes: &[u8]| stdout().write_all(bytes).and_then(|()| stdout().flush());
    let ended = hear(holder, print, |bytes| stderr().write_all(bytes));
    drop(raw);
    ended
}

/// What a command printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code: 128 plus the signal's number if a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: Vec<u8>,
}

/// Runs a command without input on a host, with this process's folder and environment, and waits for its end.
pub fn run_in_guest(socket: &Path, host: usize, command: &[&str]) -> io::Result<Ended> {
    let holder = Arc::new(Mutex::new(UnixStream::connect(socket)?));
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let folder = env::current_dir().unwrap_or_else(|_| "/".into());
    let order = Order { host, command, folder, environment: environment().collect(), terminal: None };
    say(&holder, &Ask::Run(order))?;
    // A holder that refuses the command states the reason and closes the connection.
    let _ = say(&holder, &Ask::InputEnds);
    let from = holder.lock().unwrap_or_else(PoisonError::into_inner).try_clone()?;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let code = hear(from, |bytes| output.write_all(bytes), |bytes| errors.write_all(bytes))?;
    Ok(Ended { code, output, errors })
}

/// This process's environment. Variables that are not valid text are left out.
fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()))
}

fn pass_on_input(out: &Mutex<UnixStream>) {
    let mut room = [0; 4096];
    loop {
        let asked = match stdin().lock().read(&mut room) {
            Ok(0) | Err(_) => Ask::InputEnds,
            Ok(count) => Ask::Input(Bytes(room[..count].to_vec())),
        };
        // The other thread gets the reason from the holder.
        if say(out, &asked).is_err() || asked == Ask::InputEnds {
            return;
        }
    }
}

fn say(out: &Mutex<UnixStream>, ask: &Ask) -> io::Result<()> {
    write_message(&mut *out.lock().unwrap_or_else(PoisonError::into_inner), ask)
}

/// Hands what the command prints to these functions, until it has ended.
fn hear(
    holder: UnixStream,
    mut output: impl FnMut(&[u8]) -> io::Result<()>,
    mut errors: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<i32> {
    for line in BufReader::new(holder).lines() {
        match serde_json::from_str(&line?)? {
            GuestFrame::Output(Bytes(bytes)) => output(&bytes)?,
            GuestFrame::Errors(Bytes(bytes)) => errors(&bytes)?,
            GuestFrame::Ended(code) => return Ok(code),
            GuestFrame::Taken => {}
            GuestFrame::Failed(reason) => return Err(io::Error::other(reason)),
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the testbed has ended"))
}

/// The size of this process's terminal, if both its input and its output are a terminal.
fn terminal() -> Option<Window> {
    if !(stdin().is_terminal() && stdout().is_terminal()) {
        return None;
    }
    let (rows, columns) = window_size(&stdin()).ok()?;
    Some(Window { rows, columns })
}

/// Raw mode of the terminal, until this is dropped: each key is delivered at once.
struct Raw {
    terminal: Stdin,
    before: Termios,
}

impl Raw {
    fn new() -> io::Result<Self> {
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

/// Checks that it is a process of this user (SO_PEERCRED), whoever may reach the socket's path.
pub(super) fn expect_own(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (getsockopt(stream, PeerCredentials)?.uid(), geteuid().as_raw());
    if peer == own {
        return Ok(());
    }
    let reason = format!("the other end of the testbed's socket is user {peer}'s, and not user {own}'s");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}
