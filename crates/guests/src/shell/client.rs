//! The client that enters a host: sends the user's input to the command, and prints its output. And the holder of the
//! testbed, which relays messages between the clients and the guest.

use crate::shell::{Ask, Bytes, ClientFrame, CommandRequest, GuestFrame, MAX_COMMANDS, PART, Window};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::termios::Termios;
use nix::unistd::geteuid;
use stacklab_testbed::kernel::sys::{make_raw, put_back, window_size};
use stacklab_testbed::{Streams, write_message};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Stdin, Write, stderr, stdin, stdout};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, thread};

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Exit code of a program that SIGPIPE ended, because nobody reads its output any more.
const ENDED_BY_PIPE: i32 = 128 + 13;

/// Runs a command on a host of the testbed, over the socket of its holder. Host 0 is the sender, host 3 the receiver.
/// The command gets this process's input, output, terminal, folder and environment, and one more variable. Returns its
/// exit code.
pub fn enter_guest(socket: &Path, host: usize, command: Vec<String>, more: (&str, &str)) -> io::Result<i32> {
    let holder = UnixStream::connect(socket)?;
    expect_own(&holder)?;
    let environment = environment().chain([(more.0.to_owned(), more.1.to_owned())]).collect();
    let folder = folder();
    let shown = terminal();
    let raw = shown.map(|_| Raw::new()).transpose()?;
    let out = Arc::new(Mutex::new(holder.try_clone()?));
    say(&out, &Ask::Run(CommandRequest { host, command, folder, environment, terminal: shown }))?;
    let typed = Arc::clone(&out);
    thread::spawn(move || pass_on_input(&typed));
    if let Some(mut shown) = shown {
        thread::spawn(move || {
            loop {
                thread::sleep(POLL_INTERVAL);
                let Some(now) = terminal().filter(|now| *now != shown) else { continue };
                shown = now;
                if say(&out, &Ask::Resized(now)).is_err() {
                    return;
                }
            }
        });
    }
    let ended = hear(
        holder,
        |bytes| stdout().write_all(bytes).and_then(|()| stdout().flush()),
        |bytes| stderr().write_all(bytes),
    );
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
    let folder = folder();
    let environment = environment().collect();
    say(&holder, &Ask::Run(CommandRequest { host, command, folder, environment, terminal: None }))?;
    // A holder that refuses the command states the reason and closes the connection.
    let _ = say(&holder, &Ask::InputEnds);
    let from = holder.lock().unwrap_or_else(PoisonError::into_inner).try_clone()?;
    let mut output = Vec::new();
    let mut errors = Vec::new();
    let code = hear(from, |bytes| output.write_all(bytes), |bytes| errors.write_all(bytes))?;
    Ok(Ended { code, output, errors })
}

/// This process's environment. Variables that are not valid text are left out.
fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()))
}

fn folder() -> PathBuf {
    env::current_dir().unwrap_or_else(|_| "/".into())
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

fn hear(
    holder: UnixStream,
    mut output: impl FnMut(&[u8]) -> io::Result<()>,
    mut errors: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<i32> {
    for line in BufReader::new(holder).lines() {
        let printed = match serde_json::from_str(&line?)? {
            GuestFrame::Output(Bytes(bytes)) => output(&bytes),
            GuestFrame::Errors(Bytes(bytes)) => errors(&bytes),
            GuestFrame::Ended(code) => return Ok(code),
            GuestFrame::Taken => Ok(()),
            GuestFrame::Failed(reason) => return Err(io::Error::other(reason)),
        };
        match printed {
            // As in `| head`: the command ends quietly, because the holder hangs up on it.
            Err(reason) if reason.kind() == io::ErrorKind::BrokenPipe => return Ok(ENDED_BY_PIPE),
            printed => printed?,
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
        let _ = put_back(&self.terminal, &self.before);
    }
}

/// Checks that it is a process of this user (SO_PEERCRED), whoever may reach the socket's path.
pub(crate) fn expect_own(stream: &UnixStream) -> io::Result<()> {
    let peer = getsockopt(stream, PeerCredentials)?.uid();
    let own = geteuid().as_raw();
    if peer == own {
        return Ok(());
    }
    let reason = format!("the other end of the testbed's socket is user {peer}'s, and not user {own}'s");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

const AGAIN: Duration = Duration::from_millis(200);

struct CommandStream {
    from: BufReader<Box<dyn Read + Send>>,
    to: Box<dyn Write + Send>,
}

/// Accepts connections on this socket, to which only this user has access. Each runs a command over one of these
/// streams. Returns at once; the threads live as long as the process.
pub fn listen(socket: &Path, streams: Vec<Streams>) -> io::Result<()> {
    let mut free = Vec::new();
    for (from, to) in streams {
        free.push(CommandStream { from: BufReader::new(from), to });
    }
    let free = Arc::new(Mutex::new(free));
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    thread::spawn(move || {
        for client in listener.incoming().flatten().filter(|client| expect_own(client).is_ok()) {
            let free = Arc::clone(&free);
            thread::spawn(move || {
                let stream = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
                match stream {
                    Some(mut stream) => {
                        // A stream to a guest that has ended cannot be used again.
                        if pass_on(&client, &mut stream).is_ok() {
                            free.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                        }
                    }
                    None => {
                        let full = format!("{MAX_COMMANDS} commands run there already");
                        let _ = write_message(&mut &client, &GuestFrame::Failed(full));
                    }
                }
            });
        }
    });
    Ok(())
}

fn pass_on(client: &UnixStream, stream: &mut CommandStream) -> io::Result<()> {
    let CommandStream { from, to } = stream;
    let (taken, next) = mpsc::channel();
    thread::scope(|scope| {
        let asked = scope.spawn(move || {
            let mut part = [0; PART];
            let mut client = client;
            while let Ok(count @ 1..) = client.read(&mut part) {
                write_message(to, &ClientFrame::Part(Bytes(part[..count].to_vec())))?;
                if !may_go_on(&next, client) {
                    break;
                }
            }
            write_message(to, &ClientFrame::HangUp)
        });
        let mut line = String::new();
        let ended = loop {
            line.clear();
            match from.read_line(&mut line) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Err(error) => break Err(error),
                Ok(_) => {}
            }
            let tell = serde_json::from_str::<GuestFrame>(&line);
            if matches!(tell, Ok(GuestFrame::Taken)) {
                // A client that sends nothing more has disconnected.
                let _ = taken.send(());
                continue;
            }
            let _ = (&*client).write_all(line.as_bytes());
            if tell.is_ok_and(|tell| tell.is_last()) {
                break Ok(());
            }
        };
        drop(taken);
        let _ = client.shutdown(Shutdown::Both);
        let asked = asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.and(asked)
    })
}

/// Waits until a part was acknowledged. `false` if the client disconnects or the command ends before that.
fn may_go_on(taken: &Receiver<()>, client: &UnixStream) -> bool {
    loop {
        match taken.recv_timeout(AGAIN) {
            Ok(()) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let mut gone = [PollFd::new(client.as_fd(), PollFlags::POLLHUP)];
        if poll(&mut gone, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_pipe_ends_a_command_as_sigpipe_does() {
        let (holder, mut guest) = UnixStream::pair().unwrap();
        write_message(&mut guest, &GuestFrame::Output(Bytes(b"1\n2\n".to_vec()))).unwrap();
        let ended = hear(holder, |_| Err(io::ErrorKind::BrokenPipe.into()), |_| Ok(()));
        assert_eq!(ended.unwrap(), 141);
    }
}
