//! The holder of a testbed in a guest: relays messages between the clients and the guest.

use crate::shell::client::expect_own;
use crate::shell::frames::{Bytes, ClientFrame, GuestFrame, MOST_COMMANDS, PART};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stacklab_testbed::{Streams, write_message};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);

/// A stream to the guest. It carries one command at a time.
struct CommandStream {
    from: BufReader<Box<dyn Read + Send>>,
    to: Box<dyn Write + Send>,
}

/// Accepts connections on this socket, to which only this user has access. Each connection runs a command over one of
/// these streams. Returns at once; the threads live as long as the process.
pub fn listen(socket: &Path, streams: Vec<Streams>) -> io::Result<()> {
    let open = |(from, to): Streams| CommandStream { from: BufReader::new(from), to };
    let free: Arc<Mutex<Vec<CommandStream>>> = Arc::new(Mutex::new(streams.into_iter().map(open).collect()));
    // Remove a socket that a killed holder has left behind.
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
                        let full = format!("{} commands run there already", MOST_COMMANDS);
                        let _ = write_message(&mut &client, &GuestFrame::Failed(full));
                    }
                }
            });
        }
    });
    Ok(())
}

/// Relays messages in both directions until the command has ended, even if the client has disconnected.
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
        match taken.recv_timeout(LOOK) {
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
