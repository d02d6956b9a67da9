//! The holder of a testbed inside a guest: passes on what is said between who enters a host and the guest.

use crate::host::streams::Streams;
use crate::shell::frames::{Bytes, DOORS, Knock, PART, Tell, put};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
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

/// How often it is looked whether somebody still waits.
const LOOK: Duration = Duration::from_millis(200);

/// A stream to the guest by which one command at a time runs.
struct Door {
    from: BufReader<Box<dyn Read + Send>>,
    to: Box<dyn Write + Send>,
}

/// Lets whoever connects to this socket, which only this user may, run a command by one of these doors. Returns at once; the
/// threads live as long as the process.
///
/// # Errors
/// When the socket cannot be made there.
pub fn listen(socket: &Path, doors: Vec<Streams>) -> io::Result<()> {
    let open = |(from, to): Streams| Door { from: BufReader::new(from), to };
    let free: Arc<Mutex<Vec<Door>>> = Arc::new(Mutex::new(doors.into_iter().map(open).collect()));
    // One that a killed holder has left.
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let free = Arc::clone(&free);
            thread::spawn(move || {
                let door = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
                match door {
                    Some(mut door) => {
                        // A door whose guest is gone is of no more use.
                        if pass_on(&client, &mut door).is_ok() {
                            free.lock().unwrap_or_else(PoisonError::into_inner).push(door);
                        }
                    }
                    None => {
                        let full = format!("{} commands run there already", DOORS);
                        let _ = put(&mut &client, &Tell::Failed(full));
                    }
                }
            });
        }
    });
    Ok(())
}

/// Passes on what is said in both directions until the command has ended, also where nobody waits for it any more.
fn pass_on(client: &UnixStream, door: &mut Door) -> io::Result<()> {
    let Door { from, to } = door;
    let (taken, next) = mpsc::channel();
    thread::scope(|scope| {
        let asked = scope.spawn(move || {
            let mut part = [0; PART];
            let mut client = client;
            while let Ok(count @ 1..) = client.read(&mut part) {
                put(to, &Knock::Part(Bytes(part[..count].to_vec())))?;
                if !may_go_on(&next, client) {
                    break;
                }
            }
            put(to, &Knock::HangUp)
        });
        let mut line = String::new();
        let told = loop {
            line.clear();
            match from.read_line(&mut line) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Err(error) => break Err(error),
                Ok(_) => {}
            }
            let tell = serde_json::from_str::<Tell>(&line);
            if matches!(tell, Ok(Tell::Taken)) {
                // Who asks nothing more has hung up.
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
        told.and(asked)
    })
}

/// Waits until a part has been taken; `false` where the client is gone before that, or the command has ended.
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
